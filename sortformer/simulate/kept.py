"""Arrays that take long to make: made once, and kept in a file."""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from sortformer.draft import drafted

__all__ = ["kept"]


def kept(
    folder: str | Path | None, name: str, make: Callable[[], Mapping[str, np.ndarray]]
) -> Mapping[str, np.ndarray]:
    """Return the arrays in the file ``name`` (without its suffix) of a folder; make them where they are not there.

    The file is written whole or not at all. Without a folder they are made each time.
    """
    path = None if folder is None else Path(folder) / f"{name}.npz"
    if path is not None and path.is_file():
        with np.load(path) as stored:
            return dict(stored)
    arrays = make()
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with drafted(path) as draft, draft.open("xb") as file:
            np.savez(file, **arrays)  # pyright: ignore[reportArgumentType] (none is called allow_pickle)
    return arrays
