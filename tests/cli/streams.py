"""Inputs and expected outputs of the tests of streams on the command line."""

from pathlib import Path

from sortformer import audio
from sortformer.formats import rttm

# Both always speak; a turn that the end cuts off stops 10 ms early.
EXPECTED = [(0.0, 1.99, "speaker_0"), (0.0, 1.99, "speaker_1")]


def raw(path: Path) -> bytes:
    return (audio.read(path) * 32_768).astype("<i2").tobytes()


def turns(lines: str) -> list[tuple[float, float, str]]:
    return sorted((turn.start, turn.end, turn.speaker) for found in rttm.parse(lines).values() for turn in found)
