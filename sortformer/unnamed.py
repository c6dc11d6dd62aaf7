"""The labels of speakers whose names are not known."""

import re

__all__ = ["arrival_name", "channel_name", "is_label", "is_label_of_a_program"]

_ARRIVAL, _CHANNEL = "speaker_", "channel_"
_OF_A_PROGRAM = re.compile(rf"(?:{_ARRIVAL}|{_CHANNEL})\d+", re.IGNORECASE)


def arrival_name(position: int) -> str:
    """Return the label of the unnamed speaker who is the ``position``-th to arrive, counted from 0."""
    return f"{_ARRIVAL}{position}"


def channel_name(column: int) -> str:
    """Return the label of the speaker of the ``column``-th channel, counted from 0."""
    return f"{_CHANNEL}{column + 1}"


def is_label(name: str) -> bool:
    """Return whether a name is such a label, or only the number of one: people may not be called so."""
    return name.removeprefix(_ARRIVAL).removeprefix(_CHANNEL).isdigit()


def is_label_of_a_program(name: str) -> bool:
    """Return whether a name is such a label, ours or, as ``SPEAKER_00``, pyannote.audio's: it means nobody."""
    return _OF_A_PROGRAM.fullmatch(name) is not None
