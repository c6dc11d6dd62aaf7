"""Batches prepared by others: manifests with windows and numbers of speakers, and several runs at once."""

import errno
import io
import json
import os
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from rich.progress import Progress

from sortformer.annotation import Diarization, Turn
from sortformer.cli.batch import run
from sortformer.cli.recordings import Recording, once
from sortformer.cli.results import Results
from sortformer.errors import InputError
from sortformer.warned import SortformerWarning
from tests.audio.makers import chirp, fading_aac, live_mp3, piped_flac
from tests.cli.conftest import Cli


def manifest(path: Path, *rows: dict) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def speakers_of(folder: Path) -> dict[str, int]:
    return {path.stem: len(json.loads(path.read_text())["speakers"]) for path in folder.iterdir()}


def test_there_are_as_many_speakers_as_the_manifest_says(cli: Cli, model: Path, wav: Path, tmp_path: Path):
    rows = [{"audio_filepath": str(wav), "uniq_id": f"one_{number}", "num_speakers": number} for number in (1, None)]
    options = ("diarize", manifest(tmp_path / "calls.jsonl", *rows), "--model", model, "-f", "json")
    assert cli(*options, "-o", tmp_path / "free").code == 0
    outcome = cli(*options, "--oracle-num-speakers", "-o", tmp_path / "told")
    assert outcome.code == 0
    assert [line for line in outcome.err.splitlines() if line.startswith("warning")] == [
        "warning: one_None: no manifest gives the number of speakers: it is estimated"
    ]
    assert speakers_of(tmp_path / "free") == {"one_1": 2, "one_None": 2}
    assert speakers_of(tmp_path / "told") == {"one_1": 1, "one_None": 2}


def test_there_is_room_for_as_many_speakers_as_the_manifest_says(cli: Cli, model: Path, wav: Path, tmp_path: Path):
    calls = manifest(tmp_path / "calls.jsonl", {"audio_filepath": str(wav), "num_speakers": 9})
    options = ("--model", model, "--clustering", 0.4, "-f", "json", "--oracle-num-speakers")
    settings = json.loads(cli("diarize", calls, *options).out)["settings"]
    assert settings["postprocess"]["clustering"]["max_speakers"] == 9


def test_results_of_two_formats_do_not_share_a_file(cli: Cli, make: Callable[..., Path], model: Path, tmp_path: Path):
    inputs = (make("talk.wav"), make("talk.seglst.wav"))
    options = ("diarize", *inputs, "--model", model, "-o", tmp_path / "out", "--overwrite", "-f")
    assert cli(*options, "json").code == 0
    outcome = cli(*options, "json,seglst")
    assert outcome.code == 1
    assert [error.split(", and so")[0] for error in outcome.errors] == [
        f"{inputs[0]} and {inputs[1]} are named 'talk' and 'talk.seglst', one file name in this folder",
        f"{inputs[1]} and {inputs[0]} are named 'talk.seglst' and 'talk', one file name in this folder",
    ]


def test_an_error_says_which_recording_it_is_about(cli: Cli, model: Path, wav: Path, tmp_path: Path):
    rows = [{"audio_filepath": str(wav), "uniq_id": "music", "num_speakers": 0}]
    rows += [{"audio_filepath": "lost.wav", "uniq_id": name, "duration": 1.0} for name in ("news", "lost")]
    outcome = cli("diarize", manifest(tmp_path / "all.jsonl", *rows), "--model", model, "--oracle-num-speakers")
    missing = f"{tmp_path / 'lost.wav'} does not exist: check the path"
    few = "num_speakers must be a whole number, 1 or more, got 0"
    assert outcome.errors == [f"music: {few}", f"news: {missing}", missing]


@pytest.mark.skipif(sys.platform == "darwin", reason="its file systems have no such names")
def test_an_error_names_a_file_once_whatever_its_name(cli: Cli, model: Path):
    outcome = cli("diarize", "lost\udcff.wav", "--model", model)
    assert len(outcome.errors) == 1
    assert outcome.err.count("lost") == 1


