"""``sortformer diarize``: sources, options, warnings, and Ctrl-C."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import unicodedata
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from sortformer import checkpoint
from sortformer.config.clustering import ClusteringConfig
from sortformer.config.postprocess import PostprocessConfig
from sortformer.formats import json as json_format
from sortformer.formats import rttm
from tests.audio.makers import chirp
from tests.cli.conftest import Cli
from tests.processes import started
from tests.tiny import tiny_model


def test_each_channel_is_a_speaker(cli: Cli, model: Path, make: Callable[..., Path], tmp_path: Path):
    wave = chirp(4.0, 16_000)
    silent = np.zeros_like(wave[:32_000])
    call = make("call.wav", np.stack([np.append(wave[:32_000], silent), np.append(silent, wave[32_000:])], axis=1))
    outcome = cli("diarize", call, "--model", model, "--channel", "each")
    assert (outcome.code, [line.split()[7] for line in outcome.out.splitlines()]) == (0, ["channel_1", "channel_2"])
    manifest = tmp_path / "calls.jsonl"
    entry = {"audio_filepath": str(call), "offset": 2.5, "duration": 1.5}
    manifest.write_text(json.dumps(entry), encoding="utf-8")
    (line,) = cli("diarize", manifest, "--model", model, "--channel", "each").out.splitlines()
    assert (line.split()[7], float(line.split()[3])) == ("channel_2", 2.5)
    outcome = cli("diarize", call, "--model", model, "--channel", "each", "--num-speakers", 2)
    assert outcome.code == 2
    assert "leave out known speakers (enroll) and numbers of speakers" in " ".join(outcome.err.split())


def test_what_is_wrong_in_each_channel_is_said_once(cli: Cli, model: Path, make: Callable[..., Path]):
    wave = chirp(4.0, 16_000)
    call = make("call.wav", np.stack([wave, np.roll(wave, 8_000) * (np.arange(len(wave)) > 48_000)], axis=1))
    call.write_bytes(call.read_bytes()[: call.stat().st_size // 2])
    outcome = cli("diarize", call, "--model", model, "--channel", "each")
    assert outcome.code == 0
    assert outcome.err.count("is damaged or truncated") == 1


def test_json_says_what_made_it(cli: Cli, model: Path, wav: Path):
    document = json.loads(cli("diarize", wav, "--model", model, "-f", "json", "--onset", 0.75, "--max-speakers", 1).out)
    assert document["schema_version"] == 1
    assert document["model"] == str(model)
    assert document["speakers"] == ["speaker_0"]
    assert document["time_axis"] == {"start_s": 0.0, "step_s": 0.08, "num_frames": 25}
    assert document["settings"]["postprocess"]["onset"] == 0.75
    assert document["settings"]["max_speakers"] == 1
    assert 0.9 < document["turns"][0]["confidence"] < 1


def test_each_option_is_its_setting(cli: Cli, model: Path, wav: Path):
    given = {"onset": 0.75, "offset": 0.25, "pad_on": 0.1, "pad_off": 0.2, "min_on": 0.3, "min_off": 0.4}
    options = [part for name, value in given.items() for part in (f"--{name.replace('_', '-')}", value)]
    options += ["--decision", "least_error", "--preset", "1s"]
    asked = json.loads(cli("diarize", wav, "--model", model, "-f", "json", *options).out)["settings"]
    settings = asked["postprocess"]
    found = {name: settings[name if name in settings else f"{name}_s"] for name in given}
    assert (found, settings["decision"], asked["preset"]) == (given, "least_error", "1s")


@pytest.mark.parametrize(("distance", "expected"), [(0.4, {"threshold": 0.4, "max_speakers": 8}), (0, None)])
def test_the_distance_of_voices_can_be_set_and_clustering_left_out(cli, wav, model, distance, expected):
    document = json.loads(cli("diarize", wav, "--model", model, "-f", "json", "--clustering", distance).out)
    assert document["settings"]["postprocess"]["clustering"] == expected


@pytest.mark.parametrize(("option", "number", "room"), [("num", 9, 9), ("max", 12, 12), ("min", 9, 40), ("max", 3, 8)])
def test_there_is_room_for_the_speakers_that_are_asked_for(cli, wav, model, option, number, room):
    options = (f"--{option}-speakers", number, "--clustering", 0.4, "-f", "json")
    document = json.loads(cli("diarize", wav, "--model", model, *options).out)
    assert document["settings"]["postprocess"]["clustering"]["max_speakers"] == room


def test_who_leaves_the_models_clustering_out_by_a_name_is_told(cli: Cli, wav: Path, tmp_path: Path):
    model, _ = checkpoint.load(tiny_model(tmp_path / "tiny"))
    checkpoint.save(tmp_path / "voices", model, PostprocessConfig(clustering=ClusteringConfig(0.4)))
    base = ("diarize", wav, "--model", tmp_path / "voices", "--postprocess", "none")
    note = "note: 'none' has no clustering, which this model uses: add --clustering 0.4"
    assert note in cli(*base).err
    assert "note" not in cli(*base, "--clustering", 0).err + cli(*base, "--clustering", 0.4).err


def test_published_post_processing_by_name_with_changes_on_top(cli: Cli, model: Path, wav: Path):
    options = ("--postprocess", "v2-dihard3", "--onset", 0.75)
    document = json.loads(cli("diarize", wav, "--model", model, "-f", "json", *options).out)
    settings = document["settings"]["postprocess"]
    assert (settings["onset"], settings["offset"], settings["pad_on_s"]) == (0.75, 1.0, 0.063)


def test_a_licence_is_said_once_however_many_recordings(cli: Cli, wav: Path, tmp_path: Path):
    nemo = Path(__file__).resolve().parents[1] / "golden/models/tiny_v1.nemo"
    model = shutil.copyfile(nemo, tmp_path / "diar_sortformer_4spk-v1.nemo")
    again = shutil.copyfile(wav, tmp_path / "again.wav")
    outcome = cli("diarize", wav, again, "--model", model)
    assert outcome.code == 0
    assert outcome.err.count("CC-BY-NC-4.0") == 1


def test_a_folder_means_the_audio_files_in_it(cli: Cli, model: Path, make: Callable[..., Path], tmp_path: Path):
    make("talks/two.WAV")
    make("talks/one.flac")
    make("talks/deeper/three.wav")
    (tmp_path / "talks" / "notes.txt").write_text("not audio")
    (tmp_path / "talks" / "._two.WAV").write_bytes(b"\0\5\26\7")  # as macOS leaves them on other disks
    outcome = cli("diarize", tmp_path / "talks", "--model", model)
    assert outcome.code == 0
    assert list(rttm.parse(outcome.out)) == ["one", "two"]


def test_a_file_that_is_named_twice_is_done_once(cli: Cli, model: Path, wav: Path):
    assert cli("diarize", wav, wav.parent, "--model", model).out.count("speaker_0") == 1


def test_one_file_under_two_names_has_two_results(cli: Cli, model: Path, wav: Path, tmp_path: Path):
    for name in ("x1.wav", "x2.wav"):
        (tmp_path / name).symlink_to(wav)
    (tmp_path / "ids.jsonl").write_text(
        "".join(json.dumps({"audio_filepath": wav.name, "uniq_id": name}) + "\n" for name in "AB")
    )
    given = (tmp_path / "x1.wav", tmp_path / "x2.wav", wav.parent / "." / "x1.wav", tmp_path / "ids.jsonl")
    outcome = cli("diarize", *given, "--model", model, "-o", tmp_path / "out")
    assert (outcome.code, outcome.err) == (0, "4 recordings diarized\n")
    assert sorted(path.stem for path in (tmp_path / "out").iterdir()) == ["A", "B", "x1", "x2"]


def test_a_pipe_is_a_recording(cli: Cli, model: Path, wav: Path, pipe: Callable[..., None]):
    pipe(wav.read_bytes())
    outcome = cli("diarize", "-", "--model", model)
    assert outcome.code == 0
    assert outcome.out == cli("diarize", wav, "--model", model).out.replace("meeting", "stdin")


def test_a_recording_may_be_given_its_name(
    cli: Cli, model: Path, wav: Path, make: Callable[..., Path], tmp_path: Path, pipe: Callable[..., None]
):
    pipe(wav.read_bytes())
    assert cli("diarize", "-", "--uri", "call 7", "--model", model, "-f", "json,rttm", "-o", tmp_path / "out").code == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["call 7.json", "call 7.rttm"]
    assert json.loads((tmp_path / "out" / "call 7.json").read_text())["uri"] == "call 7"
    assert (tmp_path / "out" / "call 7.rttm").read_text().startswith("SPEAKER call_7 ")
    outcome = cli("diarize", wav, make("other.wav"), "--uri", "x", "--model", model)
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.errors == ["--uri, --start and --end are for one recording, not 2: use a manifest"]


def test_the_id_of_a_recording_is_composed_whatever_its_file_is(cli: Cli, model: Path, make: Callable[..., Path]):
    name = "Sitzung mit J\N{LATIN SMALL LETTER O WITH DIAERESIS}rg"
    wav = make(f"{unicodedata.normalize('NFD', name)}.wav")
    outcome = cli("diarize", wav, "--model", model, "--num-speakers", 3, "-o", wav.parent / "out", "-f", "json,csv")
    out = wav.parent / "out" / wav.stem
    assert json.loads(out.with_suffix(".json").read_text(encoding="utf-8"))["uri"] == name
    assert out.with_suffix(".csv").read_text(encoding="utf-8").splitlines()[1].startswith(f"{name},")
    assert [line for line in outcome.err.splitlines() if line.startswith("warning")] == [
        f"warning: {wav.stem}: asked for 3 speakers, but found only 2"
    ]


def test_a_keyboard_is_not_a_recording(cli: Cli, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: True))
    outcome = cli("diarize", "-")
    assert outcome.code == 1
    assert "pipe one in" in outcome.errors[0]


def test_a_real_pipe_that_cannot_seek(model: Path, wav: Path):
    with started("diarize", "-", "--model", model, stdin=subprocess.PIPE, text=False) as process:
        out, _ = process.communicate(wav.read_bytes())
    assert process.returncode == 0
    assert out.startswith(b"SPEAKER stdin 1 0.000 ")


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


def test_a_named_pipe_is_read_once(model: Path, wav: Path, fifo: Path):
    with started("diarize", fifo, "--model", model) as process:
        fifo.write_bytes(wav.read_bytes())
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert out.startswith("SPEAKER pipe 1 0.000 ")


@pytest.mark.parametrize(
    ("offset", "duration", "end"), [(0, 2.0, 2.0), (0, 1.2, 1.2), (0.8, 1.2, 2.0), (0.8, None, 2.0)]
)
def test_a_named_pipe_in_a_manifest_is_read_once(model: Path, wav: Path, fifo: Path, offset, duration, end):
    manifest = fifo.with_name("m.jsonl")
    manifest.write_text(json.dumps({"audio_filepath": str(fifo), "offset": offset, "duration": duration}))
    with started("diarize", manifest, "--model", model, "-f", "json") as process:
        fifo.write_bytes(wav.read_bytes())
        out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    assert json.loads(out)["duration"] == pytest.approx(end, abs=0.01)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_pipe_through_which_nothing_comes_can_be_left(model: Path, fifo: Path, number: signal.Signals):
    with started("diarize", fifo, "--model", model) as process, fifo.open("wb") as unused:
        time.sleep(0.3)
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
        assert not unused.closed
    assert process.returncode == 130
    assert err.endswith("interrupted: 0 of 1 recording finished\n")


def test_a_uem_bounds_the_turns(cli: Cli, model: Path, wav: Path, tmp_path: Path):
    uem = tmp_path / "parts.uem"
    uem.write_text("meeting 1 0.5 0.75\nmeeting 1 1.5 1.6\n")
    outcome = cli("diarize", wav, "--model", model, "--uem", uem, "--max-speakers", 1)
    assert [line.split()[3:5] for line in outcome.out.splitlines()] == [["0.500", "0.250"], ["1.500", "0.100"]]
    assert cli("diarize", wav, "--model", model, "--uem", tmp_path, "--max-speakers", 1).out == outcome.out
    for nothing in ("100 200", "1 1"):
        uem.write_text(f"meeting 1 {nothing}\n")
        outcome = cli("diarize", wav, "--model", model, "--uem", uem)
        assert (outcome.code, outcome.out) == (0, "")
        assert outcome.err == "warning: no region of the UEM lies within meeting, which ends at 2.00 s\n"
    uem.write_text("other 1 0 1\n")
    outcome = cli("diarize", wav, "--model", model, "--uem", uem)
    assert (outcome.code, outcome.errors) == (1, ["the UEM has no regions for 'meeting': add them, or leave out --uem"])


def test_exclusive_is_one_speaker_at_a_time(cli: Cli, model: Path, wav: Path):
    both, one = (rttm.parse(cli("diarize", wav, "--model", model, *how).out) for how in ([], ["--exclusive"]))
    assert [(turn.start, turn.end) for turn in both["meeting"]] == [(0, 1.99), (0, 1.99)]
    assert [(turn.start, turn.end) for turn in one["meeting"]] == [(0, 1.99)]


@pytest.mark.parametrize(
    ("options", "lines"),
    [
        (["--onset", 0.999], 0),
        (["--min-on", 2.5], 0),
        (["--min-on", 1.5], 2),
        (["--num-speakers", 1], 1),
        (["--num-speakers", 2], 2),
    ],
)
def test_options_reach_the_model(cli: Cli, model: Path, wav: Path, options: list, lines: int):
    assert len(cli("diarize", wav, "--model", model, *options).out.splitlines()) == lines


def test_fewer_speakers_than_asked_for_is_a_warning(cli: Cli, model: Path, wav: Path):
    outcome = cli("diarize", wav, "--model", model, "--num-speakers", 3)
    assert (outcome.code, len(outcome.out.splitlines())) == (0, 2)
    assert outcome.err == f"warning: {wav.stem}: asked for 3 speakers, but found only 2\n"
    outcome = cli("diarize", wav, "--model", model, "--min-speakers", 3)
    assert outcome.err == f"warning: {wav.stem}: asked for at least 3 speakers, but found only 2\n"


def test_warnings_name_each_recording_once(cli: Cli, model: Path, wav: Path, tmp_path: Path):
    other = tmp_path / "other.wav"
    other.write_bytes(wav.read_bytes())
    outcome = cli("diarize", wav, other, "--model", model, "--num-speakers", 3, "-o", tmp_path / "out")
    assert [line for line in outcome.err.splitlines() if line.startswith("warning")] == [
        f"warning: {name}: asked for 3 speakers, but found only 2" for name in (wav.stem, "other")
    ]


def test_clips_that_sound_alike_are_told_once_however_many_recordings(cli: Cli, wav: Path, tmp_path: Path):
    again = shutil.copy(wav, tmp_path / "again.wav")
    clips = ["--enroll", f"chair={wav}", "--enroll", f"guest={wav}"]
    alone = tiny_model(tmp_path, speaking=1)
    outcome = cli("diarize", wav, again, "--model", alone, "--clustering", 0.5, "-f", "json", *clips)
    assert (outcome.code, outcome.err.count("sound like one voice")) == (0, 1)
    assert outcome.out.count("sound like one voice") == 2  # each result has it


def test_a_damaged_clip_is_told_once_and_in_each_result_without_its_folder(cli: Cli, wav: Path, tmp_path: Path):
    again, clip = shutil.copy(wav, tmp_path / "again.wav"), tmp_path / "chair.wav"
    clip.write_bytes(wav.read_bytes()[:-20_000])
    alone = tiny_model(tmp_path, speaking=1)
    options = ["--model", alone, "--clustering", 0.5, "-f", "json", "--enroll", f"chair={clip}"]
    outcome = cli("diarize", wav, again, *options)
    assert (outcome.code, outcome.err.count(f"{clip} is damaged or truncated")) == (0, 1)
    assert outcome.out.count('"chair.wav is damaged or truncated') == 2


def test_a_clip_without_a_voice_stops_all_at_once(cli: Cli, wav: Path, model: Path, tmp_path: Path):
    again = shutil.copy(wav, tmp_path / "again.wav")
    outcome = cli("diarize", wav, again, "--model", model, "--clustering", 0.5, "--enroll", f"chair={wav}")
    assert (outcome.code, outcome.out, outcome.err.count("no voice was found in the clip")) == (1, "", 1)


def test_quiet_keeps_errors_and_drops_the_rest(cli: Cli, model: Path, wav: Path, tmp_path: Path):
    outcome = cli("diarize", wav, tmp_path / "absent.wav", "--model", model, "-o", tmp_path / "out", "-q")
    assert outcome.code == 1
    assert outcome.err.splitlines() == [f"error: {outcome.errors[0]}"]


def test_a_terminal_shows_a_bar_and_the_result_stays_clean(model: Path, wav: Path):
    watched, terminal = os.openpty()
    with started("diarize", wav, "--model", model, stderr=terminal) as process:
        os.close(terminal)
        shown = ""
        with contextlib.suppress(OSError):  # EIO once the terminal is closed
            while piece := os.read(watched, 1024):
                shown += piece.decode(errors="replace")
        out, _ = process.communicate(timeout=60)
    os.close(watched)
    assert "meeting" in shown
    assert "━" in shown
    assert [line.split()[0] for line in out.splitlines()] == ["SPEAKER", "SPEAKER"]


def test_ctrl_c_keeps_what_is_finished_and_leaves_no_half_file(model: Path, make: Callable[..., Path], tmp_path: Path):
    first = make("in/000.wav", chirp(20.0, 16_000))
    for number in range(1, 300):
        os.link(first, first.with_name(f"{number:03}.wav"))
    out = tmp_path / "out"
    with started("diarize", first.parent, "--model", model, "-o", out, "-f", "rttm,json") as process:
        while process.poll() is None and not (out / "001.json").exists():
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    files = sorted(path.name for path in out.iterdir())
    assert 4 <= len(files) < 600
    assert all(name.endswith((".rttm", ".json")) for name in files)
    for name in files:
        if name.endswith(".json"):
            assert json_format.read(out / name).speakers == ("speaker_0", "speaker_1")
        else:
            assert list(rttm.read(out / name)) == [name.removesuffix(".rttm")]
    finished = sum(name.endswith(".json") for name in files)
    assert err.splitlines()[-1] == f"interrupted: {finished} of 300 recordings finished"


def test_a_reader_that_hangs_up_ends_the_batch_in_silence(model: Path, make: Callable[..., Path]):
    first = make("in/000.wav")
    for number in range(1, 20):
        os.link(first, first.with_name(f"{number:03}.wav"))
    with started("diarize", first.parent, "--model", model, fresh=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        err = process.stderr.read()
        process.wait(60)
    assert (process.returncode, err) == (1, "")
