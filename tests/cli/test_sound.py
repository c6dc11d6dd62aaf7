"""Sources of a stream: files in their own time, pipes and microphones."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from sortformer.cli.sound import Sound
from sortformer.streaming import Session
from tests.audio.makers import chirp
from tests.cli.conftest import Cli
from tests.cli.streams import EXPECTED, raw, turns
from tests.processes import started


@pytest.mark.parametrize(("pace", "samples"), [(True, 1_600), (False, 16_000)])
def test_a_file_in_its_own_time_comes_in_tenths_of_a_second(wav: Path, pace: bool, samples: int):
    assert len(next(Sound(str(wav), None, None, None, pace, None).blocks())) == samples


@pytest.mark.parametrize("content", [raw, Path.read_bytes], ids=["samples", "recording"])
@pytest.mark.parametrize("piece", [1_001, 100_000])
def test_what_comes_through_a_pipe_in_any_pieces_is_the_file(
    cli: Cli, model: Path, wav: Path, pipe: Callable[..., None], content: Callable[[Path], bytes], piece: int
):
    pipe(content(wav), piece=piece)
    outcome = cli("stream", "-", "--model", model, "--preset", "0.3s")
    assert (outcome.code, outcome.err) == (0, "")
    assert turns(outcome.out) == EXPECTED


def test_a_named_pipe_is_heard_while_it_is_written(cli: Cli, model: Path, wav: Path, tmp_path: Path, monkeypatch):
    heard, push = threading.Event(), Session.push
    monkeypatch.setattr(Session, "push", lambda *block: (heard.set(), push(*block))[1])
    os.mkfifo(tmp_path / "meeting.pcm")

    def speak() -> None:
        with (tmp_path / "meeting.pcm").open("wb", buffering=0) as fifo:
            for piece in (raw(wav)[:20_000], raw(wav)[20_000:]):
                fifo.write(piece)
                assert heard.wait(60)

    with ThreadPoolExecutor() as others:
        speaking = others.submit(speak)
        outcome = cli("stream", tmp_path / "meeting.pcm", "--rate", 16_000, "--model", model)
        speaking.result()
    assert (outcome.code, outcome.err) == (0, "")
    assert turns(outcome.out) == EXPECTED
    assert outcome.out.startswith("SPEAKER meeting 1 ")


def test_raw_samples_of_another_rate(cli: Cli, model: Path, wav: Path, pipe: Callable[..., None]):
    pipe(raw(wav))
    assert turns(cli("stream", "-", "--rate", 8_000, "--model", model).out)[0][1] == pytest.approx(4.0, abs=0.02)


@pytest.mark.parametrize("content", [b"", b"a"])
def test_a_pipe_through_which_no_sample_comes_is_an_error(
    cli: Cli, model: Path, pipe: Callable[..., None], tmp_path: Path, content: bytes
):
    pipe(content)
    outcome = cli("stream", "-", "--model", model, "-o", tmp_path / "meeting.rttm")
    assert (outcome.code, outcome.out) == (1, "")
    assert not (tmp_path / "meeting.rttm").exists()
    assert outcome.errors == ["no samples were received from the pipe: check the program that should send them"]


def test_one_channel_is_heard_of_a_file_or_of_a_recording_through_a_pipe(
    cli: Cli, model: Path, make: Callable[..., Path], pipe, monkeypatch: pytest.MonkeyPatch
):
    wave = chirp(2.0, 16_000)
    two, heard, push = make("two.wav", np.stack([0 * wave, wave], axis=1)), [], Session.push
    monkeypatch.setattr(Session, "push", lambda self, block: (heard.append(block), push(self, block))[1])
    for source in (two, "-"):
        for channel, loud in ((1, 0), (2, np.abs(wave).max())):
            pipe(two.read_bytes())
            heard.clear()
            assert cli("stream", source, "--model", model, "--channel", channel).code == 0
            assert np.abs(np.concatenate(heard)).max() == pytest.approx(loud, abs=1e-3)
        pipe(two.read_bytes())
        outcome = cli("stream", source, "--model", model, "--channel", 3)
        assert outcome.code == 1
        assert outcome.errors[0].endswith("has 2 channels: channel 3 does not exist")


def test_raw_samples_have_no_channels_to_choose_from(cli: Cli, model: Path, wav: Path, pipe: Callable[..., None]):
    pipe(raw(wav))
    outcome = cli("stream", "-", "--model", model, "--channel", 1)
    assert (outcome.code, outcome.out, len(outcome.errors)) == (1, "", 1)
    assert "these are raw samples, which must be mono" in outcome.errors[0]


def test_a_telephone_line_is_heard_by_its_encoding(cli: Cli, model: Path, wav: Path, pipe: Callable[..., None]):
    pipe((b"\xa0" * 8 + b"\x20" * 8) * 1_000)
    outcome = cli("stream", "-", "--model", model, "--encoding", "mulaw", "--preset", "0.3s")
    assert (outcome.code, outcome.err) == (0, "")
    assert turns(outcome.out) == EXPECTED
    for source, encoding, why in (("-", "mp3", "no sample encoding 'mp3'"), (wav, "mulaw", "raw samples from a pipe")):
        outcome = cli("stream", source, "--model", model, "--encoding", encoding)
        assert outcome.code == 2
        assert why in " ".join(outcome.err.split())


@pytest.mark.parametrize("piece", [2, 1000])
def test_a_pipe_that_only_a_file_can_be_read_from_asks_for_it(cli: Cli, model: Path, pipe, piece: int):
    pipe(b"fLaC" + bytes(4000), piece=piece)
    outcome = cli("stream", "-", "--model", model)
    assert (outcome.code, outcome.out, len(outcome.errors)) == (1, "", 1)
    assert "give its file instead, or decode it first" in outcome.errors[0]


def test_a_paced_file_takes_its_time(cli: Cli, model: Path, wav: Path, monkeypatch: pytest.MonkeyPatch):
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    monkeypatch.setattr("time.sleep", lambda seconds: now.append(now.pop() + seconds))
    assert turns(cli("stream", wav, "--pace", "--model", model).out) == EXPECTED
    assert now[0] == pytest.approx(2.0)


class Microphone:
    """A substitute for sounddevice: two blocks of audio, then it is unplugged."""

    __spec__ = ModuleSpec("sounddevice", None)

    class PortAudioError(Exception):
        pass

    class InputStream:
        def __init__(self, rate: int, *, device, channels: int, dtype: str, callback, finished_callback) -> None:
            if rate == 11_025 or device == 1:
                raise Microphone.PortAudioError("Invalid sample rate")
            if device not in (None, "USB", 2):
                raise ValueError(f"No input device matching {device!r}")
            assert (channels, dtype) == (1, "float32")
            self.heard, self.ended, self.rate = callback, finished_callback, rate

        def __enter__(self) -> None:
            for piece in np.split(chirp(2.0, self.rate)[:, None], 2):
                self.heard(piece, len(piece), None, None)
            self.ended()

        def __exit__(self, *_: object) -> None:
            pass

    @staticmethod
    def query_devices() -> list[dict[str, object]]:
        names = {"Built-in": 1, "Speakers": 0, "Podcast USB": 2}
        return [{"name": name, "max_input_channels": inputs} for name, inputs in names.items()]


def test_the_microphone_is_what_is_heard_if_nothing_is_named(
    cli: Cli, model: Path, deaf_model: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "sounddevice", Microphone)
    outcome = cli("stream", "--model", model)
    assert turns(outcome.out) == EXPECTED
    assert outcome.out.startswith("SPEAKER microphone 1 ")
    outcome = cli("stream", "--model", deaf_model)
    assert (outcome.code, outcome.err) == (0, "warning: no speech found in microphone\n")
    assert cli("stream", "--model", model, "--rate", 48_000).code == 0
    outcome = cli("stream", "--model", model, "--rate", 11_025)
    assert (outcome.code, len(outcome.errors)) == (1, 1)
    assert "cannot be opened (Invalid sample rate)" in outcome.errors[0]
    for named in ("USB", "2"):
        assert turns(cli("stream", "--model", model, "--microphone", named).out) == EXPECTED
    for wrong, words in (("USB 3", "there is no single microphone 'USB 3'; choose one of"), ("1", "there are")):
        outcome = cli("stream", "--model", model, "--microphone", wrong)
        assert (outcome.code, len(outcome.errors)) == (1, 1)
        assert outcome.errors[0].endswith(f"{words} 0 (Built-in), 2 (Podcast USB)")


def test_without_sounddevice_one_sentence_says_what_to_install(cli: Cli, model: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "sounddevice", None)
    outcome = cli("stream", "--model", model)
    assert outcome.code == 1
    assert outcome.errors == [
        "the microphone needs sounddevice: pip install sounddevice, or sortformer with its extra [mic]"
    ]


@pytest.mark.parametrize("stdin", ["pipe", "file", "nothing"])
def test_who_sends_sound_to_the_microphone_is_told_so(model: Path, wav: Path, stdin: str):
    with wav.open() as file:
        given = {"pipe": subprocess.PIPE, "file": file, "nothing": subprocess.DEVNULL}[stdin]
        with started("stream", "--model", model, stdin=given) as process:
            _, err = process.communicate()
    assert ("note: listening to the microphone; '-' reads from stdin instead" in err) == (stdin != "nothing")


def test_a_keyboard_is_no_stream(cli: Cli, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: True))
    outcome = cli("stream", "-")
    assert outcome.code == 1
    assert "pipe some in" in outcome.errors[0]
