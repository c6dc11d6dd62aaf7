"""The benchmark of one speaker per channel: leaks are attenuated and delayed, and each side has one voice."""

import runpy
from pathlib import Path

import numpy as np
import torch

from sortformer.simulate import VoiceBank
from sortformer.simulate.dev_set import dev_simulator
from tests.simulate.makers import make_bank_folder

SCRIPT = runpy.run_path(str(Path(__file__).resolve().parents[2] / "recipes/benchmark/channels.py"))


def test_a_leak_is_the_other_side_softer_and_later():
    sides = np.random.default_rng(0).normal(0, 0.1, (16_000, 2)).astype(np.float32)
    heard = SCRIPT["leaking"](sides, -20, 50)
    assert np.array_equal(heard[:800], sides[:800])
    assert np.allclose(heard[800:] - sides[800:], 0.1 * sides[:-800, ::-1], atol=1e-6)
    assert np.array_equal(SCRIPT["leaking"](sides, None, 0), sides)


def test_each_side_of_a_conversation_has_one_voice(tmp_path: Path):
    bank = VoiceBank.load(make_bank_folder(tmp_path / "bank"))
    sides, turns = SCRIPT["conversation"](dev_simulator(bank, "near", 2), torch.Generator().manual_seed(0))
    assert sides.shape == (960_000, 2)
    ratios = np.zeros((2, 2))
    for slot in (0, 1):
        spoken = np.zeros(960_000, bool)
        for turn in turns:
            if turn.speaker == f"speaker_{slot}":
                spoken[round(turn.start * 16_000) : round(turn.end * 16_000)] = True
        ratios[slot] = np.square(sides[spoken]).mean(axis=0) / np.square(sides[~spoken]).mean(axis=0)
    assert max(ratios.diagonal().min(), ratios[:, ::-1].diagonal().min()) > 10
