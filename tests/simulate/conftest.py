from pathlib import Path

import numpy as np
import pytest

from sortformer.simulate import Rooms, VoiceBank
from tests.simulate.makers import make_bank_folder


@pytest.fixture(scope="session")
def bank_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_bank_folder(tmp_path_factory.mktemp("bank"))


@pytest.fixture(scope="session")
def bank(bank_folder: Path) -> VoiceBank:
    return VoiceBank.load(bank_folder, speeds=(1.0, 1.1))


@pytest.fixture(scope="session")
def rooms() -> Rooms:
    """Three rooms of decaying noise behind a direct sound, without an acoustics library."""
    rng = np.random.default_rng(0)
    decay = np.exp(-np.arange(6400) / 800)
    responses = 0.05 * rng.normal(size=(3, 5, 6400)) * decay
    responses[..., :9] = 0
    responses[..., 8] = 1
    responses /= np.sqrt((responses**2).sum(-1, keepdims=True))
    return Rooms(responses.astype(np.float32), np.full(3, 0.3, np.float32))
