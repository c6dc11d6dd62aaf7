"""Nemotron 3 from Hugging Face's folder reproduces the recorded output of transformers 5.23, to 1e-4."""

import numpy as np
import pytest
import torch

from sortformer import checkpoint
from tests.checkpoint.goldens import GOLDEN, activations, shared


def test_hidden_states_before_the_classifier_agree() -> None:
    model, _ = checkpoint.load(GOLDEN / "tiny_nemotron3")
    with np.load(GOLDEN / "tiny_nemotron3.npz") as recorded:
        found = activations(model, torch.from_numpy(recorded["feats"]), torch.tensor([1000]))
        np.testing.assert_allclose(found["encoder_hidden"].numpy(), recorded["encoder_hidden"], atol=1e-4, rtol=0)


def test_output_is_one_frame_every_10_ms() -> None:
    model, _ = checkpoint.load(GOLDEN / "tiny_nemotron3")
    wave = torch.randn(1, 16_000 + 5 * 160 + 3, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        output = model(wave)
    assert output.probs.shape == (1, model.config.grid.output_frames(wave.shape[1]), 8) == (1, 105, 8)
    assert model.config.grid.step_s == 0.01
    assert output.valid.all()


@pytest.mark.data
def test_logits_agree_where_nothing_is_remembered_yet() -> None:
    """Transformers' offline pass uses chunks of 340 frames with 40 of right context; the first has no cache."""
    model, _ = checkpoint.load(shared("models/tiny_nemotron3"))
    with np.load(shared("models/tiny_nemotron3.npz")) as recorded:
        feats, logits = torch.from_numpy(recorded["feats"][:, : 380 * 8]), recorded["offline_logits"][:, : 340 * 8]
    found = activations(model, feats, torch.tensor([feats.shape[1]]))
    assert np.abs(logits).max() > 1
    np.testing.assert_allclose(found["logits"][:, : 340 * 8].numpy(), logits, atol=1e-4, rtol=0)
