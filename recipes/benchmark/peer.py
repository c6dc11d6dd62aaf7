"""Run another diarizer over recordings: each script supplies only the function that diarizes samples.

It runs in the environment of that diarizer, without this toolkit.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import soundfile
import soxr

__all__ = ["RATE", "write_rttms"]

RATE = 16000


def write_rttms(
    out: Path, recordings: list[Path], diarize: Callable[[np.ndarray], Iterable[tuple[float, float, object]]]
) -> None:
    """Write an RTTM for each recording, named like it.

    ``diarize`` gets samples at 16 kHz, mono, and returns turns: start and end in seconds, and speaker.
    """
    out.mkdir(parents=True, exist_ok=True)
    for recording in recordings:
        wave, rate = soundfile.read(recording, dtype="float32", always_2d=True)
        lines = [
            f"SPEAKER {recording.stem} 1 {start:.3f} {end - start:.3f} <NA> <NA> {speaker} <NA> <NA>\n"
            for start, end, speaker in diarize(soxr.resample(wave.mean(axis=1), rate, RATE))
        ]
        (out / f"{recording.stem}.rttm").write_text("".join(lines), encoding="utf-8")
