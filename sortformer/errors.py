"""The one family of errors that a user can cause: each message is a sentence (what, which file, what to do)."""

__all__ = ["Cancelled", "ConfigError", "InputError", "SortformerError"]


class SortformerError(Exception):
    """An error whose message is meant for the user; the CLI prints it without a traceback."""


class InputError(SortformerError, ValueError):
    """A file, an array or an argument that cannot be used as it is."""


class ConfigError(SortformerError, ValueError):
    """A configuration that contradicts itself, or a key that does not exist."""


class Cancelled(SortformerError):
    """Work that was ended by its caller, who answered a report of progress with False."""
