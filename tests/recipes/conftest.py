"""What recipes do to their process stays among the recipes."""

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    """Give torch its threads back: some recipes take one, and the last bits of what comes after depend on it."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)
