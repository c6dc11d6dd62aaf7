"""Raw samples that arrive in pieces."""

from pathlib import Path

import numpy as np
import pytest

from sortformer import InputError, audio
from sortformer.audio.encodings import ENCODINGS
from sortformer.audio.raw import RawDecoder
from sortformer.audio.sniffing import HEAD_BYTES

DEMO = Path(__file__).parents[2] / "demos" / "meeting.wav"
SPEECH = audio.read(DEMO)[10 * 16_000 : 12 * 16_000]


def decoded(content: bytes, cut: int, encoding: str | None = None) -> np.ndarray:
    decoder = RawDecoder(encoding)
    return np.concatenate([decoder.decode(content[start : start + cut]) for start in range(0, len(content), cut)])


@pytest.mark.parametrize("cut", [1, 999, 100_000])
@pytest.mark.parametrize("silence_bytes", [0, 10_000])
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (SPEECH.astype("<f4").tobytes(), "these are not 16-bit samples, little-endian and mono: give their encoding"),
        (b"UklGRiSAPgBXQVZFZm10IBAAAAAB" * 100, "these bytes are text, not samples"),
        (b"\0\0\0\x20ftypM4A " + bytes(3_000), "the first bytes are the header of a recording"),
    ],
)
def test_what_is_no_16_bit_sample_is_refused(content: bytes, words: str, silence_bytes: int, cut: int):
    with pytest.raises(InputError, match=words):
        decoded(bytes(silence_bytes) + content, cut)


@pytest.mark.parametrize("gain", [1.0, 0.001])
@pytest.mark.parametrize("cut", [3, 100_000])
@pytest.mark.parametrize("silence_bytes", [0, 10_000])
def test_speech_however_loud_is_taken(gain: float, silence_bytes: int, cut: int):
    speech = np.rint(SPEECH / np.abs(SPEECH).max() * 32_767 * gain).astype("<i2")
    heard = decoded(bytes(silence_bytes) + speech.tobytes(), cut)
    np.testing.assert_array_equal(heard[silence_bytes // 2 :], speech / np.float32(32_768))


@pytest.mark.parametrize("cut", [1, 100_000])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_recording_is_refused_whatever_the_encoding(encoding: str, cut: int):
    with pytest.raises(InputError, match="the first bytes are the header of a recording, not samples"):
        decoded(DEMO.read_bytes()[:5_000], cut, encoding)


@pytest.mark.parametrize("encoding", ["s16le", "f32le"])
def test_whoever_gives_the_encoding_may_send_any_samples(encoding: str):
    content = np.random.default_rng(0).uniform(-1, 1, HEAD_BYTES).astype("<f4").tobytes()
    assert len(decoded(content, 1_000, encoding)) == len(content) // (2 if encoding == "s16le" else 4)
