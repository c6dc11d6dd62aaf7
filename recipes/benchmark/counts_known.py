"""Measure how much of DER is lost in counting speakers and how much in identifying them, by oracle counts.

    python counts_known.py FOLDER ...

Each folder has recordings with their references, as RTTM of the same names. Protocol full: no collar, overlap scored,
whole recordings; the model in the package, offline. The oracle "one" gives when somebody speaks, and "all" how many
do, up to the slots of the model: that much speech is distributed over the slots by their probabilities before the
voices are clustered, and the thresholds are 1/2.
"""

import argparse
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from scored_folders import recordings, shown, truth_of

from sortformer import Diarizer, audio
from sortformer.annotation import Turn
from sortformer.grid import SAMPLE_RATE
from sortformer.metrics.der import der
from sortformer.offline import Whole, in_windows
from sortformer.postprocess import turns
from sortformer.shares import shared_out
from sortformer.targets import activity

TOLD = ("nothing", "one", "all")


def found_turns(
    diarizer: Diarizer, whole: Whole, truth: Sequence[Turn], told: str, duration: float
) -> tuple[Turn, ...]:
    """Return the turns of a recording, with the oracle ``told``."""
    settings, grid = diarizer.postprocess, diarizer.model.config.grid
    clustering, (frames, slots) = settings.clustering, whole.probs.shape
    if told != "nothing":
        speakers = len({turn.speaker for turn in truth})
        spoken = activity(truth, frames, max(1, speakers), grid)[0].sum(axis=1)
        whole = replace(whole, probs=shared_out(whole.probs, np.minimum(spoken, 1 if told == "one" else slots)))
        settings = replace(settings, onset=0.5, offset=0.5, min_on_s=0.0, min_off_s=0.0, decision="slots")
    probs = whole.probs if clustering is None else whole.voices(clustering)
    return turns(probs, settings, grid.step_s, duration=duration).turns


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+")
    arguments = parser.parse_args()
    diarizer = Diarizer.load()
    for folder in arguments.folders:
        parts, total = {told: np.zeros(3) for told in TOLD}, 0.0
        for path in recordings(folder):
            truth, samples = truth_of(path), audio.read(path)
            duration = len(samples) / SAMPLE_RATE
            whole = in_windows(diarizer.model, [samples])
            for told in TOLD:
                found = der(truth, found_turns(diarizer, whole, truth, told, duration), [(0.0, duration)])
                parts[told] += found.miss, found.false_alarm, found.confusion
            total += found.total
        if not total:
            raise SystemExit(f"nobody speaks in the recordings of {folder}, so that there are no rates")
        for told in TOLD:
            print(f"{folder.name:12} told {told:8} {shown(100 * parts[told] / total)}", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # a recording without speech shows in the table
    main()
