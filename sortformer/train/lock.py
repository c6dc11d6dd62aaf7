"""A run's folder is written by one command at a time."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from sortformer.errors import InputError

__all__ = ["locked"]

_LOCK = ".lock"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Make or take a folder, which is held until the context is left, or the process ends in whatever way.

    Who leaves nothing in it, as where there was nothing to read, leaves it as it was.

    Raises:
        InputError: if another process holds it.
    """
    made = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        lock = FileLock(folder / _LOCK).acquire(timeout=0)
    except Timeout:
        raise InputError(f"another run is writing to {folder}: wait until it ends, or give another folder") from None
    with lock:
        try:
            yield
        finally:
            with suppress(OSError):  # where a file that is open cannot go, it stays
                if [each.name for each in folder.iterdir()] == [_LOCK]:
                    (folder / _LOCK).unlink()
                    if made:
                        folder.rmdir()
