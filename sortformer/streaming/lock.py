"""A lock for the calls of several threads."""

from threading import RLock

__all__ = ["Lock"]


class Lock:
    """A reentrant lock; a copy of its owner has one of its own."""

    def __init__(self) -> None:
        self._lock = RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def __reduce__(self) -> tuple[type["Lock"], tuple[()]]:
        return Lock, ()
