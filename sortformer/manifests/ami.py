"""The AMI Meeting Corpus: 170 meetings of three to five people, with the references of AMI-diarization-setup."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sortformer.errors import InputError
from sortformer.manifests.entry import Draft, Entry
from sortformer.manifests.splits import split_of
from sortformer.manifests.tree import Tree, check_complete, duration_of

__all__ = ["MICROPHONES", "Ami", "from_ami"]

MICROPHONES: Mapping[str, str] = {"mix-headset": "Mix-Headset", "sdm": "Array1-01"}
"""The names of the microphones in the corpus's file names; sdm is the first one of the first table array."""

_NO_ARRAY = frozenset({"IS1003b", "IS1007d"})
_SPLITS = ("train", "dev", "test")


@dataclass(frozen=True, slots=True)
class Ami:
    """The entries by split, and the meetings that the corpus has no recording of with this microphone."""

    splits: Mapping[str, tuple[Draft, ...]]
    without: tuple[str, ...]


def from_ami(
    corpus: str | Path,
    setup: str | Path,
    microphone: Literal["mix-headset", "sdm"] = "mix-headset",
    partial: bool = False,
) -> Ami:
    """Return the meetings of train, dev and test (Full-corpus-ASR) with the references ``only_words``.

    IS1003b and IS1007d were recorded without the first array: with ``sdm`` they are omitted.

    Args:
        corpus: the folder with ``ES2002a/audio/ES2002a.Mix-Headset.wav``, ..., at any depth.
        setup: AMI-diarization-setup, or a folder with its RTTM and UEM files.
        partial: omit meetings that are not in the corpus folder, and splits without any.

    Raises:
        InputError: when a folder, a recording, an RTTM or a UEM is missing, or the microphone is unknown.
    """
    if microphone not in MICROPHONES:
        raise InputError(f"there is no AMI microphone {microphone!r}; choose from {', '.join(MICROPHONES)}")
    audio = Tree.of(corpus, {".wav", ".flac"})
    setup = Path(setup)
    words = setup / "only_words" / "rttms"
    turns = Tree.of(words if words.is_dir() else setup, {".rttm"})  # other folders have other RTTM of the same names
    regions = Tree.of(setup / "uems" if (setup / "uems").is_dir() else setup, {".uem"})
    splits: dict[str, tuple[Draft, ...]] = {}
    without = []
    for split in _SPLITS:
        drafts, missing = [], []
        for name in split_of("ami", split):
            stem = f"{name}.{MICROPHONES[microphone]}"
            path = audio.find(f"{stem}.wav") or audio.find(f"{stem}.flac")
            if path is None:
                (without if microphone == "sdm" and name in _NO_ARRAY else missing).append(name)
                continue
            reference = turns.require(f"{name}.rttm", "the reference of a meeting that is in the corpus folder")
            region = regions.require(f"{name}.uem", "the scored part of a meeting that is in the corpus folder")
            drafts.append(Draft(Entry(name, path, duration=duration_of(path), rttm=reference, uem=region)))
        if not partial:
            names = [f"{name}.{MICROPHONES[microphone]}.wav" for name in missing]
            check_complete(corpus, names, f"the split {split!r}", "fetch")
        splits[split] = tuple(drafts)
    if not any(splits.values()):
        raise InputError(f"{corpus} has no meetings (*.{MICROPHONES[microphone]}.wav)")
    return Ami({split: drafts for split, drafts in splits.items() if drafts}, tuple(without))
