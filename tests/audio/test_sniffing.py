"""What a stream begins with: 16-bit samples, however loud, are told from other encodings of the same sound."""

import io
from pathlib import Path

import numpy as np
import pytest

from sortformer.audio import live
from sortformer.audio.sniffing import HEAD_BYTES, begins_recording, is_noise
from tests.audio.makers import encode

HISS = np.diff(np.random.default_rng(0).normal(0, 1, HEAD_BYTES))  # an "s": weak at low frequencies


@pytest.mark.parametrize("gain", [0.01, 1.0, 10.0])
def test_speech_may_begin_with_a_hiss_that_is_clipped(gain: float):
    assert not is_noise((32_767 * (gain * HISS).clip(-1, 1)).astype("<i2").tobytes()[:HEAD_BYTES])


@pytest.mark.parametrize("kind", ["<f4", ">f4", "<f8"])
def test_clipping_does_not_hide_another_encoding(kind: str):
    assert is_noise(HISS.clip(-1, 1).astype(kind).tobytes()[:HEAD_BYTES])


def test_a_broadcast_may_begin_with_silence(tmp_path: Path):
    wave = np.concatenate([np.zeros(32_000, np.float32), HISS.clip(-1, 1).astype(np.float32)])
    content = encode(tmp_path / "talk.ts", wave, 16_000, "aac").read_bytes()
    assert not is_noise(content[:HEAD_BYTES])
    heard = np.concatenate(list(live.piped(io.BytesIO(content))))
    assert len(heard) == pytest.approx(len(wave), abs=3_000)


@pytest.mark.parametrize("sample", ["4700", "47000000"])  # of 16 and 32 bits, as those of f32le
def test_silence_with_an_offset_is_no_broadcast(sample: str):
    assert not begins_recording(bytes.fromhex(sample) * (HEAD_BYTES // 4))
