"""What a stream begins with: 16-bit samples, however loud, are told from other encodings of the same sound."""

import numpy as np
import pytest

from sortformer.audio.sniffing import HEAD_BYTES, is_noise

HISS = np.diff(np.random.default_rng(0).normal(0, 1, HEAD_BYTES))  # an "s": weak at low frequencies


@pytest.mark.parametrize("gain", [0.01, 1.0, 10.0])
def test_speech_may_begin_with_a_hiss_that_is_clipped(gain: float):
    assert not is_noise((32_767 * (gain * HISS).clip(-1, 1)).astype("<i2").tobytes()[:HEAD_BYTES])


@pytest.mark.parametrize("kind", ["<f4", ">f4", "<f8"])
def test_clipping_does_not_hide_another_encoding(kind: str):
    assert is_noise(HISS.clip(-1, 1).astype(kind).tobytes()[:HEAD_BYTES])
