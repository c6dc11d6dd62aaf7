"""Training runs of about a second, and their results."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from sortformer.config.data import DataConfig
from sortformer.config.simulation import SimulationConfig
from sortformer.config.train import CountTeacherConfig, OptimizerConfig, StageConfig, TeacherConfig, TrainConfig
from sortformer.simulate import VoiceBank
from tests.small_models import small_config

__all__ = [
    "after",
    "assert_same",
    "counting_network",
    "log_of",
    "small_run",
    "state_of",
    "write_counting_network",
    "write_voice_table",
]


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


def after(steps: int) -> Callable[[int], bool]:
    """Return a callback that stops a run after so many steps."""
    return lambda done: done >= steps


def state_of(run: Path) -> dict[str, Any]:
    """Return the saved state of a run."""
    return torch.load(run / "state.pt", weights_only=True)


def log_of(run: Path) -> list[dict[str, Any]]:
    """Return the lines of a run's log without times."""
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    return [{key: value for key, value in line.items() if key != "seconds"} for line in lines]


def write_voice_table(path: Path, config: TrainConfig, size: int = 5) -> TrainConfig:
    """Write random embeddings for the voices of a run, and return the run with them as its teacher."""
    bank = VoiceBank.load(config.data.bank, "train", config.data.speeds, config.data.cache)
    names = np.array([f"{voice.speaker}@{voice.speed:g}" for voice in bank.voices])
    np.savez(path, voice=names, embedding=np.random.default_rng(0).normal(size=(len(names), size)))
    return replace(config, teacher=TeacherConfig(str(path)))


def counting_network(seed: int = 0) -> dict[str, np.ndarray]:
    """Return random weights of a small counting network, under the names of its file."""
    rng = np.random.default_rng(seed)
    shapes: dict[str, tuple[int, ...]] = {"sinc": (6, 1, 31)}
    for name, shape in {"conv1d.1": (5, 6, 5), "conv1d.2": (4, 5, 3)}.items():
        shapes |= {f"sincnet.{name}.weight": shape, f"sincnet.{name}.bias": shape[:1]}
    for name, channels in {"wav_norm1d": 1, "norm1d.0": 6, "norm1d.1": 5, "norm1d.2": 4}.items():
        shapes |= {f"sincnet.{name}.weight": (channels,), f"sincnet.{name}.bias": (channels,)}
    for layer, inputs in enumerate((4, 6)):
        for way in ("", "_reverse"):
            end = f"l{layer}{way}"
            shapes |= {f"lstm.weight_ih_{end}": (12, inputs), f"lstm.weight_hh_{end}": (12, 3)}
            shapes |= {f"lstm.bias_ih_{end}": (12,), f"lstm.bias_hh_{end}": (12,)}
    for name, shape in {"linear.0": (8, 6), "linear.1": (7, 8), "classifier": (7, 7)}.items():
        shapes |= {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
    weights = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    return weights | {"speakers": np.array([0, 1, 1, 1, 2, 2, 3])}


def write_counting_network(path: Path, config: TrainConfig) -> TrainConfig:
    """Write a random counting network, and return the run with it as a teacher."""
    np.savez(path, **counting_network())
    return replace(config, count_teacher=CountTeacherConfig(str(path), weight=0.4, final_weight=0.2))


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
