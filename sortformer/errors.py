"""The one family of errors that a user can cause: each message is a sentence (what, which file, what to do)."""

import errno

__all__ = ["Cancelled", "ConfigError", "InputError", "SortformerError", "refusal"]


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
