"""Calibration error of the confidence of turns: as mean probability, as calibrated in the model, and fitted here.

    python confidence.py FOLDER ... [--preset 1s] [--model MODEL]

Each folder holds recordings with their references, as RTTM of the same names; whole recordings are scored. Printed for
each folder is the expected calibration error in points (``sortformer.metrics.calibration``); the last line is the
calibration fitted to the turns of all folders together.
"""

import warnings
from dataclasses import replace
from pathlib import Path

from scored_folders import asked, recordings, truth_of

from sortformer import Diarizer
from sortformer.metrics.calibration import Judged, calibration_error, fitted, judged


def turns_of(diarizer: Diarizer, folder: Path, preset: str | None) -> list[Judged]:
    """Return the turns of a folder's recordings, judged by the references, with mean probability as confidence."""
    plain, found = replace(diarizer, postprocess=replace(diarizer.postprocess, confidence=None)), []
    for path in recordings(folder):
        found += judged(truth_of(path), plain(path, preset=preset))
    return found


def main() -> None:
    (diarizer, folders, preset), every = asked(__doc__), []
    for folder in folders:
        turns = turns_of(diarizer, folder, preset)
        sure = [replace(turn, confidence=diarizer.postprocess.confidence_of(turn.confidence)) for turn in turns]
        right = sum(turn.right * turn.seconds for turn in turns) / sum(turn.seconds for turn in turns)
        off = (100 * calibration_error(each) for each in (turns, sure))
        print(
            f"{folder.name:12} {len(turns):5} turns, {100 * right:.1f} % right; off by"
            f" {next(off):.1f} as the mean probability, {next(off):.1f} as the model has it",
            flush=True,
        )
        every += turns
    print(fitted(every) or "too few turns to fit by")


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # about numbers of speakers, which are not measured here
    main()
