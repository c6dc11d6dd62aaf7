"""Changes of recipes to the process do not affect other tests."""

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    """Restore torch's threads: some recipes use one, and the last bits of later results depend on the number."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)
