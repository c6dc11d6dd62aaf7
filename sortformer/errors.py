"""The errors that a user can cause; each message is a sentence (what, which file, what to do)."""

import errno
from collections.abc import Sequence

__all__ = [
    "Cancelled",
    "ConfigError",
    "InputError",
    "SortformerError",
    "counted",
    "first_line",
    "lacks_space",
    "listed",
    "refusal",
]


class SortformerError(Exception):
    """An error whose message is meant for the user; the CLI prints it without a traceback."""


class InputError(SortformerError, ValueError):
    """A file, an array or an argument that cannot be used."""


class ConfigError(SortformerError, ValueError):
    """A configuration that is invalid or contradicts itself, or a name that does not exist."""


class Cancelled(SortformerError):
    """Work that was cancelled, by a progress callback that returned False."""


_WHAT_TO_DO = {
    errno.EACCES: "ask its owner for access, or choose another path",
    errno.EPERM: "ask its owner for access, or choose another path",
    errno.EROFS: "choose another path",
    errno.ENOSPC: "free some space, or choose another path",
    errno.EDQUOT: "free some space, or choose another path",
    errno.ENOLCK: "choose a path on another file system",
}


def refusal(error: OSError) -> str:
    """Return the reason of an OSError and a remedy, if known, without Python's error number and brackets."""
    said = error.strerror or str(error)
    return f"{said} ({_WHAT_TO_DO[error.errno]})" if error.errno in _WHAT_TO_DO else said


def lacks_space(error: Exception) -> bool:
    """Return whether an error, or its cause, is that a disk is full or a quota exhausted."""
    cause = error if isinstance(error, OSError) else error.__cause__
    return isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT)


def first_line(error: Exception) -> str:
    """Return the first line of another library's error message, or its class if that is empty."""
    return next(iter(str(error).splitlines()), "") or type(error).__name__


def counted(number: int, noun: str) -> str:
    """Return "1 recording", "2 recordings"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def listed(names: Sequence[str]) -> str:
    """Return names for a sentence, at most five, and the number of the others."""
    shown = ", ".join(repr(name) for name in names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"
