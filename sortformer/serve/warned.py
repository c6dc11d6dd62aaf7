"""Warnings for users, collected per request."""

import contextlib
import threading
import warnings
from collections.abc import Iterator
from typing import Any

__all__ = ["warned"]

_here = threading.local()
_lock = threading.Lock()
_elsewhere = warnings.showwarning


@contextlib.contextmanager
def warned() -> Iterator[list[str]]:
    """Collect the user warnings of this thread in the block; those of other threads are shown as before.

    ``warnings.catch_warnings`` would collect those of all threads, including other clients'. Equal messages are
    collected once per block; whether a later block collects them again depends on Python's filters.
    """
    _listen()
    _here.sentences = sentences = list[str]()
    try:
        yield sentences
    finally:
        del _here.sentences


def _listen() -> None:
    global _elsewhere
    with _lock:
        if warnings.showwarning is not _show:
            _elsewhere, warnings.showwarning = warnings.showwarning, _show


def _show(message: Warning | str, category: type[Warning], *rest: Any, **named: Any) -> None:
    sentences = getattr(_here, "sentences", None)
    if sentences is None or not issubclass(category, UserWarning):
        _elsewhere(message, category, *rest, **named)
    elif str(message) not in sentences:
        sentences.append(str(message))
