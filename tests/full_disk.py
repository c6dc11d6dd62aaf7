"""A disk that is full soon: the system refuses to let a file grow further."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["no_more_than"]


@contextmanager
def no_more_than(size: int) -> Iterator[None]:
    """Let no file of this process be longer than so many bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
