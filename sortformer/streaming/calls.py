"""Calls of several threads, one after the other."""

from collections.abc import Callable
from functools import wraps
from threading import RLock
from typing import Concatenate, ParamSpec, Protocol, TypeVar

__all__ = ["Lock", "one_at_a_time"]


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


class _Locked(Protocol):
    @property
    def _lock(self) -> Lock: ...


Owner = TypeVar("Owner", bound=_Locked)
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Method = Callable[Concatenate[Owner, Arguments], Result]


def one_at_a_time(call: Method[Owner, Arguments, Result]) -> Method[Owner, Arguments, Result]:
    """Let a method wait for those that other threads have begun on the same object.

    In asyncio, ``await asyncio.to_thread(...)`` ends when it is cancelled, but the call in the thread goes on.
    """

    @wraps(call)
    def alone(self: Owner, /, *args: Arguments.args, **named: Arguments.kwargs) -> Result:
        with self._lock:
            return call(self, *args, **named)

    return alone
