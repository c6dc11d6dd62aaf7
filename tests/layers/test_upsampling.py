"""Upsampling: sub-frames depend on their frame and its two neighbours, and not on padding."""

import pytest
import torch

from sortformer.config.model import EncoderConfig, FeatureConfig, HeadConfig, ModelConfig
from sortformer.errors import ConfigError
from sortformer.layers import SubframeUpsampling
from sortformer.model import Sortformer

FACTOR, DIM, FRAMES = 4, 3, 6


def test_it_starts_as_the_repetition_of_each_frame():
    x = torch.randn(2, FRAMES, DIM)
    out = SubframeUpsampling(DIM, FACTOR)(x, torch.ones(2, FRAMES, dtype=torch.bool))
    torch.testing.assert_close(out, x.repeat_interleave(FACTOR, dim=1))


def test_it_is_the_convolution_written_out():
    layer = SubframeUpsampling(DIM, FACTOR)
    torch.nn.init.normal_(layer.conv.weight)
    torch.nn.init.normal_(layer.conv.bias)
    x = torch.randn(1, FRAMES, DIM)
    with torch.no_grad():
        out = layer(x, torch.ones(1, FRAMES, dtype=torch.bool))
        for frame in range(FRAMES):
            for sub in range(FACTOR):
                rows = slice(sub * DIM, (sub + 1) * DIM)
                expected = layer.conv.bias[rows].clone()
                for tap, neighbour in enumerate((frame - 1, frame, frame + 1)):
                    if 0 <= neighbour < FRAMES:
                        expected += layer.conv.weight[rows, :, tap] @ x[0, neighbour]
                torch.testing.assert_close(out[0, frame * FACTOR + sub], expected)


def test_padding_reaches_no_valid_frame():
    layer = SubframeUpsampling(DIM, FACTOR)
    torch.nn.init.normal_(layer.conv.weight)
    x = torch.randn(1, FRAMES, DIM)
    valid = torch.arange(FRAMES)[None] < 4
    with torch.no_grad():
        alone = layer(x[:, :4], valid[:, :4])
        x[:, 4:] = torch.nan
        torch.testing.assert_close(layer(x, valid)[:, : 4 * FACTOR], alone)


def small_model(upsampling: int, **head) -> Sortformer:
    torch.manual_seed(0)
    return Sortformer(
        ModelConfig(
            FeatureConfig(num_mels=16),
            EncoderConfig(kind="transformer", subsampling="stacking", dim=8, layers=1, heads=2, ff_dim=16),
            HeadConfig(dim=8, layers=0, heads=1, permutation="none", estimate_layers=(), upsampling=upsampling, **head),
        )
    ).eval()


@pytest.mark.parametrize("upsampling", [1, 2, 8])
@pytest.mark.parametrize("feature_frames", [1, 16, 21])
def test_a_model_gives_the_frames_of_its_grid_and_rows_do_not_touch(upsampling, feature_frames):
    model = small_model(upsampling)
    samples = torch.tensor([feature_frames * 160 + 7, 30 * 160])
    wave = torch.randn(2, 30 * 160)
    with torch.no_grad():
        batch = model(wave, samples)
        alone = model(wave[:1, : int(samples[0])])
    frames = model.config.grid.output_frames(int(samples[0]))
    assert batch.valid.sum(1).tolist() == [frames, model.config.grid.output_frames(30 * 160)]
    assert alone.logits.shape == (1, frames, 4)
    torch.testing.assert_close(batch.probs[:1, :frames], alone.probs)


def test_estimates_and_finer_output_exclude_each_other():
    with pytest.raises(ConfigError, match="excludes estimate_layers"):
        HeadConfig(upsampling=8)
