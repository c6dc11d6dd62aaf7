"""NVIDIA's v1 and v2 from ``.nemo`` reproduce the recorded output of NeMo 3.0.0, layer by layer, to 1e-4."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from sortformer import checkpoint
from sortformer.features import LogMel
from tests.checkpoint.goldens import GOLDEN, activations, shared

LAYERS = ("pre_encode", "conformer0", "conformer1", "transformer0", "transformer1", "probs")
RUNS = ("b1", "b1short", "b2")


def recorded_run(path: Path, run: str) -> tuple[Tensor, Tensor, dict[str, np.ndarray]]:
    """Return waves, lengths and recorded arrays of a run: the first row, the second, or both as a ragged batch."""
    with np.load(path) as archive:
        arrays = {name.removeprefix(f"{run}_"): archive[name] for name in archive if name.startswith(f"{run}_")}
        wave, lengths = torch.from_numpy(archive["wave"]), torch.from_numpy(archive["wave_len"])
    if run == "b1":
        return wave[:1], lengths[:1], arrays
    if run == "b1short":
        return wave[1:, : int(lengths[1])], lengths[1:], arrays
    return wave, lengths, arrays


def largest_difference(ours: Tensor, recorded: np.ndarray, lengths: Tensor) -> float:
    """Return the largest difference over the valid frames, (B, T, D) each."""
    return max(
        float(np.abs(own[:length].numpy() - other[:length]).max())
        for own, other, length in zip(ours, recorded, lengths.tolist(), strict=True)
    )


def spectrum_rounding(feats: np.ndarray) -> np.ndarray:
    """Return how much log-mel values (T, M) may differ between two FFTs in float32.

    The rounding of an FFT is relative to the maximum of its frame, so a band 65 dB below has lost three of its seven
    digits: NeMo's own values there are 3e-4 from those in float64, and each processor has its own kernel.
    """
    below = feats.max(axis=1, keepdims=True) - feats
    return 2 * np.finfo(np.float32).eps * np.exp(below / 2)


def test_v1_agrees_layer_by_layer_from_recorded_features() -> None:
    model, _ = checkpoint.load(GOLDEN / "tiny_v1.nemo")
    with np.load(GOLDEN / "tiny_v1.npz") as recorded:
        feats = torch.from_numpy(recorded["feats"]).transpose(1, 2)
        found = activations(model, feats, torch.tensor([700]))
        assert found["probs"].max() > 0.9 > 0.1 > found["probs"].min(), "the recording should be lively"
        for name in LAYERS:
            np.testing.assert_allclose(found[name].numpy(), recorded[name], atol=1e-4, rtol=0, err_msg=name)


@pytest.mark.data
@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("name", ["tiny_v1", "tiny_v2"])
def test_from_the_wave_on_with_the_gain_of_nemo(name: str, run: str) -> None:
    """NeMo's offline gain is that of the whole batch, so it is passed in."""
    model, _ = checkpoint.load(shared(f"models/{name}.nemo"))
    wave, num_samples, recorded = recorded_run(shared(f"models/{name}.npz"), run)
    front_end = LogMel(replace(model.config.features, gain="none"))
    feats, lengths = front_end(wave * (1 / (wave.max() + 1e-3)), num_samples)
    assert lengths.tolist() == recorded["feat_len"].tolist()
    theirs = recorded["feats"].transpose(0, 2, 1)
    for own, other, length in zip(feats.numpy(), theirs, lengths.tolist(), strict=True):
        assert (np.abs(own[:length] - other[:length]) < 1e-4 + spectrum_rounding(other[:length])).all()
    found = activations(model, feats, lengths)
    frames = -(-lengths // 8)
    for layer in LAYERS:
        assert largest_difference(found[layer], recorded[layer], frames) < 1e-4, layer


@pytest.mark.data
@pytest.mark.parametrize("run", ["b1", "b1short"])
def test_v1_of_one_recording_needs_nothing_passed_in(run: str) -> None:
    model, _ = checkpoint.load(shared("models/tiny_v1.nemo"))
    wave, num_samples, recorded = recorded_run(shared("models/tiny_v1.npz"), run)
    with torch.inference_mode():
        output = model(wave, num_samples)
    assert output.probs.shape == recorded["probs"].shape
    np.testing.assert_allclose(output.probs.numpy(), recorded["probs"], atol=1e-4, rtol=0)


@pytest.mark.data
def test_v1_gives_a_row_of_a_batch_what_it_gives_it_alone() -> None:
    """A difference from NeMo: the gain is per recording."""
    model, _ = checkpoint.load(shared("models/tiny_v1.nemo"))
    wave, num_samples, _ = recorded_run(shared("models/tiny_v1.npz"), "b2")
    # A second row at half the amplitude, whose gain must not affect the first.
    wave = wave * torch.tensor([[0.5], [1.0]])
    alone = recorded_run(shared("models/tiny_v1.npz"), "b1short")[2]
    with torch.inference_mode():
        output = model(wave, num_samples)
    frames = alone["probs"].shape[1]
    np.testing.assert_allclose(output.probs[1, :frames].numpy(), alone["probs"][0], atol=1e-4, rtol=0)
    assert not output.valid[1, frames:].any()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
@pytest.mark.parametrize("name", ["tiny_v1.nemo", "tiny_nemotron3"])
def test_a_gpu_agrees_with_the_cpu_to_a_thousandth(name: str) -> None:
    """Convolutions on a GPU may round to a mantissa of ten bits (TF32)."""
    model, _ = checkpoint.load(GOLDEN / name)
    wave = torch.randn(2, 5 * 16_000, generator=torch.Generator().manual_seed(0)) * 0.1
    num_samples = torch.tensor([5 * 16_000, 3 * 16_000])
    with torch.inference_mode():
        expected = model(wave, num_samples).probs
        found = model.cuda()(wave.cuda(), num_samples.cuda()).probs.cpu()
    torch.testing.assert_close(found, expected, atol=1e-3, rtol=0)
