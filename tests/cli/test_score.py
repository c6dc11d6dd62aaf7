"""``sortformer score`` prints the results of ``evaluate.score``."""

import json
import socket
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Cli
from tests.processes import started

REFERENCE = "SPEAKER a 1 0.000 8.000 <NA> <NA> x <NA> <NA>\nSPEAKER a 1 8.000 2.000 <NA> <NA> y <NA> <NA>\n"
HYPOTHESIS = "SPEAKER a 1 1.000 9.000 <NA> <NA> z <NA> <NA>\n"


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    (tmp_path / "ref.rttm").write_text(REFERENCE)
    (tmp_path / "hyp.rttm").write_text(HYPOTHESIS)
    return tmp_path / "ref.rttm", tmp_path / "hyp.rttm"


def test_the_table_has_the_parts_and_the_protocol(cli: Cli, files: tuple[Path, Path]):
    outcome = cli("score", *files)
    assert outcome.code == 0
    head, recording, total, protocol = outcome.out.splitlines()
    assert head.split() == "recording DER miss false alarm confusion JER speakers speech s".split()  # noqa: SIM905
    assert recording.split()[:5] == ["a", "30.00", "10.00", "0.00", "20.00"]
    assert total.split()[:2] == ["TOTAL", "30.00"]
    assert "full (no collar, overlap scored)" in protocol


def test_it_says_how_much_is_gained_over_a_baseline(cli: Cli, files: tuple[Path, Path]):
    outcome = cli("score", files[0], files[0], "--baseline", files[1])
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.splitlines()[3] == "Gain over the baseline (DER 30.00 %): 30.00 points."


def test_where_the_errors_are_is_shown_in_a_page_and_in_labels(cli: Cli, files: tuple[Path, Path], tmp_path: Path):
    pages = tmp_path / "wrong"
    plain, outcome = cli("score", *files), cli("score", *files, "--errors", pages)
    assert (outcome.code, outcome.out, outcome.err) == (0, plain.out, "")
    assert (pages / "a.errors.txt").read_text() == "0.000\t1.000\tmiss: x\n8.000\t10.000\tconfusion: y as z\n"
    data = (pages / "a.html").read_text().partition('<script type="application/json" id="comparison">')[2]
    assert json.loads(data.partition("</script>")[0]) == {
        "score": "DER 30.0 %: miss 1.0 s, false alarm 0.0 s, confusion 2.0 s, of 10.0 s of speech; "
        "full (no collar, overlap scored)",
        "reference": [
            {"speaker": "x", "pair": "z", "turns": [[0, 8000]]},
            {"speaker": "y", "pair": None, "turns": [[8000, 10000]]},
        ],
        "scored": [[0, 10000]],
        "errors": [
            {"span": [0, 1000], "kinds": ["miss"], "text": "miss: x"},
            {"span": [8000, 10000], "kinds": ["confusion"], "text": "confusion: y as z"},
        ],
    }
    again = cli("score", *files, "--errors", pages)
    assert (again.code, again.errors) == (
        1,
        [f"{pages / 'a.html'} exists already; use --overwrite, or another folder"],
    )
    assert cli("score", *files, "--errors", pages, "--overwrite", "--protocol", "fair").code == 0
    assert (pages / "a.errors.txt").read_text() == "0.250\t1.000\tmiss: x\n8.250\t9.750\tconfusion: y as z\n"


def test_pages_are_written_into_the_folder_alone(cli: Cli, files: tuple[Path, Path], tmp_path: Path):
    for file in files:
        file.write_text(file.read_text().replace(" a 1 ", " ../a 1 "))
    outcome = cli("score", *files, "--errors", tmp_path / "deep" / "wrong")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.errors == ["the id '../a' is used as a file name: write - instead of '/'"]
    assert not list((tmp_path / "deep").glob("**/*.html"))


def test_a_uem_that_is_there_and_was_not_given_is_named(cli: Cli, files: tuple[Path, Path], tmp_path: Path):
    assert cli("score", *files).err == ""
    uem = files[0].with_suffix(".uem")
    uem.write_text("a 1 0.000 5.000\n")
    note = "note: scored whole recordings, though there is a UEM: give --uem {} to score only its regions\n"
    assert cli("score", *files).err == note.format(uem)
    folder = tmp_path / "truth"
    folder.mkdir()
    for file, said in ((files[0], ""), (uem, note.format(folder))):
        (folder / file.name).write_text(file.read_text())
        assert cli("score", folder, files[1]).err == said
    assert cli("score", folder, files[1], "--uem", folder).err == ""


def test_the_uem_beside_a_manifest_is_no_news_to_it(cli: Cli, files: tuple[Path, Path], tmp_path: Path):
    entry = {"audio_filepath": "a.wav", "duration": 10.0, "rttm_filepath": str(files[0])}
    (tmp_path / "m.jsonl").write_text(json.dumps(entry) + "\n")
    (tmp_path / "m.uem").write_text("a 1 0.000 5.000\n")
    outcome = cli("score", tmp_path / "m.jsonl", files[1])
    assert (outcome.code, outcome.err) == (0, "")


def test_what_a_system_said_may_come_through_a_pipe(cli: Cli, files: tuple[Path, Path]):
    with files[1].open() as pipe:
        out, err = started("score", files[0], "-", stdin=pipe).communicate()
    assert (out, err) == (cli("score", *files).out, "")


