"""Marks that tests of several modules need."""

from pathlib import Path

import pytest

__all__ = ["MAXIMUM_MAY_BE_REACHED", "NEEDS_DEV_FULL"]

MAXIMUM_MAY_BE_REACHED = pytest.mark.filterwarnings("ignore:.*the maximum, and any further one")
"""The model of these tests lets all of its slots speak, which is warned of."""

NEEDS_DEV_FULL = pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is absent")
