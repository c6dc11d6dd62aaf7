"""Live audio: a pause is not the end, and a recording's header determines its format."""

import contextlib
import errno
import io
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import SimpleNamespace
from typing import BinaryIO

import av
import numpy as np
import pytest
import soundfile

from sortformer import audio
from sortformer.audio.live import microphone, piped
from sortformer.errors import InputError
from tests.audio.makers import FFMPEG_FORMATS, SOUNDFILE_FORMATS, chirp, encode, lag, made, write

DEMO = Path(__file__).parents[2] / "demos" / "meeting.wav"

# The index of these is at the end of the file by default.
LATE = ("m4a", "mp4", "mov")


@contextlib.contextmanager
def pipe() -> Iterator[tuple[BinaryIO, BinaryIO]]:
    outlet, inlet = os.pipe()
    with os.fdopen(outlet, "rb") as hearer, os.fdopen(inlet, "wb", buffering=0) as sender:
        yield hearer, sender


def sent(content: bytes, **options: int) -> np.ndarray:
    """Return all audio decoded from a pipe."""

    def send() -> None:
        sender.write(content)
        sender.close()

    with pipe() as (hearer, sender):
        sending = threading.Thread(target=send)
        sending.start()
        try:
            return np.concatenate(list(piped(hearer, **options)))
        finally:
            hearer.read()
            sending.join()


def test_a_pause_of_what_does_not_block_is_not_the_end():
    with pipe() as (hearer, sender):
        os.set_blocking(hearer.fileno(), False)
        sender.write(bytes(2_000))
        blocks = piped(hearer)
        assert len(next(blocks)) == 1_000
        later = threading.Timer(0.1, lambda: (sender.write(bytes(1_400)), sender.close()))
        later.start()
        assert [len(block) for block in blocks] == [700]
        later.join()


def test_where_pipes_always_block_there_is_no_way_to_ask_for_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delattr(os, "set_blocking")  # as in Python 3.11 on Windows
    assert len(sent(bytes(4_000))) == 2_000


@pytest.mark.parametrize("extension", sorted({*SOUNDFILE_FORMATS, *FFMPEG_FORMATS}))
def test_what_comes_through_a_pipe_is_what_the_file_holds(tmp_path: Path, extension: str):
    options = {"movflags": "faststart"} if extension in LATE else {}
    path = made(tmp_path / f"meeting.{extension}", chirp(3, 24_000, channels=2), 24_000, **options)
    heard, held = sent(path.read_bytes()), audio.read(path)
    assert len(heard) == pytest.approx(len(held), abs=0.05 * 16_000)  # some formats are trimmed in files only
    shared = min(len(heard), len(held)) - 800
    np.testing.assert_allclose(heard[:shared], held[:shared], atol=0.02 if extension in {"ogg", "opus"} else 1e-5)


def test_a_recording_is_heard_while_it_is_made(tmp_path: Path):
    content = write(tmp_path / "meeting.wav", chirp(9, 16_000), 16_000).read_bytes()
    with pipe() as (hearer, sender):
        heard = threading.Event()

        def speak() -> None:
            sender.write(content[:200_000])
            assert heard.wait(60)
            sender.write(content[200_000:])
            sender.close()

        speaking = threading.Thread(target=speak)
        speaking.start()
        blocks = piped(hearer)
        first = next(blocks)
        heard.set()
        assert len(first) + sum(map(len, blocks)) == 9 * 16_000
        speaking.join()


def test_what_has_come_of_a_recording_is_heard_at_once(tmp_path: Path):
    content = write(tmp_path / "meeting.wav", chirp(20, 16_000), 16_000, subtype="PCM_16").read_bytes()
    with pipe() as (hearer, sender):
        came, heard = threading.Semaphore(0), []

        def listen() -> None:
            for block in piped(hearer):
                heard.append(len(block) / 16_000)
                came.release()

        listening = threading.Thread(target=listen)
        listening.start()
        sender.write(content[: 2 * 12 * 16_000])  # more than FFmpeg needs to understand it
        while 12 - sum(heard) >= 0.3:
            assert came.acquire(timeout=60), heard
        sender.close()
        listening.join()


