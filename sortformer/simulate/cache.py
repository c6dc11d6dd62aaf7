"""A file cache for arrays that take long to compute."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from sortformer.draft import drafted
from sortformer.errors import InputError

__all__ = ["cached", "undamaged"]


def cached(
    folder: str | Path | None, name: str, make: Callable[[], Mapping[str, np.ndarray]]
) -> Mapping[str, np.ndarray]:
    """Return the arrays in the file ``name`` (without its suffix) of a folder; make and store them if it is absent.

    The file is written atomically. Without a folder nothing is cached.

    Raises:
        InputError: if the file is damaged.
    """
    path = None if folder is None else Path(folder) / f"{name}.npz"
    if path is not None and path.is_file():
        with undamaged(path), path.open("rb") as file, np.load(file) as stored:
            return dict(stored)
    arrays = make()
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with drafted(path) as draft, draft.open("wb") as file:
            np.savez(file, **arrays)  # pyright: ignore[reportArgumentType] (none is called allow_pickle)
    return arrays


@contextmanager
def undamaged(path: Path) -> Iterator[None]:
    """Turn errors from a damaged file or folder of a cache into one that names it, and says what to do.

    Raises:
        InputError: if reading it shows that it is damaged.
    """
    try:
        yield
    except (BadZipFile, EOFError, KeyError, ValueError) as error:
        raise InputError(f"{path} is damaged: delete it, and it will be made again") from error
