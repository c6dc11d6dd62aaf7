"""``sortformer manifest``, and the commands that read its output."""

import json
from pathlib import Path

import numpy as np
import pytest

from sortformer.formats import rttm
from tests.audio.makers import write
from tests.cli.conftest import Cli
from tests.manifests import trees


@pytest.fixture
def calls(cli: Cli, tmp_path: Path) -> Path:
    """A manifest of two recordings with references."""
    for name, start in (("one", 0.2), ("two", 0.21)):
        trees.sound(tmp_path / "calls" / f"{name}.wav", 2.0, 16_000)
        trees.truth(tmp_path / "calls" / f"{name}.rttm", (start, 1.0, "anna"), (0.9, 1.8, "bert"))
    outcome = cli("manifest", "folder", tmp_path / "calls", "-o", tmp_path / "calls.jsonl")
    assert (outcome.code, outcome.out) == (0, f"{tmp_path / 'calls.jsonl'}: 2 recordings\n")
    return tmp_path / "calls.jsonl"


def test_recordings_without_a_reference_are_named(cli: Cli, calls: Path, tmp_path: Path):
    (tmp_path / "calls" / "two.rttm").unlink()
    outcome = cli("manifest", "folder", tmp_path / "calls", "-o", calls, "--overwrite")
    assert (outcome.code, outcome.out) == (0, f"{calls}: 2 recordings\n")
    assert outcome.err == "note: 1 recording without a reference, the first is 'two'\n"
    (tmp_path / "calls" / "one.rttm").unlink()
    outcome = cli("manifest", "folder", tmp_path / "calls", "-o", calls, "--overwrite")
    assert outcome.err.endswith("the first is 'one'; --reference DIR also reads TextGrids, STM, ...\n")


def test_recordings_without_a_uem_are_named_where_others_have_one(cli: Cli, calls: Path, tmp_path: Path):
    (tmp_path / "calls" / "core.uem").write_text("one 1 0 1\n")
    outcome = cli("manifest", "folder", tmp_path / "calls", "-o", calls, "--overwrite")
    assert (outcome.code, outcome.out) == (0, f"{calls}: 2 recordings\n")
    assert outcome.err == "note: 1 recording without a UEM, to be scored whole, the first is 'two'\n"


def test_ami_makes_a_manifest_a_split_and_says_what_the_corpus_lacks(cli: Cli, tmp_path: Path):
    root = trees.ami(tmp_path)
    arguments = ("manifest", "ami", root / "amicorpus", "--setup", root / "AMI-diarization-setup", "-o", tmp_path / "m")
    outcome = cli(*arguments, "--mic", "sdm", "--partial")
    assert outcome.code == 0
    assert outcome.err == "note: the corpus has no Array1-01 of IS1003b, IS1007d: left out\n"
    assert sorted(path.name for path in (tmp_path / "m").iterdir()) == ["dev.jsonl", "test.jsonl", "train.jsonl"]
    assert cli(*arguments).code == 1
    assert cli(*arguments, "--partial", "--overwrite").err == ""
    assert cli(*arguments, "--mic", "lapel").code == 2
    assert cli("manifest", "check", *sorted((tmp_path / "m").iterdir())).code == 0


def test_what_is_there_is_replaced_when_asked_and_else_nothing_is_written(cli: Cli, calls: Path, tmp_path: Path):
    kept = calls.read_text()
    again = ("manifest", "folder", tmp_path / "calls", "-o", calls)
    outcome = cli(*again)
    assert (outcome.code, outcome.errors) == (1, [f"{calls} exists already; use --overwrite, or another name with -o"])
    assert (cli(*again, "--overwrite").code, calls.read_text()) == (0, kept)
    bank = ("manifest", "voices", calls, "--shortest", 0.5, "-o", tmp_path / "bank")
    assert (cli(*bank).code, cli(*bank).code, cli(*bank, "--overwrite").code) == (0, 1, 0)
    assert "use --overwrite" in cli(*bank).errors[0]
    root = trees.voxconverse(tmp_path)
    (tmp_path / "vox").mkdir()
    (tmp_path / "vox" / "test.jsonl").write_text("mine")
    outcome = cli("manifest", "voxconverse", root, "--rttm", root / "voxconverse", "-o", tmp_path / "vox")
    assert "test.jsonl exists already; use --overwrite" in outcome.errors[0]
    assert [path.name for path in (tmp_path / "vox").iterdir()] == ["test.jsonl"]


def test_callhome_gets_its_references_as_files_of_their_own(cli: Cli, tmp_path: Path):
    root = trees.callhome(tmp_path)
    key = root / "sre2000-key" / "fullref.rttm"
    outcome = cli("manifest", "callhome", root / "r65_8_1", "--rttm", key, "-o", tmp_path / "m", "--partial")
    assert outcome.code == 0
    first = json.loads((tmp_path / "m" / "part2.jsonl").read_text().splitlines()[0])
    assert (first["uniq_id"], first["rttm_filepath"]) == ("iaab", "rttm/iaab.rttm")