@pytest.mark.parametrize("options", [("--num-speakers", 2), ("--channel", "each")])
def test_a_number_of_speakers_is_said_once(cli: Cli, wav: Path, options: tuple):
    outcome = cli("diarize", wav, "--oracle-num-speakers", *options)
    assert outcome.code == 2
    assert "--oracle-num-speakers" in outcome.err


def test_a_uem_may_know_windows_by_their_file(cli: Cli, model: Path, wav: Path, tmp_path: Path):
    row = {"audio_filepath": str(wav), "offset": 0.5, "duration": 1.0, "uniq_id": "late"}
    windows, uem = manifest(tmp_path / "late.jsonl", row), tmp_path / "parts.uem"
    options = ("diarize", windows, "--model", model, "--uem", uem, "--max-speakers", 1)
    uem.write_text("meeting 1 0.75 1.0\n")
    by_file = cli(*options)
    assert [line.split()[3:5] for line in by_file.out.splitlines()] == [["0.750", "0.250"]]
    uem.write_text("late 1 0.75 1.0\nmeeting 1 0.0 9.0\n")
    assert cli(*options).out == by_file.out
    uem.write_text("other 1 0.75 1.0\n")
    assert cli(*options).errors == ["the UEM has no regions for 'late': add them, or leave out --uem"]


def test_shards_share_out_the_recordings(cli: Cli, make: Callable[..., Path], model: Path, tmp_path: Path):
    for name in "abc":
        make(f"{name}.wav")
    shares: list[set[str]] = []
    for number in (1, 2, 3, 4):
        out = tmp_path / str(number)
        outcome = cli("diarize", tmp_path, "--model", model, "-o", out, "--shard", f"{number}/4")
        assert outcome.code == 0
        assert ("note: shard 4 of 4 is empty: 3 recordings in all" in outcome.err) is (number == 4)
        shares.append({path.stem for path in out.iterdir()})
    assert shares == [{"a"}, {"b"}, {"c"}, set()]


