"""A run's folder is written by one command at a time."""

from contextlib import AbstractContextManager
from pathlib import Path

from filelock import FileLock, Timeout

from sortformer.errors import InputError

__all__ = ["alone"]


def alone(folder: Path) -> AbstractContextManager[object]:
    """Take a folder, which is held until the context is left, or the process ends in whatever way.

    Raises:
        InputError: if another process holds it.
    """
    try:
        return FileLock(folder / ".lock").acquire(timeout=0)
    except Timeout:
        raise InputError(f"another run is writing to {folder}: wait until it ends, or give another folder") from None
