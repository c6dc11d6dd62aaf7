"""Samples from bytes that arrive in any pieces, at any rate."""

import numpy as np
import pytest

from sortformer import InputError
from sortformer.audio.samples import Samples
from sortformer.audio.signal import resampled

TONE = np.sin(np.arange(4_001) / 9).astype("<f4")


@pytest.mark.parametrize("cut", [3, 999, 100_000])
@pytest.mark.parametrize("rate", [8_000, 16_000])
def test_samples_of_any_rate_are_taken_at_16_khz_however_they_are_cut(rate: int, cut: int):
    content, samples = TONE.tobytes(), Samples("f32le", rate)
    for start in range(0, len(content), cut):
        samples.add(content[start : start + cut])
    samples.add(b"", last=True)
    expected = np.concatenate(list(resampled([TONE], rate)))
    assert len(samples) == len(expected)
    heads = [samples.take(100), samples.take(len(samples))]
    np.testing.assert_allclose(np.concatenate(heads), expected, atol=1e-6)
    assert len(samples) == 0


@pytest.mark.parametrize(("encoding", "rate"), [(None, 16_000), ("f32le", 16_000), ("mulaw", 8_000), ("alaw", 8_000)])
def test_without_a_rate_telephone_codes_are_at_that_of_telephones(encoding: str | None, rate: int):
    usual, given = Samples(encoding), Samples(encoding, rate)
    for samples in (usual, given):
        samples.add(b"\xa0\x20" * 1_000, last=True)
    np.testing.assert_array_equal(usual.take(len(usual)), given.take(len(given)))


def test_samples_of_another_encoding_are_refused():
    with pytest.raises(InputError, match="these are not 16-bit samples, little-endian and mono: give their encoding"):
        Samples().add(TONE.tobytes())