def test_voxconverse_kaldi_lhotse_and_librispeech(cli: Cli, tmp_path: Path):
    root = trees.voxconverse(tmp_path)
    assert cli("manifest", "voxconverse", root, "--rttm", root / "voxconverse", "-o", tmp_path / "vox").code == 0
    (root / "audio" / "afjiv.wav").unlink()
    less = ("manifest", "voxconverse", root, "--rttm", root / "voxconverse", "-o", tmp_path / "less")
    assert [cli(*less, *option).code for option in ((), ("--partial",))] == [1, 0]
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "wav.scp").write_text(f"one {root / 'audio' / 'abjxc.wav'}\n")
    assert cli("manifest", "kaldi", tmp_path / "data", "-o", tmp_path / "kaldi.jsonl").code == 0
    assert json.loads((tmp_path / "kaldi.jsonl").read_text())["uniq_id"] == "one"
    row = {"id": "one", "sources": [{"type": "file", "source": str(root / "audio/abjxc.wav")}], "duration": 1.0}
    (tmp_path / "recordings.jsonl").write_text(json.dumps(row) + "\n")
    assert cli("manifest", "lhotse", tmp_path / "recordings.jsonl", "-o", tmp_path / "lhotse.jsonl").code == 0
    spoken = {"id": "s", "recording_id": "one", "start": 0.25, "duration": 0.5, "channel": 0, "speaker": "anna"}
    (tmp_path / "spoken.jsonl").write_text(json.dumps(spoken) + "\n")
    sides = (tmp_path / "recordings.jsonl", tmp_path / "spoken.jsonl")
    assert cli("manifest", "lhotse", *sides, "-o", tmp_path / "told" / "lhotse.jsonl").code == 0
    assert (tmp_path / "told" / "rttm" / "one.rttm").read_text().split()[3:5] == ["0.250", "0.500"]
    outcome = cli("manifest", "librispeech", trees.librispeech(tmp_path), "-o", tmp_path / "bank")
    assert outcome.out == f"{tmp_path / 'bank' / 'segments.tsv'}: 3 voices, 3 utterances, 0.00 h\n"


def test_check_says_what_recordings_are_like_and_what_is_wrong(cli: Cli, calls: Path):
    outcome = cli("manifest", "check", calls)
    assert outcome.code == 0
    assert "2 recordings, 0.00 h, 2 to 2 speakers" in outcome.out
    assert "note:" not in outcome.err
    other = calls.parent / "calls" / "two.rttm"
    other.write_text(other.read_text().replace(" two ", " three "))
    outcome = cli("manifest", "check", calls)
    assert outcome.code == 0
    assert outcome.err.endswith("is for 'three': does it belong to this recording?\n")
    (calls.parent / "calls" / "two.wav").unlink()
    outcome = cli("manifest", "check", calls, "--quick")
    assert outcome.code == 1
    assert "two.wav does not exist" in outcome.err
    assert outcome.err.endswith("1 problem found\n")


def test_a_quick_check_does_not_listen(cli: Cli, calls: Path):
    write(calls.parent / "calls" / "two.wav", np.zeros(32_000, np.float32), 16_000)
    listened, quick = cli("manifest", "check", calls), cli("manifest", "check", calls, "--quick")
    assert (listened.code, "silent" in listened.err) == (1, True)
    assert (quick.code, quick.err) == (0, "")


def test_voices_come_from_a_manifest(cli: Cli, calls: Path, tmp_path: Path):
    outcome = cli(
        "manifest", "voices", calls, "--dev", calls, "--shortest", 0.5, "--name", "calls", "-o", tmp_path / "b"
    )
    assert outcome.code == 0
    rows = (tmp_path / "b" / "segments.tsv").read_text().splitlines()[1:]
    assert rows[0].split("\t")[1:] == ["calls_one_anna", "train", "", "0.200", "0.900"]
    assert [row.split("\t")[2] for row in rows] == ["train"] * 4 + ["dev"] * 4
    shared = ("--dev", calls, "--shortest", 0.5, "--shared-names", "--overwrite")
    assert cli("manifest", "voices", calls, *shared, "-o", tmp_path / "b").code == 0
    rows = (tmp_path / "b" / "segments.tsv").read_text().splitlines()[1:]
    assert [row.split("\t")[1] for row in rows] == ["own_anna", "own_bert"] * 4


