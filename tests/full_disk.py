"""A full disk, simulated by a limit on file size."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["no_more_than"]


@contextmanager
def no_more_than(size: int) -> Iterator[None]:
    """Limit the files of this process to so many bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
