"""Where results go: formats on stdout and in a folder, what is there already, and names that cannot be."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from sortformer import Diarization, Turn
from sortformer.cli.recordings import Recording
from sortformer.cli.results import Results
from sortformer.formats import json as json_format
from sortformer.formats import rttm
from tests.cli.conftest import Cli


def test_rttm_of_several_files_goes_to_stdout_in_their_order(cli: Cli, model: Path, make: Callable[..., Path]):
    outcome = cli("diarize", make("b.wav"), make("a.wav"), "--model", model)
    assert outcome.code == 0
    assert [line.split()[1] for line in outcome.out.splitlines()] == ["b", "b", "a", "a"]
    assert outcome.err == "2 recordings diarized\n"
    assert list(rttm.parse(outcome.out)) == ["b", "a"]


def test_a_blank_line_divides_texts_on_stdout(cli: Cli, model: Path, make: Callable[..., Path]):
    texts = [cli("diarize", make(name), "--model", model, "-f", "txt").out for name in ("b.wav", "a.wav")]
    assert cli("diarize", make("b.wav"), make("a.wav"), "--model", model, "-f", "txt").out == "\n".join(texts)


def test_one_file_on_stdout_leaves_stderr_empty(cli: Cli, model: Path, wav: Path):
    assert cli("diarize", wav, "--model", model).err == ""


def test_all_formats_go_into_a_folder(cli: Cli, model: Path, wav: Path, tmp_path: Path):
    outcome = cli("diarize", wav, "--model", model, "-o", tmp_path / "new" / "out", "-f", "rttm, json,txt,html,rttm")
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "1 recording diarized\n")
    folder = tmp_path / "new" / "out"
    assert sorted(path.suffix for path in folder.glob("meeting.*")) == [".html", ".json", ".rttm", ".txt"]
    recording = json_format.read(folder / "meeting.json")
    assert rttm.format(recording) == (folder / "meeting.rttm").read_text()
    assert "2 speakers" in (folder / "meeting.txt").read_text()
    assert (folder / "meeting.html").read_text() == cli("diarize", wav, "--model", model, "-f", "html").out


def test_pages_of_several_recordings_want_a_folder(cli: Cli, model: Path, make: Callable[..., Path]):
    outcome = cli("diarize", make("b.wav"), make("a.wav"), "--model", model, "-f", "html")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.errors == ["only one recording can be written to stdout as html: give a folder with -o"]


@pytest.mark.parametrize(("format", "name"), [("TextGrid", "meeting.TextGrid"), ("audacity", "meeting.labels.txt")])
def test_files_for_other_programs_have_the_names_that_these_look_for(
    cli: Cli, model: Path, wav: Path, tmp_path: Path, format: str, name: str
):
    cli("diarize", wav, "--model", model, "-f", f"{format},txt", "-o", tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted([name, "meeting.txt"])
    assert (tmp_path / "out" / name).read_text() == cli("diarize", wav, "--model", model, "-f", format).out


def test_json_of_several_recordings_on_stdout_is_json_lines(cli: Cli, model: Path, make: Callable[..., Path]):
    alone = cli("diarize", make("b.wav"), "--model", model, "-f", "json").out
    both = cli("diarize", make("b.wav"), make("my a.wav"), "--model", model, "-f", "json").out
    lines = both.splitlines()
    assert [json.loads(line)["uri"] for line in lines] == ["b", "my a"]
    assert json_format.parse(lines[0]) == json_format.parse(alone)
    assert len(cli("diarize", make("b.wav"), "absent.wav", "--model", model, "-f", "json").out.splitlines()) == 1


def test_csv_of_several_recordings_on_stdout_has_one_header(cli: Cli, model: Path, make: Callable[..., Path]):
    alone = [cli("diarize", make(name), "--model", model, "-f", "csv").out for name in ("b.wav", "my a.wav")]
    both = cli("diarize", make("b.wav"), make("my a.wav"), "--model", model, "-f", "csv").out
    assert both == alone[0] + alone[1].split("\n", 1)[1]
    rows = list(csv.DictReader(both.splitlines()))
    assert list(dict.fromkeys(row["recording"] for row in rows)) == ["b", "my a"]
    assert 0.9 < float(rows[0]["confidence"]) < 1


def test_json_keeps_the_white_space_that_rttm_cannot_hold(cli: Cli, model: Path, make: Callable[..., Path]):
    outcome = cli("diarize", make("my meeting.wav"), "--model", model, "-f", "json")
    assert json.loads(outcome.out)["uri"] == "my meeting"
    assert outcome.err == ""


def test_results_are_not_replaced_unless_asked(cli: Cli, model: Path, wav: Path, tmp_path: Path):
    there = tmp_path / "meeting.rttm"
    there.write_text("mine")
    outcome = cli("diarize", wav, "--model", model, "-o", tmp_path)
    assert (outcome.code, there.read_text()) == (1, "mine")
    assert "--overwrite" in outcome.errors[0]
    assert cli("diarize", wav, "--model", model, "-o", tmp_path, "--overwrite").code == 0
    assert there.read_text().startswith("SPEAKER meeting ")


@pytest.mark.parametrize("option", [[], ["--overwrite"], ["--skip-existing"]])
def test_a_name_too_long_for_a_result_is_known_before_the_work(
    cli: Cli, model: Path, make: Callable[..., Path], tmp_path: Path, option: list[str]
):
    wav = make(f"{'n' * 245}.wav")
    to = (wav, "-o", tmp_path / "out", "-f", "rttm,seglst", *option)
    outcome = cli("diarize", *to, "--model", "absent")
    assert (outcome.code, len(outcome.errors), list((tmp_path / "out").iterdir())) == (1, 1, [])
    assert "seglst.json: File name too long; rename the recording, or name it with --uri" in outcome.errors[0]
    assert cli("diarize", *to, "--model", model, "--uri", "talk").code == 0
    assert len(list((tmp_path / "out").iterdir())) == 2


def test_skipping_writes_only_what_is_missing(cli: Cli, model: Path, wav: Path, make: Callable[..., Path], tmp_path):
    there = tmp_path / "out" / "meeting.rttm"
    there.parent.mkdir()
    there.write_text("mine")
    arguments = ("diarize", wav, make("other.wav"), "--model", model, "-o", there.parent, "--skip-existing")
    outcome = cli(*arguments)
    assert (outcome.code, outcome.err) == (0, "1 recording diarized, 1 skipped\n")
    assert there.read_text() == "mine"
    assert cli(*arguments, "-f", "rttm,txt").err == "2 recordings diarized\n"
    assert there.read_text() == "mine"
    assert (there.parent / "meeting.txt").exists()


def test_no_model_is_loaded_when_all_is_there(cli: Cli, wav: Path, tmp_path: Path):
    (tmp_path / "meeting.rttm").touch()
    arguments = ("diarize", wav, "--model", tmp_path / "absent", "-o", tmp_path, "--skip-existing")
    assert cli(*arguments).code == 0
    assert cli(*arguments, "-f", "txt").code == 1


def test_regions_in_which_nobody_speaks_are_named(capsys: pytest.CaptureFixture[str]):
    results = Results(None, ("rttm",), regions={"talk": ((5, 6),)})
    with pytest.warns(UserWarning, match="nobody speaks in the regions of the UEM of talk"):
        results.write(
            Recording(Path("talk.wav"), "talk"), Diarization((Turn(0, 1, "ann"),), 9.0, uri="talk"), ("rttm",)
        )
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("name", ["out.rttm", "talk.JSON"])
def test_a_folder_is_not_named_as_a_file(cli: Cli, model: Path, wav: Path, tmp_path: Path, name: str):
    outcome = cli("diarize", wav, "--model", model, "-o", tmp_path / name)
    assert outcome.code == 2
    assert f"leave out -o, and add > {tmp_path / name}" in " ".join(outcome.err.split())
    assert not (tmp_path / name).exists()
    (tmp_path / name).mkdir()  # an existing folder is intended
    assert cli("diarize", wav, "--model", model, "-o", tmp_path / name).code == 0