def test_a_socket_is_a_pipe_as_well(cli: Cli, files: tuple[Path, Path]):
    """As those of Node.js; it cannot be opened by a path, and on Windows no standard input can."""
    receiver, sender = socket.socketpair()
    with receiver, sender:
        scoring = started("score", files[0], "-", stdin=receiver)
        sender.sendall(files[1].read_bytes())
        sender.shutdown(socket.SHUT_WR)
        out, err = scoring.communicate()
    assert (out, err) == (cli("score", *files).out, "")


@pytest.mark.parametrize("content", [None, "", "; no line of a turn\n"])
def test_a_pipe_through_which_no_turn_comes_is_an_error(files: tuple[Path, Path], tmp_path: Path, content: str | None):
    (tmp_path / "sent").write_text(content or "")
    with (tmp_path / "sent").open() as sent:
        scoring = started("score", files[0], "-", stdin=subprocess.DEVNULL if content is None else sent)
        out, err = scoring.communicate()
    assert (scoring.returncode, out, len(err.splitlines())) == (1, "", 1)
    assert err.startswith("error: no turns were received from /dev/stdin: check whether the command that should send")


def test_what_was_written_of_a_silent_recording_is_scored(cli: Cli, model: Path, make, tmp_path: Path):
    silent = make("quiet.wav", np.zeros(16_000, np.float32))
    assert cli("diarize", silent, "--model", model, "-o", tmp_path / "out").code == 0
    (tmp_path / "quiet.rttm").write_text(REFERENCE.replace(" a ", " quiet "))
    (tmp_path / "nobody.rttm").write_text("")
    found = tmp_path / "out" / "quiet.rttm"
    outcome = cli("score", tmp_path / "quiet.rttm", found)
    assert (outcome.code, outcome.out.splitlines()[1].split()[:2]) == (0, ["quiet", "100.00"])
    assert outcome.err == f"warning: {found} has no turns: it counts as silence in 'quiet'\n"
    assert cli("score", tmp_path / "nobody.rttm", found).err == ""


def test_json_names_the_protocol(cli: Cli, files: tuple[Path, Path]):
    document = json.loads(cli("score", *files, "-f", "json", "--protocol", "forgiving").out)
    assert document["protocol"] == {"name": "forgiving", "collar_s": 0.25, "skip_overlap": True}


def test_a_collar_and_overlap_go_before_those_of_the_protocol(cli: Cli, files: tuple[Path, Path]):
    own = cli("score", *files, "--protocol", "fair", "--collar", "0.5").out
    assert "Protocol: own (collar 0.5 s each side, overlap scored)." in own
    assert own.splitlines()[1].split()[-1] == "8.00"  # of 10 s, two borders with half a second each, one with a second
    assert cli("score", *files, "--collar", "0.25", "--skip-overlap").out == cli(
        "score", *files, "--protocol", "forgiving"
    ).out  # fmt: skip
    assert cli("score", *files, "--protocol", "forgiving", "--score-overlap", "--collar", "0").out == (
        cli("score", *files).out
    )


def test_hidden_files_of_a_folder_are_passed_over(cli: Cli, files: tuple[Path, Path], tmp_path: Path):
    for side, file in zip(("told", "found"), files, strict=True):
        (tmp_path / side).mkdir()
        file.rename(tmp_path / side / "a.rttm")
        (tmp_path / side / "._a.rttm").write_bytes(b"\0\5\26\7")
    outcome = cli("score", tmp_path / "told", tmp_path / "found")
    assert (outcome.code, outcome.errors) == (0, [])


def test_a_uem_bounds_what_is_scored(cli: Cli, files: tuple[Path, Path], tmp_path: Path):
    (tmp_path / "parts.uem").write_text("a 1 2.0 8.0\n")
    assert cli("score", *files, "--uem", tmp_path / "parts.uem").out.splitlines()[1].split()[:2] == ["a", "0.00"]


def test_a_missing_file_is_an_error(cli: Cli, files: tuple[Path, Path], tmp_path: Path):
    outcome = cli("score", files[0], tmp_path / "absent.rttm")
    assert (outcome.code, outcome.out) == (1, "")
    assert str(tmp_path / "absent.rttm") in outcome.errors[0]


def test_a_recording_on_one_side_only_is_an_error(cli: Cli, files: tuple[Path, Path]):
    files[1].write_text(HYPOTHESIS.replace(" a ", " b "))
    outcome = cli("score", *files)
    assert (outcome.code, outcome.out) == (1, "")
    assert "'a'" in outcome.errors[0]


@pytest.mark.parametrize("option", [["--protocol", "strict"], ["-f", "html"], ["--collar", "-1"]])
def test_what_there_is_not_is_a_usage_error(cli: Cli, files: tuple[Path, Path], option: list[str]):
    outcome = cli("score", *files, *option)
    assert outcome.code == 2
    assert option[1] in outcome.err


def test_nothing_is_replaced_where_nothing_is_written(cli: Cli, files: tuple[Path, Path]):
    outcome = cli("score", *files, "--overwrite")
    assert (outcome.code, outcome.out) == (2, "")
    assert "--overwrite replaces files in the folder of --errors: give that, too" in " ".join(outcome.err.split())
