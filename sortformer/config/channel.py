"""Which channel of a recording is heard: one of them, or each by itself, as one speaker."""

from typing import Any, Literal

from sortformer.config.checks import whole
from sortformer.errors import InputError

__all__ = ["EACH", "Channel", "channel_of", "check_speakers"]

EACH = "each"

Channel = int | Literal["each"]
"""One channel of a recording, from 1, or each of them by itself."""


def channel_of(value: Any) -> Channel | None:
    """Return the channel that a caller gave; None, the mean of all, stays None.

    Raises:
        InputError: when it is neither "each" nor a whole number of 1 or more.
    """
    if isinstance(value, str) and value != EACH:
        raise InputError(f"channel must be a whole number, 1 or more, or {EACH!r}, got {value!r}")
    return EACH if isinstance(value, str) else whole("channel", value)


def check_speakers(channel: Channel | None, *asked: Any) -> None:
    """Refuse what else is asked for of the speakers, how many there are and who, where each channel is one.

    Raises:
        InputError: when there is something.
    """
    if channel == EACH and any(asked):
        raise InputError(
            "where each channel is a speaker ('each'), leave out known voices (enroll) and numbers of speakers "
            "(num_speakers and its kin)"
        )
