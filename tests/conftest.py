"""What holds for all tests, as test machines are shared.

Neither examples nor their making have a deadline, and torch's threads, once it is loaded, wait for each other asleep,
as those of the command do: beside another run the tests would take many times as long. So what imports torch is
imported by those who ask for it.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from sortformer.__main__ import spin_briefly

if TYPE_CHECKING:
    from sortformer.diarizer import Diarizer

spin_briefly()

settings.register_profile("shared", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared")


@pytest.fixture(scope="session")
def diarizer(tmp_path_factory: pytest.TempPathFactory) -> "Diarizer":
    """It hears two speakers all the time."""
    from sortformer.diarizer import Diarizer
    from tests.tiny import tiny_model

    return Diarizer.load(tiny_model(tmp_path_factory.mktemp("diarizer")), device="cpu")


@pytest.fixture
def wav(tmp_path: Path) -> Path:
    """Two seconds of 16 kHz mono."""
    from tests.audio.makers import chirp, write

    return write(tmp_path / "meeting.wav", chirp(2.0, 16_000), 16_000)
