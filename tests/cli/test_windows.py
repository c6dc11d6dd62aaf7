"""Windows of recordings, from manifests or by ``diarize --start`` and ``--end``."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.audio.makers import chirp
from tests.cli.conftest import Cli


def test_a_window_is_heard_in_the_time_of_its_file_and_its_shares_are_its_own(
    cli: Cli, model: Path, wav: Path, tmp_path: Path
):
    row = {"audio_filepath": str(wav), "offset": 1.0, "duration": 0.8}
    (tmp_path / "window.jsonl").write_text(json.dumps(row) + "\n")
    outcome = cli("diarize", tmp_path / "window.jsonl", "--model", model, "-f", "txt", "--max-speakers", 1)
    lines = outcome.out.splitlines()
    assert lines[0] == "meeting  0:00:01.00 - 0:00:01.80  1 speaker"
    assert float(lines[1].split()[2]) > 95


@pytest.mark.parametrize(("offset", "end"), [(0.0, "3.50"), (0.5, "4.00")])
def test_a_window_that_ends_after_its_file_is_named(
    cli: Cli, model: Path, wav: Path, tmp_path: Path, offset: float, end: str
):
    manifest = tmp_path / "windows.jsonl"
    manifest.write_text(json.dumps({"audio_filepath": str(wav), "offset": offset, "duration": 3.5}))
    outcome = cli("diarize", manifest, "--model", model)
    assert outcome.code == 0
    assert outcome.out.startswith(f"SPEAKER meeting 1 {offset:.3f} ")
    assert f"meeting should end at {end} s of {wav}, but the file ends at 2.00 s" in outcome.err


@pytest.mark.parametrize(("offset", "duration", "heard"), [(0.5, 0.003, "0.003"), (1.95, 1, "0.050")])
def test_a_window_of_a_moment_is_too_short(
    cli: Cli, model: Path, wav: Path, tmp_path: Path, offset: float, duration: float, heard: str
):
    manifest = tmp_path / "windows.jsonl"
    manifest.write_text(json.dumps({"audio_filepath": str(wav), "offset": offset, "duration": duration}))
    outcome = cli("diarize", manifest, "--model", model)
    assert outcome.code == 1
    assert outcome.err == f"error: meeting holds only {heard} s of audio: at least 0.1 s is needed\n"


def test_windows_in_which_nobody_speaks_are_named(cli: Cli, deaf_model: Path, wav: Path, tmp_path: Path):
    manifest = tmp_path / "windows.jsonl"
    lines = [{"audio_filepath": str(wav), "offset": at, "duration": 0.5, "uniq_id": f"at{at}"} for at in (0.0, 0.5)]
    manifest.write_text("".join(json.dumps(line) + "\n" for line in lines))
    outcome = cli("diarize", manifest, "--model", deaf_model, "-o", tmp_path / "out")
    warned = [line.partition(", ")[0].partition(":")[2] for line in outcome.err.splitlines() if "no speech" in line]
    assert warned == [" no speech found in at0.0", " no speech found in at0.5"]


@pytest.mark.parametrize(
    ("times", "offset", "duration"),
    [
        (("--start", "0:01", "--end", "1.8"), 1.0, 0.8),
        (("--start", "00:00:00.5", "--end", "90:00"), 0.5, 5399.5),
        (("--start", "0.5"), 0.5, None),
        (("--end", "1.5"), 0.0, 1.5),
    ],
)
def test_start_and_end_are_a_window(
    cli: Cli, model: Path, wav: Path, tmp_path: Path, times: tuple[str, ...], offset: float, duration: float | None
):
    manifest = tmp_path / "window.jsonl"
    manifest.write_text(json.dumps({"audio_filepath": str(wav), "offset": offset, "duration": duration}))
    window, excerpt = (cli("diarize", *given, "--model", model, "-f", "json") for given in ((manifest,), (wav, *times)))
    assert excerpt.code == 0
    assert excerpt == window


def test_the_settings_of_a_window_have_its_channel(cli: Cli, model: Path, make: Callable[..., Path]):
    call = make("call.wav", chirp(2.0, 16_000, channels=2))
    options = ("--channel", 2, "--model", model, "-f", "json")
    whole, window = (json.loads(cli("diarize", call, *options, *times).out) for times in ((), ("--start", 0.5)))
    assert window["settings"] == whole["settings"]
    assert window["settings"]["channel"] == 2


@pytest.mark.parametrize(
    ("times", "code", "said"),
    [
        (("--start", "2", "--end", "1:00"), 1, "meeting.wav ends before 2 s, where 'meeting' starts"),
        (("--start", "0:30", "--end", "30"), 2, "--end must be after --start, got 30 to 30 s"),
        (("--start", "-1"), 2, "a time must be in seconds, or like 1:02:03.5, got '-1'"),
        (("--end", "1:75"), 2, "a time must be in seconds, or like 1:02:03.5, got '1:75'"),
        (("--end", "1:75:00"), 2, "a time must be in seconds, or like 1:02:03.5, got '1:75:00'"),
        (("--end", "nan"), 2, "a time must be in seconds, or like 1:02:03.5, got 'nan'"),
    ],
)
def test_times_that_are_no_window_are_refused(
    cli: Cli, model: Path, wav: Path, times: tuple[str, ...], code: int, said: str
):
    outcome = cli("diarize", wav, *times, "--model", model)
    assert (outcome.code, outcome.out) == (code, "")
    assert said in " ".join(outcome.err.split())


def test_a_window_is_of_one_file(cli: Cli, model: Path, wav: Path, make: Callable[..., Path]):
    outcome = cli("diarize", wav, make("other.wav"), "--end", 1, "--model", model)
    assert outcome.errors == ["--uri, --start and --end are for one recording, not 2: use a manifest"]


def test_a_manifest_that_selects_a_window_leaves_none_to_start_and_end(
    cli: Cli, model: Path, wav: Path, tmp_path: Path
):
    manifest = tmp_path / "talk.jsonl"
    manifest.write_text(json.dumps({"audio_filepath": str(wav), "offset": 1.0, "duration": 0.5}))
    outcome = cli("diarize", manifest, "--end", "1.5", "--model", model)
    assert outcome.errors == ["the manifest selects a window already: leave out --start and --end"]
    outcome = cli("diarize", manifest, "--uri", "part", "--model", model, "-o", tmp_path)
    assert (outcome.code, outcome.err) == (0, "1 recording diarized\n")
    assert (tmp_path / "part.rttm").exists()
    assert cli("diarize", manifest, "--uri", "part", "--model", model).out.startswith("SPEAKER part 1 1.000 ")
    manifest.write_text(json.dumps({"audio_filepath": str(wav), "offset": 0.0, "duration": 2.0}))
    assert cli("diarize", manifest, "--end", "1.5", "--model", model) == cli(
        "diarize", wav, "--end", "1.5", "--model", model
    )


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are a matter of POSIX systems")
def test_a_window_is_not_of_a_pipe(cli: Cli, model: Path, tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    for piped in ("-", tmp_path / "pipe"):
        outcome = cli("diarize", piped, "--end", 1, "--model", model)
        assert outcome.code == 2
        assert "--start and --end need a file, not a pipe" in outcome.err
