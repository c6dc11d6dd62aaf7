"""The error rates of folders that hold recordings with their references, as RTTM of the same names."""

import argparse
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from sortformer import Diarizer, Turn, audio
from sortformer.formats import rttm
from sortformer.grid import SAMPLE_RATE
from sortformer.metrics.der import der

__all__ = ["asked", "errors", "print_table", "recordings", "shown", "truth_of"]

SUFFIXES = (".wav", ".flac")


def recordings(folder: Path) -> list[Path]:
    """Return the recordings of a folder; exit with a sentence if there are none."""
    found = sorted(path for path in folder.glob("*") if path.suffix.lower() in SUFFIXES)
    if not found:
        raise SystemExit(f"there are no recordings ({', '.join(SUFFIXES)}) in {folder}")
    return found


def truth_of(recording: Path) -> tuple[Turn, ...]:
    """Return the turns of the RTTM beside a recording, if it has any."""
    return rttm.read(recording.with_suffix(".rttm")).get(recording.stem, ())


def errors(
    diarizer: Diarizer, paths: list[Path], changed: Callable[[np.ndarray], np.ndarray], preset: str | None
) -> np.ndarray:
    """Return miss, false alarm and confusion of recordings modified by ``changed``, in percent of the speech."""
    parts, total = np.zeros(3), 0.0
    for path in paths:
        samples = audio.read(path)
        turns = diarizer(changed(samples), sample_rate=SAMPLE_RATE, preset=preset).turns
        found = der(truth_of(path), turns, [(0.0, len(samples) / SAMPLE_RATE)])
        parts += found.miss, found.false_alarm, found.confusion
        total += found.total
    if not total:
        raise SystemExit("nobody speaks in the references, so that there are no rates")
    return 100 * parts / total


def shown(parts: np.ndarray) -> str:
    """Format an error rate and its parts."""
    return f"DER {parts.sum():5.1f} ({', '.join(f'{part:.1f}' for part in parts)})"


def asked(description: str | None) -> tuple[Diarizer, list[Path], str | None]:
    """Parse the arguments of a script of folders: the diarizer, the folders, and the preset, if any."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--preset")
    parser.add_argument("--model")
    arguments = parser.parse_args()
    return Diarizer.load(arguments.model), arguments.folders, arguments.preset


def print_table(description: str | None, ways: Mapping[str, Callable[[np.ndarray], np.ndarray] | str]) -> None:
    """Print the error rates of a script's folders, with the recordings modified in each of the ``ways``.

    A way that is not available is a sentence, which is printed instead.
    """
    diarizer, folders, preset = asked(description)
    warnings.simplefilter("ignore")  # about recordings without speech, which the table shows
    for folder in folders:
        for name, changed in ways.items():
            cell = changed
            if not isinstance(cell, str):
                cell = shown(errors(diarizer, recordings(folder), cell, preset))
            print(f"{folder.name:12} {name}  {cell}", flush=True)