def test_a_manifest_is_diarized_and_scored(cli: Cli, calls: Path, model: Path, tmp_path: Path):
    outcome = cli("diarize", calls, "-o", tmp_path / "found", "--model", model)
    assert outcome.code == 0
    assert sorted(path.name for path in (tmp_path / "found").iterdir()) == ["one.rttm", "two.rttm"]
    outcome = cli("score", calls, tmp_path / "found", "-f", "json")
    assert outcome.code == 0
    document = json.loads(outcome.out)
    assert [each["scored_region"] for each in document["files"]] == [{"basis": "duration", "duration_s": 2.0}] * 2
    assert document["total"]["total_s"] == pytest.approx(3.39)


def test_a_window_is_diarized_alone_and_in_the_time_of_its_file(cli: Cli, calls: Path, model: Path, tmp_path: Path):
    entry = json.loads(calls.read_text().splitlines()[0]) | {"offset": 0.5, "duration": 0.8}
    window = tmp_path / "window.jsonl"
    window.write_text(json.dumps(entry) + "\n")
    assert cli("diarize", window, "-o", tmp_path / "found", "--model", model).code == 0
    turns = rttm.read(tmp_path / "found" / "one.rttm")["one"]
    assert min(turn.start for turn in turns) >= 0.5
    assert max(turn.end for turn in turns) == pytest.approx(1.3, abs=0.081)
    assert cli("score", window, tmp_path / "found").out.splitlines()[1].split()[-1] == "0.90"  # 0.5 to 1, 0.9 to 1.3
    of_file = json.loads(cli("score", window, calls.parent / "calls" / "one.rttm", "-f", "json").out)
    assert (of_file["total"]["der"], of_file["total"]["total_s"]) == (0, pytest.approx(0.9))
    parts = tmp_path / "late.uem"
    parts.write_text("one 1 0.9 1.1\n")
    cli("diarize", window, "-o", tmp_path / "late", "--model", model, "--uem", parts)
    assert {(turn.start, turn.end) for turn in rttm.read(tmp_path / "late" / "one.rttm")["one"]} == {(0.9, 1.1)}
    window.write_text(json.dumps(entry | {"offset": 5.0}) + "\n")
    outcome = cli("diarize", window, "-o", tmp_path / "more", "--model", model)
    assert outcome.code == 1
    assert "ends before 5 s, where 'one' starts" in outcome.errors[0]
    assert outcome.err.splitlines() == [f"error: {outcome.errors[0]}", "0 recordings diarized, 1 failed: one"]


@pytest.mark.parametrize("uem", [False, True])
def test_tuning_on_a_window_is_by_what_is_said_in_it(cli: Cli, calls: Path, model: Path, tmp_path: Path, uem: bool):
    parts = tmp_path / "all.uem"
    parts.write_text("one 1 0 2\n")
    scores = []
    for name, window in (("whole", {}), ("window", {"offset": 0.5, "duration": 0.8})):
        entry = json.loads(calls.read_text().splitlines()[0]) | window
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(entry) + "\n")
        given = ("--uem", parts) if uem else ()
        outcome = cli("tune", tmp_path / f"{name}.jsonl", "--model", model, "-o", tmp_path / name, *given)
        assert outcome.code == 0
        scores.append(outcome.err.splitlines()[0].partition(": ")[2].partition(" before")[0])
    # The model hears two speakers from the start to the end (less 10 ms): of 4 s 1.7 are right, and of 1.6 s 0.9.
    assert scores == [f"{100 * (4 - 1.7 - 0.02) / 1.7:.2f} %", f"{100 * (1.6 - 0.9) / 0.9:.2f} %"]


def test_tuning_takes_the_truth_from_a_manifest(cli: Cli, calls: Path, model: Path, tmp_path: Path):
    outcome = cli("tune", calls, "--model", model, "-o", tmp_path / "tuned")
    assert outcome.code == 0
    assert "on 2 recordings" in outcome.err
    outcome = cli("tune", tmp_path / "calls", "--model", model, "-o", tmp_path / "again")
    assert outcome.code == 1
    assert "give --reference" in outcome.errors[0]


def test_a_broken_manifest_is_an_error(cli: Cli, model: Path, tmp_path: Path):
    (tmp_path / "m.jsonl").write_text("SPEAKER\n")
    outcome = cli("diarize", tmp_path / "m.jsonl", "--model", model)
    assert outcome.code == 1
    assert "m.jsonl, line 1: not JSON" in outcome.errors[0]


@pytest.mark.parametrize("path", ["C:\\clips\\ada.wav", "C:\\users\\ada.wav"])
def test_a_path_of_windows_that_is_no_json_says_how_to_write_it(cli: Cli, model: Path, tmp_path: Path, path: str):
    (tmp_path / "m.jsonl").write_text(f'{{"audio_filepath": "{path}"}}\n')
    outcome = cli("diarize", tmp_path / "m.jsonl", "--model", model)
    assert outcome.code == 1
    assert "m.jsonl, line 1: not JSON (" in outcome.errors[0]
    assert outcome.errors[0].endswith("; write / or \\\\ in paths")
