"""A manifest of a few seconds of real recordings."""

from collections.abc import Sequence
from pathlib import Path

from sortformer.annotation import Turn
from sortformer.formats import uem
from sortformer.manifests import Draft, Entry, write
from tests.audio.makers import chirp
from tests.audio.makers import write as write_sound

__all__ = ["corpus"]


def corpus(
    folder: Path,
    recordings: dict[str, tuple[float, Sequence[tuple[float, float, str]]]],
    *,
    rate: int = 16_000,
    parts: dict[str, list[tuple[float, float]]] | None = None,
) -> Path:
    """Write recordings of the given seconds with turns and, optionally, a UEM; return their manifest."""
    folder.mkdir(parents=True, exist_ok=True)
    drafts = []
    for name, (seconds, turns) in recordings.items():
        audio = write_sound(folder / f"{name}.wav", chirp(seconds, rate), rate, subtype="FLOAT")
        regions = None
        if parts is not None:
            regions = folder / f"{name}.uem"
            uem.write(regions, {name: parts[name]}, overwrite=True)
        entry = Entry(name, audio, duration=seconds, uem=regions)
        drafts.append(Draft(entry, tuple(Turn(*turn) for turn in turns)))
    write(folder / "all.jsonl", drafts, overwrite=True)
    return folder / "all.jsonl"
