"""The gain of a recording: NVIDIA's rule, but per recording."""

from dataclasses import replace

import pytest
import torch

from sortformer.config.model import FeatureConfig
from sortformer.features import LogMel, peak_gain

CONFIG = FeatureConfig(num_mels=8, gain="peak")


def test_it_divides_by_the_highest_sample_with_its_sign():
    wave = torch.tensor([[0.25, -0.9, 0.1], [-0.5, -0.25, -0.1], [0.0, 0.0, 0.0]])
    torch.testing.assert_close(peak_gain(wave), torch.tensor([[1 / 0.251], [1000.0], [1000.0]]))


def test_features_do_not_depend_on_loudness_neighbours_or_padding():
    wave = torch.randn(2, 1600, generator=torch.Generator().manual_seed(0)) * 0.1
    features = LogMel(CONFIG)
    alone, _ = features(wave[:1])
    padded = torch.cat([torch.cat([wave[:1], torch.full((1, 1600), 9.0)], 1), wave.view(1, -1)])
    batch, _ = features(padded, torch.tensor([1600, 3200]))
    torch.testing.assert_close(batch[:1, :10], alone)
    # Not exactly, as the guard against silence is not scaled.
    torch.testing.assert_close(features(wave[:1] * 3)[0], alone, atol=0.1, rtol=0)
    by_hand = LogMel(replace(CONFIG, gain="none"))(wave[:1] * peak_gain(wave[:1]))[0]
    torch.testing.assert_close(alone, by_hand)


def test_a_stream_has_no_peak_to_divide_by():
    features = LogMel(CONFIG)
    with pytest.raises(ValueError, match="whole recording"):
        features.step(features.start(), torch.zeros(1, 160))
