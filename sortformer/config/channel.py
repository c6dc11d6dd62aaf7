"""Selection of the channels of a recording: one of them, or each as a separate speaker."""

from typing import Any, Literal

from sortformer.config.checks import whole
from sortformer.errors import InputError

__all__ = ["EACH", "Channel", "channel_of", "check_speakers"]

EACH = "each"

Channel = int | Literal["each"]
"""One channel of a recording, counted from 1, or each separately."""


def channel_of(value: Any) -> Channel | None:
    """Return a caller's channel, validated; None, the mean of all channels, stays None.

    Raises:
        InputError: when it is neither "each" nor a whole number of 1 or more.
    """
    if isinstance(value, str) and value != EACH:
        raise InputError(f"channel must be a whole number, 1 or more, or {EACH!r}, got {value!r}")
    return EACH if isinstance(value, str) else whole("channel", value)


def check_speakers(channel: Channel | None, *asked: Any) -> None:
    """Refuse other options about speakers (their number, known voices) if each channel is a speaker.

    Raises:
        InputError: when any of ``asked`` is set.
    """
    if channel == EACH and any(asked):
        raise InputError(
            "with channel 'each', one speaker per channel, leave out known speakers (enroll) and numbers of speakers "
            "(num_speakers, min_speakers, max_speakers)"
        )
