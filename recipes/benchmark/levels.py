"""DER of recordings as they are and made quieter, rounded to 16 bits: what is lost where a microphone is turned down.

    python levels.py FOLDER ...

Each folder holds recordings with their references, as RTTM of the same names. Protocol full: no collar, overlap scored,
the whole recordings; the model in the package.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np

from sortformer import Diarizer, audio
from sortformer.formats import rttm
from sortformer.metrics.der import der

DECIBELS = (0, -10, -20, -30, -40)
SUFFIXES = (".wav", ".flac")


def error(diarizer: Diarizer, paths: list[Path], decibels: float) -> tuple[float, float, float]:
    """Return miss, false alarm and confusion in percent of the speech."""
    parts, total = np.zeros(3), 0.0
    for path in paths:
        samples = audio.read(path)
        quieter = np.round(samples * 10 ** (decibels / 20) * 32768).clip(-32768, 32767).astype(np.int16)
        (truth,) = rttm.read(path.with_suffix(".rttm")).values()
        found = der(truth, diarizer(quieter, sample_rate=16_000).turns, [(0.0, len(samples) / 16_000)])
        parts += found.miss, found.false_alarm, found.confusion
        total += found.total
    miss, false_alarm, confusion = 100 * parts / total
    return float(miss), float(false_alarm), float(confusion)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+")
    diarizer = Diarizer.load()
    for folder in parser.parse_args().folders:
        paths = sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES)
        for decibels in DECIBELS:
            parts = error(diarizer, paths, decibels)
            print(f"{folder.name:12} {decibels:4} dB  DER {sum(parts):5.1f}  (%5.1f %5.1f %5.1f)" % parts, flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # that nobody is heard is what the table shows
    main()
