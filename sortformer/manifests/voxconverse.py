"""VoxConverse: debates and talk from YouTube, with 216 recordings for development and 232 for test."""

from collections.abc import Mapping
from pathlib import Path

from sortformer.errors import InputError
from sortformer.manifests.entry import Draft, Entry
from sortformer.manifests.tree import Tree, check_complete, duration_of

__all__ = ["from_voxconverse"]

_SPLITS = ("dev", "test")


def from_voxconverse(
    corpus: str | Path, references: str | Path, partial: bool = False
) -> Mapping[str, tuple[Draft, ...]]:
    """Return the recordings of dev and test.

    Args:
        corpus: the folder with ``abjxc.wav``, ... at any depth, as unpacked from the published archives (``audio`` for
            dev, ``voxconverse_test_wav``).
        references: the repository of the annotations, with the folders ``dev`` and ``test`` of RTTM.
        partial: omit recordings that are not in the corpus folder, and a split without any or without references.

    Raises:
        InputError: when a folder, a recording or the references of a split are missing.
    """
    audio = Tree.of(corpus, {".wav", ".flac"})
    references = Path(references)
    splits: dict[str, tuple[Draft, ...]] = {}
    for split in _SPLITS:
        drafts, missing = [], []
        known = sorted((references / split).glob("[!.]*.rttm"))
        for reference in known:
            path = audio.find(f"{reference.stem}.wav") or audio.find(f"{reference.stem}.flac")
            if path is None:
                missing.append(f"{reference.stem}.wav")
            else:
                drafts.append(Draft(Entry(reference.stem, path, duration=duration_of(path), rttm=reference)))
        if not partial:
            check_complete(references, [] if known else [f"{split}/*.rttm"], f"the split {split!r}", "fetch")
            check_complete(corpus, missing, f"the split {split!r}", "fetch")
        splits[split] = tuple(drafts)
    if not any(splits.values()):
        raise InputError(f"no recording in {corpus} has a reference in {references}/dev or {references}/test")
    return {split: drafts for split, drafts in splits.items() if drafts}