def test_a_shard_and_what_is_left_beside_an_empty_folder_are_of_several(
    cli: Cli, make: Callable[..., Path], model: Path, tmp_path: Path
):
    one, two = make("one.wav"), make("two.wav")
    (tmp_path / "empty").mkdir()
    options = ("--model", model, "-f", "json")
    assert len(cli("diarize", one, two, *options, "--shard", "1/2").out.splitlines()) == 1
    outcome = cli("diarize", tmp_path / "empty", one, *options)
    assert (outcome.code, len(outcome.out.splitlines())) == (1, 1)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_batch_stops_where_its_results_cannot_be_stored(
    cli: Cli, make: Callable[..., Path], model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
):
    def full(_file: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("sortformer.draft.os.fsync", full)
    waves = [make(f"{name}.wav") for name in "abc"]
    outcome = cli("diarize", *waves, "--model", model, "-o", tmp_path / "out")
    assert outcome.code == 1
    place = tmp_path / "out" / "a.rttm"
    assert outcome.errors == [f"cannot write {place}: {os.strerror(number)} (free some space, or choose another path)"]
    assert "stopped: 2 recordings not processed, as results cannot be stored" in outcome.err
    assert not list((tmp_path / "out").iterdir())


@pytest.mark.parametrize(
    ("every_s", "quiet", "lines"), [(0, False, ["1 of 3", "2 of 3"]), (0, True, []), (9, False, [])]
)
def test_without_a_terminal_lines_count_what_is_done(
    cli: Cli,
    make: Callable[..., Path],
    model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    every_s: float,
    quiet: bool,
    lines: list[str],
):
    monkeypatch.setattr("sortformer.cli.batch._LINE_EVERY_S", every_s)
    looks = count(step=3)  # 3 s pass from one look at the clock to the next
    monkeypatch.setattr("sortformer.cli.batch.monotonic", lambda: next(looks))
    waves = [make(f"{name}.wav") for name in "abc"]
    outcome = cli("diarize", *waves, "--model", model, "-o", tmp_path / "out", *["-q"] * quiet)
    expected = [f"{line} recordings processed" for line in lines] + ["3 recordings diarized"] * (not quiet)
    assert outcome.err.splitlines() == expected


def test_texts_begin_without_a_blank_line_where_the_first_recording_failed(
    cli: Cli, make: Callable[..., Path], model: Path, tmp_path: Path
):
    (tmp_path / "broken.wav").write_bytes(b"no sound")
    one = make("one.wav")
    alone = cli("diarize", one, "--model", model, "-f", "txt").out
    assert cli("diarize", tmp_path / "broken.wav", one, "--model", model, "-f", "txt").out == alone


def test_recordings_of_one_name_are_refused_whatever_shard_they_are_in(
    cli: Cli, make: Callable[..., Path], model: Path, tmp_path: Path
):
    waves = [make(f"{folder}/talk.wav") for folder in "ab"]
    for number in (1, 2):
        outcome = cli("diarize", *waves, "--model", model, "-o", tmp_path / "out", "--shard", f"{number}/2")
        assert (outcome.code, "are both named 'talk'" in outcome.err) == (1, True)
        assert outcome.err.endswith(f"1 failed: {waves[number - 1]}\n")


def test_windows_that_begin_together_are_two():
    short, long = (Recording(Path("talk.wav"), "talk", 1.0, seconds) for seconds in (2.0, 3.0))
    assert once([short, long, short]) == [short, long]


def test_a_duration_that_was_rounded_is_that_of_the_whole_file(wav: Path, recwarn: pytest.WarningsRecorder):
    for seconds in (1.95, 2.0, 2.05):
        rounded = Recording(wav, "meeting", 0.0, seconds)
        assert not rounded.is_window()
        assert rounded.heard()["audio"] == wav
    assert not recwarn.list
    assert Recording(wav, "meeting", 0.0, 1.8).is_window()


def test_a_duration_is_compared_with_that_of_the_audio_and_not_with_an_estimate(
    tmp_path: Path, recwarn: pytest.WarningsRecorder
):
    for path in (live_mp3(tmp_path / "live.mp3"), fading_aac(tmp_path / "fading.aac")):
        whole = Recording(path, "meeting", 0.0, 8.1)
        assert not whole.is_window()
        assert whole.heard()["audio"] == path
        assert Recording(path, "meeting", 0.0, 5.0).is_window()
    assert not recwarn.list
    with pytest.warns(SortformerWarning, match=r"should end at 9\.20 s of .*live\.mp3, but the file ends at 8\.10 s"):
        Recording(tmp_path / "live.mp3", "meeting", 0.0, 9.2).heard()
    with pytest.warns(SortformerWarning, match=r"should end at 9\.00 s of .*live\.mp3, but the file ends at 8\.10 s"):
        Recording(tmp_path / "live.mp3", "meeting", 1.0, 8.0).heard()


def test_a_recording_whose_header_has_no_duration_is_heard_as_long_as_the_manifest_says(tmp_path: Path):
    piped = piped_flac(tmp_path / "piped.flac", chirp(3.0, 16_000), 16_000)
    assert len(Recording(piped, "piped", 0.0, 2.0).heard()["audio"]["waveform"]) == 32_000


def test_white_space_in_the_name_of_a_speaker_is_said_once(capfd: pytest.CaptureFixture[str]):
    recording = Diarization((Turn(0, 1, "the chair"),), 2, "talk")
    results = Results(None, ("rttm",))
    for name in ("talk", "my talk"):
        results.write(Recording(Path(f"{name}.wav"), name), recording, ("rttm",))
    assert capfd.readouterr().err == (
        "note: 'the chair' is written as 'the_chair' in RTTM, which allows no white space or control characters; "
        "likewise other names\n"
    )


@pytest.mark.parametrize(("encoding", "name"), [("utf-8", "Köln"), ("ascii", "K\\u00f6ln")])
def test_json_on_stdout_is_in_its_characters(monkeypatch: pytest.MonkeyPatch, encoding: str, name: str):
    stdout = io.TextIOWrapper(io.BytesIO(), encoding)
    monkeypatch.setattr(sys, "stdout", stdout)
    recording = Recording(Path("Köln.wav"), "Köln")
    Results(None, ("json",)).write(recording, Diarization((), 2, "Köln"), ("json",))
    assert f'"uri": "{name}"' in stdout.buffer.getvalue().decode("utf-8")


def test_where_nobody_speaks_at_all_the_regions_are_not_to_blame(recwarn: pytest.WarningsRecorder):
    results = Results(None, ("rttm",), regions={"talk": ((0.0, 1.0),)})
    results.write(Recording(Path("talk.wav"), "talk"), Diarization((), 2, "talk"), ("rttm",))
    assert not recwarn.list


def test_what_another_run_has_done_meanwhile_is_skipped(
    cli: Cli, make: Callable[..., Path], model: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
):
    """Before a recording is processed, and during it."""
    waves, folder = [make(f"{name}.wav") for name in ("one", "two", "three")], tmp_path / "out"
    assert cli("diarize", *waves, "--model", model, "-o", tmp_path / "there").code == 0
    results = {path.name: path.read_text() for path in (tmp_path / "there").iterdir()}

    def job(recording, progress):
        del progress
        for name in ("one.rttm", "two.rttm") if recording.name == "one" else ():
            (folder / name).write_text("of another run")
        return diarized[recording.name]

    diarized = {
        name: Diarization.from_rttm(tmp_path / "there" / f"{name}.rttm", name) for name in ("one", "two", "three")
    }
    capfd.readouterr()
    assert run(map(str, waves), Results(folder, ("rttm",), skip_existing=True), lambda: job, quiet=False) == 0
    assert "2 recordings diarized, 1 skipped" in capfd.readouterr().err
    assert (folder / "one.rttm").read_text() == (folder / "two.rttm").read_text() == "of another run"
    assert (folder / "three.rttm").read_text().split()[:4] == results["three.rttm"].split()[:4]


def test_the_bar_counts_recordings_and_the_stages_of_each(
    make: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    shown: list[float] = []
    monkeypatch.setattr(Progress, "update", lambda *_, completed, **__: shown.append(completed))

    def job(recording, progress):
        for stage, done, total in (("read", 1.0, None), ("read", 1.0, 2.0), ("read", 3.0, 2.0), ("model", 1, 2)):
            progress(stage, done, total)
        return Diarization((), 1, recording.name)

    waves = [str(make(f"{name}.wav")) for name in ("one", "two")]
    assert run(waves, Results(tmp_path / "out", ("rttm",)), lambda: job) == 0
    assert shown == pytest.approx([0, 0, 0.05, 0.1, 0.525, 1, 1, 1.05, 1.1, 1.525])


def test_what_another_run_has_written_while_this_one_writes_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    there, sync = tmp_path / "talk.rttm", os.fsync

    def meanwhile(file: int) -> None:
        there.write_text("of another run")
        sync(file)

    monkeypatch.setattr(os, "fsync", meanwhile)
    written = Recording(tmp_path / "talk.wav", "talk"), Diarization((), 2, "talk"), ("rttm",)
    Results(tmp_path, ("rttm",), skip_existing=True).write(*written)
    there.unlink()
    with pytest.raises(InputError, match="exists already"):
        Results(tmp_path, ("rttm",)).write(*written)
    assert [path.name for path in tmp_path.iterdir()] == ["talk.rttm"]
    assert there.read_text() == "of another run"
    with pytest.raises(InputError, match="cannot write"):  # and no other run has
        Results(there / "out", ("rttm",), skip_existing=True).write(*written)


def test_the_last_line_names_only_the_first_of_many_that_failed(cli: Cli, model: Path, tmp_path: Path):
    recordings = [tmp_path / f"call_{number:02}.wav" for number in range(11)]
    outcome = cli("diarize", *recordings, "--model", model)
    named = ", ".join(each.stem for each in recordings[:10])
    assert outcome.err.splitlines()[-1] == f"0 recordings diarized, 11 failed: {named}, ..."
    assert len(outcome.errors) == 11
    assert cli("diarize", *recordings[:10], "--model", model).err.endswith(f", 10 failed: {named}\n")
