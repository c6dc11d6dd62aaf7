"""Training runs that take a second, and what is left of them."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from sortformer.config.data import DataConfig
from sortformer.config.simulation import SimulationConfig
from sortformer.config.train import OptimizerConfig, StageConfig, TeacherConfig, TrainConfig
from sortformer.simulate import VoiceBank
from tests.small_models import small_config

__all__ = ["assert_same", "log_of", "small_run", "state_of", "write_voice_table"]


def small_run(bank: Path, cache: Path) -> TrainConfig:
    """Return six steps of a tiny model, with dropout, in two stages; without evaluation."""
    return TrainConfig(
        DataConfig(str(bank), speeds=(1.0,), cache=str(cache)),
        (StageConfig(3, 2.0, 2), StageConfig(6, 3.0, 1, speaker_weights=(0.0, 1.0))),
        steps=6,
        model=small_config({"dropout": 0.1}, {"num_slots": 2, "dropout": 0.1}),
        simulation=SimulationConfig(num_slots=2, speaker_weights=(0.5, 0.5)),
        optimizer=OptimizerConfig(warmup_steps=2),
        seed=3,
        workers=0,
        evaluate_conversations=0,
    )


def state_of(run: Path) -> dict[str, Any]:
    """Return what a run would resume from."""
    return torch.load(run / "state.pt", weights_only=True)


def log_of(run: Path) -> list[dict[str, Any]]:
    """Return the lines of a run's log without the clock's."""
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    return [{key: value for key, value in line.items() if key != "seconds"} for line in lines]


def write_voice_table(path: Path, config: TrainConfig, size: int = 5) -> TrainConfig:
    """Write random embeddings for the voices of a run, and return the run with them as its teacher."""
    bank = VoiceBank.load(config.data.bank, "train", config.data.speeds, config.data.cache)
    names = np.array([f"{voice.speaker}@{voice.speed:g}" for voice in bank.voices])
    np.savez(path, voice=names, embedding=np.random.default_rng(0).normal(size=(len(names), size)))
    return replace(config, teacher=TeacherConfig(str(path)))


def assert_same(found: Any, expected: Any, place: str = "state") -> None:
    """Assert that two states are equal, tensors to the bit."""
    assert type(found) is type(expected), place
    if isinstance(expected, dict):
        assert found.keys() == expected.keys(), place
        for key, value in expected.items():
            assert_same(found[key], value, f"{place}.{key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), place
        for index, value in enumerate(expected):
            assert_same(found[index], value, f"{place}[{index}]")
    elif isinstance(expected, torch.Tensor):
        assert found.equal(expected), place
    else:
        assert found == expected, place
