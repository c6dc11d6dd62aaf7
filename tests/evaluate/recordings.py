"""Recordings to score."""

from pathlib import Path

from sortformer.annotation import Diarization, Turn
from sortformer.formats import rttm

ONE = Diarization((Turn(0, 4, "a"), Turn(4, 8, "b")), 10, "one")
TWO = Diarization((Turn(1, 3, "c"),), 10, "two")
ONE_FOUND = Diarization((Turn(0, 5, "x"), Turn(5, 9, "y")), 10, "one")
TWO_FOUND = Diarization((Turn(1, 2, "x"),), 10, "two")


def folder(path: Path, *recordings: Diarization) -> Path:
    for recording in recordings:
        rttm.write(path / f"{recording.uri}.rttm", recording)
    return path
