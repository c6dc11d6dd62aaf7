"""NVIDIA's streaming models, from samples to probabilities: equal to recordings of NeMo and transformers."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from sortformer import checkpoint
from sortformer.config.stream import STREAM_PRESETS, SpeakerCacheConfig, StreamConfig
from sortformer.streaming import Session, step, stream_probabilities
from sortformer.streaming.front import next_chunk, start_front
from sortformer.streaming.state import start

MODELS = Path(__file__).resolve().parents[2] / "../shared/data/golden/models"

PRESETS = {
    "30.4s": STREAM_PRESETS["nvidia-30.4s"],
    "10s": STREAM_PRESETS["nvidia-10s"],
    "1.04s": STREAM_PRESETS["nvidia-1.04s"],
    "0.32s": STREAM_PRESETS["nvidia-0.32s"],
    "tiny": StreamConfig(10, 3, 1, 0, 12, 10, SpeakerCacheConfig(40)),
}


def _recorded(name):
    if not (MODELS / name).exists():
        pytest.skip(f"../shared/data/golden/models/{name} is absent")
    return MODELS / name


@pytest.mark.data
@pytest.mark.parametrize("name", PRESETS)
def test_version_2_streams_as_in_nemo(name):
    model, _ = checkpoint.load(_recorded("tiny_v2.nemo"))
    with np.load(_recorded("tiny_v2.npz")) as recorded:
        found = stream_probabilities(Session(model, PRESETS[name]), [recorded["stream_wave"][0]])
        expected = recorded[f"stream_{name}_probs"][0]
    assert np.ptp(expected) > 0.5
    np.testing.assert_allclose(found, expected, atol=1e-4, rtol=0)


@pytest.mark.data
def test_nemotron_3_streams_as_in_transformers():
    model, _ = checkpoint.load(_recorded("tiny_nemotron3"))
    config = STREAM_PRESETS["nemotron3-30.4s"]
    with np.load(_recorded("tiny_nemotron3.npz")) as recorded:
        feats, expected = torch.from_numpy(recorded["feats"]), torch.from_numpy(recorded["offline_logits"]).sigmoid()
    front = replace(start_front(model.features), mel=feats, ended=True)
    state, found = start(config, model.config.encoder.dim, model.config.head.num_slots), []
    with torch.no_grad():
        while (following := next_chunk(model.features, model.encoder, config, front))[1] is not None:
            front, chunk = following
            state, probs = step(model, config, state, chunk)
            found.append(probs)
    assert state.compressed.item()
    torch.testing.assert_close(torch.cat(found, dim=1), expected, atol=1e-4, rtol=0)