def test_a_bw64_is_not_taken_for_samples(tmp_path: Path):
    content = write(tmp_path / "meeting.wav", chirp(3, 48_000), 48_000, format="RF64", subtype="PCM_16").read_bytes()
    assert len(sent(b"BW64" + content[4:])) == 3 * 16_000


@pytest.mark.parametrize("size", [0, 0x7FFFFFFF, 0xFFFFFFFF])
def test_a_header_that_was_written_before_anybody_knew_promises_nothing(tmp_path: Path, size: int):
    content = bytearray(write(tmp_path / "meeting.wav", chirp(2, 16_000), 16_000).read_bytes())
    at = content.index(b"data") + 4
    content[at : at + 4] = size.to_bytes(4, "little")
    assert len(sent(bytes(content))) == 2 * 16_000


def test_damage_is_warned_about(tmp_path: Path):
    content = write(tmp_path / "meeting.flac", chirp(5, 16_000), 16_000).read_bytes()
    with pytest.warns(audio.AudioWarning, match=r"damaged or truncated .*: using [\d.]+ s$"):
        assert len(sent(content[: len(content) // 2])) < 5 * 16_000


def test_an_index_that_comes_too_late_asks_for_the_file(tmp_path: Path):
    content = encode(tmp_path / "meeting.mp4", chirp(20, 16_000), 16_000, "aac").read_bytes()
    with pytest.raises(InputError, match="give its file"):
        sent(content)


@pytest.mark.parametrize(
    "head",
    [
        b"RIFF",
        b"RF64",
        b"BW64",
        b"riff",
        b"FORM",
        b"fLaC",
        b"OggS",
        b"ID3",
        b".snd",
        b"caff",
        b"\x1aE\xdf\xa3",
        b"\x06\x0e+4",
        b"\0\0\0\x20ftypM4A ",
    ],
)
def test_what_only_begins_like_a_recording_asks_for_the_file(head: bytes):
    with pytest.raises(InputError, match="give its file"):
        sent(head + bytes(4_000))


@pytest.mark.parametrize(
    "text",
    ["<!DOCTYPE html>\n<title>404 – nicht gefunden</title>\n" + 99 * "<p>é</p>", "not found", "\ufeff会议\t" * 2_000],
)
def test_a_page_in_place_of_the_sound_is_refused(text: str):
    with pytest.raises(InputError, match="is text, not audio: check the program, or the URL"):
        sent(text.encode())


@pytest.mark.parametrize("loudest", [0, 1, 100, 3_000, 16_000])
@pytest.mark.parametrize("count", [1_600, 4_000])
def test_samples_are_no_text_and_no_recording(loudest: int, count: int):
    samples = np.random.default_rng(0).integers(-loudest, loudest, count, "<i2", endpoint=True)
    assert len(sent(samples.tobytes())) == count


@pytest.mark.parametrize("content", [b"hello\n", bytes(2 * 1_599)])
def test_next_to_nothing_is_refused(content: bytes):
    with pytest.raises(
        InputError, match=rf"only {len(content) // 2} samples, less than 0\.1 s, were received from the pipe"
    ):
        sent(content)


@pytest.mark.parametrize("rate", [1_000, 8_000, 48_000])
def test_next_to_nothing_is_less_than_a_tenth_of_a_second_of_any_rate(rate: int):
    assert len(sent(bytes(2 * rate // 10), rate=rate)) == pytest.approx(1_600, abs=1)
    with pytest.raises(InputError, match=rf"only {rate // 10 - 1} samples, less than 0\.1 s"):
        sent(bytes(2 * rate // 10 - 2), rate=rate)


def test_of_nothing_at_all_it_is_said_that_nothing_came():
    with pytest.raises(InputError, match=r"^no samples were received from the pipe"):
        sent(b"")


class Slow(io.BytesIO):
    """A pipe of which the first bytes come alone, and the rest while these are looked at."""

    def read1(self, size: int | None = -1, /) -> bytes:
        return super().read1(size if self.tell() else 1_999)


@pytest.mark.parametrize("header", [44, 0])
def test_nothing_is_lost_of_what_comes_while_the_first_is_looked_at(tmp_path: Path, header: int):
    path = write(tmp_path / "meeting.wav", chirp(3, 16_000), 16_000)
    heard = np.concatenate(list(piped(Slow(path.read_bytes()[44 - header :]))))
    np.testing.assert_array_equal(heard, audio.read(path))


@pytest.mark.parametrize(("extension", "codec"), [("mp3", "libmp3lame"), ("aac", "aac"), ("ts", "aac")])
def test_a_broadcast_is_heard_from_wherever_one_joins_it(tmp_path: Path, extension: str, codec: str):
    content = encode(tmp_path / f"radio.{extension}", audio.read(DEMO), 16_000, codec).read_bytes()
    heard, held = sent(content[20_001:]), audio.read(DEMO)
    assert 0.5 * len(held) < len(heard) < len(held)
    late = lag(held, heard)
    match = held[late + 800 : late + len(heard) - 800]
    assert np.corrcoef(match, heard[800 : 800 + len(match)])[0, 1] > 0.9


def test_a_broadcast_may_begin_more_tracks_while_it_is_heard(tmp_path: Path):
    alone = encode(tmp_path / "alone.ts", chirp(10, 48_000), 48_000, "aac").read_bytes()
    more = tmp_path / "more.ts"
    with av.open(str(more), "w") as container:
        tracks = [container.add_stream("aac", rate=48_000, layout="mono") for _ in range(3)]
        for number in range(48):
            for track in tracks:
                frame = av.AudioFrame.from_ndarray(np.zeros((1, 1_024), np.float32), format="fltp", layout="mono")
                frame.sample_rate, frame.pts, frame.time_base = 48_000, 1_024 * number, Fraction(1, 48_000)
                container.mux(track.encode(frame))
    assert len(sent(alone + more.read_bytes())) == pytest.approx(11 * 16_000, rel=0.02)


class Failing(io.BytesIO):
    """A pipe that fails, or whose hearer is interrupted, where it would end."""

    def __init__(self, content: bytes, error: BaseException | None = None) -> None:
        super().__init__(content)
        self.error = error or ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")

    def read1(self, size: int | None = -1, /) -> bytes:
        if content := super().read1(size):
            return content
        raise self.error


@pytest.mark.parametrize("header", [44, 0])
def test_what_came_before_a_pipe_fails_is_heard(tmp_path: Path, capfd: pytest.CaptureFixture[str], header: int):
    content = write(tmp_path / "meeting.wav", chirp(5, 16_000), 16_000).read_bytes()
    heard = []
    with pytest.raises(
        InputError, match=r"reading from this pipe failed \(Connection reset by peer\): check the program"
    ):
        heard.extend(piped(Failing(content[44 - header :])))
    assert sum(map(len, heard)) >= 4 * 16_000
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("header", [44, 0])
def test_what_came_before_an_interrupt_is_heard(tmp_path: Path, header: int):
    content = write(tmp_path / "meeting.wav", chirp(5, 16_000), 16_000).read_bytes()
    heard = []
    with pytest.raises(KeyboardInterrupt):
        heard.extend(piped(Failing(content[44 - header :], KeyboardInterrupt())))
    assert sum(map(len, heard)) >= 4 * 16_000


@pytest.mark.parametrize("count", [0, 100])
def test_a_pipe_that_fails_at_once_is_refused(count: int):
    with pytest.raises(InputError, match="reading from this pipe failed"):
        next(piped(Failing(bytes(count))))


def test_a_recording_needs_no_encoding():
    """As samples of a telephone line, two channels would last twice as long."""
    with pytest.raises(InputError, match=r"an encoding is for raw samples, and .* is a recording"):
        next(piped(io.BytesIO(DEMO.read_bytes()), encoding="mulaw"))


@pytest.mark.parametrize("subtype", ["FLOAT", "ULAW", "ALAW"])
@pytest.mark.parametrize("endian", ["LITTLE", "BIG"])
def test_samples_of_another_kind_are_no_speech(subtype: str, endian: str):
    file = io.BytesIO()
    soundfile.write(file, audio.read(DEMO), 16_000, subtype, endian, "RAW")
    content = file.getvalue()
    with pytest.raises(InputError, match=r"neither 16-bit samples nor a recording .*in another encoding, give .*mulaw"):
        sent(content)
    with pytest.raises(InputError, match="a rate is for 16-bit samples, which these are not"):
        sent(content, rate=48_000)


@pytest.mark.parametrize("subtype", ["FLOAT", "ULAW", "ALAW"])
def test_samples_of_another_kind_are_recognised_after_silence_too(subtype: str):
    file = io.BytesIO()
    soundfile.write(file, np.r_[np.zeros(2_000), audio.read(DEMO)], 16_000, subtype, "LITTLE", "RAW")
    with pytest.raises(InputError, match=r"16-bit samples.*: give .*mulaw"):
        sent(file.getvalue())


@pytest.mark.parametrize("piece", [500, 3_200, 64_000])
def test_what_it_is_does_not_depend_on_how_fast_it_comes(piece: int):
    samples = np.random.default_rng(0).uniform(-0.9, 0.9, 32_000) * np.r_[np.ones(1_600), np.full(30_400, 0.02)]
    content = (32_767 * samples).astype("<i2").tobytes()

    def send() -> None:
        for start in range(0, len(content), piece):
            sender.write(content[start : start + piece])
            time.sleep(0.01 if start < 8_000 else 0)
        sender.close()

    with pipe() as (hearer, sender):
        sending = threading.Thread(target=send)
        sending.start()
        with pytest.raises(InputError, match="neither 16-bit samples nor a recording"):
            list(piped(hearer))
        hearer.read()
        sending.join()


@pytest.mark.parametrize("gain", [1, 1_000])
def test_samples_may_be_as_loud_and_cut_off_as_they_like(gain: int):
    samples = (gain * audio.read(DEMO)).clip(-1, 1)
    loud = (32_767 * samples).astype("<i2").tobytes()
    assert len(sent(loud)) == len(samples)


def test_a_rate_is_for_raw_samples(tmp_path: Path):
    content = write(tmp_path / "meeting.wav", chirp(1, 8_000), 8_000).read_bytes()
    with pytest.raises(InputError, match="a recording has its own rate, so leave it out"):
        sent(content, rate=16_000)
    assert len(sent(content)) == len(sent(content[44:], rate=8_000)) == 16_000


def test_a_channel_is_of_recordings_alone(tmp_path: Path):
    samples = chirp(1, 16_000, channels=2)
    content = write(tmp_path / "meeting.wav", samples, 16_000, subtype="FLOAT").read_bytes()
    np.testing.assert_array_equal(sent(content, channel=2), samples[:, 1])
    with pytest.raises(InputError, match="has 2 channels: channel 3 does not exist"):
        sent(content, channel=3)
    with pytest.raises(InputError, match="a channel is for recordings, and these are raw samples"):
        sent(bytes(4_000), channel=1)


@pytest.mark.parametrize("rate", [16_000, 48_000])
def test_a_microphone_is_heard_at_its_rate_until_it_goes_away(monkeypatch: pytest.MonkeyPatch, rate: int):
    samples = chirp(1, rate)

    @contextlib.contextmanager
    def opened(hertz: int, callback: Callable, finished_callback: Callable, **_: object) -> Iterator[None]:
        assert hertz == rate
        buffer = np.empty((rate // 2, 1), np.float32)
        for part in np.split(samples, 2):
            buffer[:, 0] = part  # there is one, which is written again and again
            callback(buffer, len(buffer), None, None)
        finished_callback()
        yield

    module = SimpleNamespace(InputStream=opened, PortAudioError=OSError, __spec__=ModuleSpec("sounddevice", None))
    monkeypatch.setitem(sys.modules, "sounddevice", module)  # pyright: ignore[reportArgumentType]
    np.testing.assert_array_equal(np.concatenate(list(microphone(rate))), audio.read(samples, rate))


def test_without_portaudio_one_sentence_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "sounddevice.py").write_text("raise OSError('PortAudio library not found')")
    monkeypatch.delitem(sys.modules, "sounddevice", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError, match="needs PortAudio: install it"):
        next(microphone())
