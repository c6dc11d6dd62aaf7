"""Settings of all tests, for shared machines.

Hypothesis has no deadline, for examples or their generation. Torch's threads sleep instead of spinning while they wait,
as in the command: beside another run the tests would take many times as long. This has to be set before torch is
imported, so modules that need torch are imported in fixtures. Commands buffer their output, as users' do.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from sortformer.__main__ import spin_briefly

if TYPE_CHECKING:
    from sortformer.diarizer import Diarizer
    from tests.puppets import Puppet

spin_briefly()
os.environ.pop("PYTHONUNBUFFERED", None)

settings.register_profile("shared", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared")


@pytest.fixture(scope="session")
def diarizer(tmp_path_factory: pytest.TempPathFactory) -> "Diarizer":
    """A diarizer that finds two speakers all the time."""
    from sortformer.diarizer import Diarizer
    from tests.tiny import tiny_model

    return Diarizer.load(tiny_model(tmp_path_factory.mktemp("diarizer")), device="cpu")


@pytest.fixture(scope="session")
def puppet() -> "Puppet":
    from sortformer import PostprocessConfig
    from tests.puppets import Puppet
    from tests.small_models import small_config, small_model

    return Puppet(small_model(small_config()), PostprocessConfig(), "puppet")


@pytest.fixture
def wav(tmp_path: Path) -> Path:
    """Two seconds of 16 kHz mono."""
    from tests.audio.makers import chirp, write

    return write(tmp_path / "meeting.wav", chirp(2.0, 16_000), 16_000)
