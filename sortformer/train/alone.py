"""A run's folder is written by one command at a time."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from sortformer.errors import InputError

__all__ = ["alone"]


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hold a folder, until it is left or the process ends in whatever way.

    Raises:
        InputError: if another process holds it.
    """
    with ExitStack() as held:
        try:
            held.enter_context(FileLock(folder / ".lock", timeout=0))
        except Timeout:
            raise InputError(
                f"another run is writing to {folder}: wait until it ends, or give another folder"
            ) from None
        except NotImplementedError:  # a file system without locks
            pass
        yield
