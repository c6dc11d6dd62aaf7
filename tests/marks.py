"""Marks that tests of several modules need."""

from pathlib import Path

import pytest

__all__ = ["LICENCE_IS_LIMITED", "MAXIMUM_MAY_BE_REACHED", "NEEDS_DEV_FULL", "RECIPE_IS_CHANGED"]

LICENCE_IS_LIMITED = pytest.mark.filterwarnings("ignore:.*no commercial use")
"""The weights of these tests have a licence that is warned of."""

MAXIMUM_MAY_BE_REACHED = pytest.mark.filterwarnings("ignore:.*the maximum, and any further one")
"""The model of these tests lets all of its slots speak, which is warned of."""

NEEDS_DEV_FULL = pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is absent")

RECIPE_IS_CHANGED = pytest.mark.filterwarnings("ignore:.*with a changed recipe")
"""A training run goes on with other settings, which is warned of."""
