"""Arrange recordings as AMI does, to try the recipe without the corpus.

    python miniature.py OUT DEV_FOLDER TEST_FOLDER

The folders hold recordings with RTTM of the same names, such as simulated ones of ``default_model/dev_sets.py`` (dev)
and a few real clips (test). They get the names of meetings: OUT/amicorpus/ES2011a/audio/ES2011a.Mix-Headset.wav, ...
"""

import sys
from dataclasses import replace
from pathlib import Path

import soundfile

from sortformer import audio
from sortformer.annotation import Diarization
from sortformer.formats import rttm, uem
from sortformer.grid import SAMPLE_RATE
from sortformer.manifests.entry import Entry
from sortformer.manifests.folder import from_folder
from sortformer.manifests.references import own_turns
from sortformer.manifests.splits import split_of


def lay_out(root: Path, split: str, folder: Path) -> None:
    """Write the recordings of a folder as the first meetings of a split."""
    entries = sorted((draft.entry for draft in from_folder(folder)), key=lambda entry: entry.id)
    for name, entry in zip(split_of("ami", split), entries, strict=False):
        meeting(root, split, name, entry)


def meeting(root: Path, split: str, name: str, entry: Entry) -> None:
    """Write one recording as a meeting, with the meeting's name in its speakers' names."""
    wave = audio.read(entry.audio)
    target = root / "amicorpus" / name / "audio" / f"{name}.Mix-Headset.wav"
    target.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(target, wave, SAMPLE_RATE)
    if entry.rttm is None:
        raise SystemExit(f"{entry.audio} has no RTTM")
    length = len(wave) / SAMPLE_RATE
    turns = tuple(replace(turn, speaker=f"{name}_{turn.speaker}") for turn in own_turns(entry))
    setup = root / "AMI-diarization-setup"
    rttm.write(
        setup / "only_words" / "rttms" / split / f"{name}.rttm", Diarization(turns, length, name), overwrite=True
    )
    uem.write(setup / "uems" / split / f"{name}.uem", {name: [(0.0, length)]}, overwrite=True)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        raise SystemExit(__doc__)
    for number, part in enumerate(("dev", "test"), start=2):
        lay_out(Path(sys.argv[1]), part, Path(sys.argv[number]))
