"""A lock on a run's folder, so that one command writes to it at a time."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from sortformer.errors import InputError, refusal

__all__ = ["locked"]

_LOCK = ".lock"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock a folder, created if need be, until the context is left or the process ends, in whatever way.

    If nothing has been written to it, e.g. because the input could not be read, the folder is left as it was.

    Raises:
        InputError: if another process holds it, or it cannot be locked.
    """
    made = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        lock = FileLock(folder / _LOCK).acquire(timeout=0)
    except Timeout:
        raise InputError(f"another run is writing to {folder}: wait until it ends, or give another folder") from None
    except OSError as error:  # e.g. NFS without a lock service
        _leave(folder, made)
        raise InputError(f"cannot lock {folder}: {refusal(error)}") from error
    with lock:
        try:
            yield
        finally:
            _leave(folder, made)


def _leave(folder: Path, made: bool) -> None:
    """Remove the lock of a folder to which nothing else was written, and the folder if it was ``made`` for that."""
    with suppress(OSError):  # where an open file cannot be deleted, it stays
        if [each.name for each in folder.iterdir()] == [_LOCK]:
            (folder / _LOCK).unlink()
            if made:
                folder.rmdir()
