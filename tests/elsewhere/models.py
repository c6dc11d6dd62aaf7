"""Models, their streams, and the diarizer on a separate device."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import torch
from torch import Tensor, nn

from sortformer.config.carrying import memory_chunk_frames
from sortformer.config.model import ModelConfig
from sortformer.config.stream import StreamConfig
from sortformer.diarizer import Diarizer
from sortformer.streaming import Session
from tests.elsewhere.both import both, gradients
from tests.small_models import SHAPES, small_model
from tests.streaming.tiny import REMEMBERING, noise, remembering_model

DEMO = Path(__file__).parents[2] / "demos/meeting.wav"
SHORT = 24_000  # samples


@pytest.mark.parametrize("shape", [*SHAPES, *(f"remembering {kind}" for kind in REMEMBERING)])
def test_models(shape):
    config: ModelConfig = SHAPES.get(shape) or REMEMBERING[shape.removeprefix("remembering ")]

    def run(model: nn.Module, wave: Tensor, num_samples: Tensor) -> list[Tensor | None]:
        output = model.train()(wave, num_samples)
        return gradients([output.logits, *output.estimates, *output.losses.values(), output.emb], model)

    wave = torch.from_numpy(np.stack([noise(SHORT, 1), noise(SHORT, 2)]))
    both(run, small_model(config), wave, torch.tensor([SHORT, 15_000]))


@pytest.mark.parametrize("kind", REMEMBERING)
def test_streams_of_layers_that_remember(kind):
    stream = StreamConfig.by_memory(memory_chunk_frames(REMEMBERING[kind]) or 4)

    def run(model: nn.Module) -> list[np.ndarray]:
        session = Session(model, stream)
        first = session.push(noise(SHORT)[:9_000]).probs
        session = Session.restore(model, session.snapshot())
        return [first, session.push(noise(SHORT)[9_000:]).probs, session.flush().probs]

    both(run, remembering_model(kind))


def test_the_diarizer():
    """By voice: whole, in windows, with an enrolled voice, at 8 kHz, with early exit, and live in a pool."""
    loaded = Diarizer.load(device="cpu")
    audio, rate = soundfile.read(DEMO, frames=128_000, start=160_000, dtype="float32")
    asked: list[dict[str, Any]] = [{}, {"preset": "30s"}, {"enroll": {"ann": audio[:100_000]}}]

    def run(model: nn.Module) -> list[str]:
        diarizer = replace(loaded, model=model)
        found = [diarizer(audio, sample_rate=rate, **options) for options in asked]
        found += [
            diarizer(audio[::2].copy(), sample_rate=8_000),
            replace(diarizer, exit_confidence=0.6)(audio, sample_rate=rate),
        ]
        pool = diarizer.pool("1s")
        sessions = [pool.open("one"), pool.open("two")]
        for start in range(0, len(audio), 50_000):
            pool.push(dict.fromkeys(sessions, audio[start : start + 50_000]))
        return [result.to_rttm() for result in [*found, *(session.finish() for session in sessions)]]

    both(run, loaded.model)
