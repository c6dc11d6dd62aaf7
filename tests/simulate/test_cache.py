"""The cache makes arrays once, and keeps them."""

from pathlib import Path

import numpy as np

from sortformer.simulate.cache import cached


def test_arrays_are_made_once_also_for_a_folder_that_is_not_there_yet(tmp_path: Path):
    made = iter([{"numbers": np.arange(3)}])
    for _ in range(2):
        assert cached(tmp_path / "new" / "cache", "some", lambda: next(made))["numbers"].tolist() == [0, 1, 2]
