from pathlib import Path

import pytest

from sortformer.config.train import TrainConfig
from sortformer.data import Sources
from sortformer.train import train
from tests.simulate.makers import make_bank_folder
from tests.train.runs import small_run


@pytest.fixture(scope="session")
def bank_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bank with two evaluation voices."""
    folder = make_bank_folder(tmp_path_factory.mktemp("bank"))
    listing = folder / "segments.tsv"
    listing.write_text(listing.read_text().replace("b_mid\ttrain", "b_mid\tdev"))
    return folder


@pytest.fixture(scope="session")
def run_config(bank_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> TrainConfig:
    """Six steps of a tiny model, with dropout, in two stages; no evaluation."""
    return small_run(bank_folder, tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="session")
def sources(run_config: TrainConfig) -> Sources:
    return Sources.load(run_config.data)


@pytest.fixture(scope="session")
def whole(run_config: TrainConfig, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An uninterrupted run of all six steps."""
    folder = tmp_path_factory.mktemp("whole")
    train(run_config, folder)
    return folder
