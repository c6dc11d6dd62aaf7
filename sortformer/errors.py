"""The one family of errors that a user can cause: each message is a sentence (what, which file, what to do)."""

import errno
from collections.abc import Sequence

__all__ = ["Cancelled", "ConfigError", "InputError", "SortformerError", "counted", "first_line", "listed", "refusal"]


class SortformerError(Exception):
    """An error whose message is meant for the user; the CLI prints it without a traceback."""


class InputError(SortformerError, ValueError):
    """A file, an array or an argument that cannot be used as it is."""


class ConfigError(SortformerError, ValueError):
    """A configuration that contradicts itself, or a key that does not exist."""


class Cancelled(SortformerError):
    """Work that was ended by its caller, who answered a report of progress with False."""


_WHAT_TO_DO = {
    errno.EACCES: "have its owner allow it, or choose another place",
    errno.EPERM: "have its owner allow it, or choose another place",
    errno.EROFS: "choose another place",
    errno.ENOSPC: "make room, or choose another place",
}


def refusal(error: OSError) -> str:
    """Return why the system refused something, and what can be done about it, without Python's numbers and brackets."""
    said = error.strerror or str(error)
    return f"{said} ({_WHAT_TO_DO[error.errno]})" if error.errno in _WHAT_TO_DO else said


def first_line(error: Exception) -> str:
    """Return the first line of what another library says, for a sentence; its class where it says nothing."""
    return next(iter(str(error).splitlines()), "") or type(error).__name__


def counted(number: int, noun: str) -> str:
    """Return "1 recording", "2 recordings"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def listed(names: Sequence[str]) -> str:
    """Return the names of recordings for a sentence, the first five of many."""
    shown = ", ".join(repr(name) for name in names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"
