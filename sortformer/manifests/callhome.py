"""CALLHOME for diarization (NIST SRE 2000, disk 8, LDC2001S97): telephone calls of two to seven people."""

from collections.abc import Mapping
from pathlib import Path

from sortformer.errors import InputError
from sortformer.formats.folders import AUDIO_SUFFIXES
from sortformer.formats.gather import turns_in
from sortformer.manifests.entry import Draft, Entry
from sortformer.manifests.splits import split_of
from sortformer.manifests.tree import Tree, check_complete, duration_of

__all__ = ["from_callhome"]

_SPLITS = ("part1", "part2")


def from_callhome(corpus: str | Path, references: str | Path, partial: bool = False) -> Mapping[str, tuple[Draft, ...]]:
    """Return the calls of part 1 (to adapt on) and part 2 (to report on).

    Args:
        corpus: the folder with ``iaaa.sph``, ..., or the same in another format, at any depth.
        references: one RTTM file about all calls (``fullref.rttm`` of the SRE 2000 key), or a folder of RTTM.
        partial: omit calls that are not in the corpus folder, and a part without any.

    Raises:
        InputError: when a folder, a recording or a reference is missing.
    """
    tree = Tree.of(corpus, AUDIO_SUFFIXES)
    references = Path(references)
    turns = turns_in(references)
    splits: dict[str, tuple[Draft, ...]] = {}
    for split in _SPLITS:
        names = split_of("callhome", split)
        audio = {name: path for name in names if (path := tree.named(name)) is not None}
        if not partial:
            check_complete(corpus, [f"{name}.sph" for name in names if name not in audio], split, "copy")
        drafts = []
        for name, path in audio.items():
            if name not in turns:
                raise InputError(f"{references} has no turns of {name!r}, which is in {corpus}")
            drafts.append(Draft(Entry(name, path, duration=duration_of(path)), turns[name]))
        splits[split] = tuple(drafts)
    if not any(splits.values()):
        raise InputError(f"{corpus} has no CALLHOME calls (iaaa.sph, ...)")
    return {split: drafts for split, drafts in splits.items() if drafts}
