"""Turn-taking of real meetings, replayed: windows of reference RTTM as outlines for simulated conversations."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np

from sortformer.annotation import Turn
from sortformer.errors import InputError
from sortformer.formats import rttm
from sortformer.formats.gather import files_in
from sortformer.simulate.outline import Outline

__all__ = ["TurnPatterns"]

_TRIES = 8
_SHORTEST_SHARE = 30  # hops; a speaker with less speech in a window is dropped from it


@dataclass(frozen=True, slots=True, eq=False)
class TurnPatterns:
    """Real recordings as turns in hops (10 ms).

    Attributes:
        recordings: for each, a (n, 3) int64 array of speaker, start, end, sorted by start.
        lengths: (R,) float64 length of each recording in hops, the weight with which it is drawn.
    """

    recordings: tuple[np.ndarray, ...]
    lengths: np.ndarray

    @classmethod
    def from_rttm(cls, folders: Iterable[str | Path], exclude: Sequence[str] = ()) -> "TurnPatterns":
        """Read folders of RTTM, except recordings whose name, or file name, matches one of the shell patterns.

        Raises:
            InputError: if a folder has no turns left, a line is not RTTM, or a pattern matches nothing: what it should
                exclude may be there by another name.
        """
        tables, unused = [], set(exclude)
        for folder in map(Path, folders):
            left = []
            for path in files_in(folder, ".rttm"):
                for name, turns in rttm.read(path).items():
                    matched = {each for each in exclude if fnmatchcase(name, each) or fnmatchcase(path.stem, each)}
                    unused -= matched
                    if turns and not matched:
                        left.append(_table(turns))
            if not left:
                raise InputError(f"no turns in the RTTM files of {folder}; give a folder of reference RTTM")
            tables += left
        if unused:
            raise InputError(f"no recording matches {min(unused)!r}, which should be excluded from the turn-taking")
        return cls(tuple(tables), np.array([table[:, 2].max() for table in tables], dtype=np.float64))

    def window(self, rng: np.random.Generator, num_speakers: int, num_hops: int, lively: bool = False) -> Outline:
        """Draw a window of real turn-taking, with ``num_speakers`` speakers if one is found in a few tries.

        Of a window with more speakers a random subset is kept; a window with fewer is used as it is.

        Args:
            lively: of the windows with enough speakers, take the one with the most turns and overlap.
        """
        drawn = (self._draw(rng, num_hops) for _ in range(_TRIES))
        best = max(drawn, key=lambda window: _rank(window, num_speakers, lively))
        return _as_outline(rng, best, num_speakers)

    def _draw(self, rng: np.random.Generator, num_hops: int) -> np.ndarray:
        cumulative = np.cumsum(self.lengths)
        chosen = int(np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right"))
        first = int(rng.integers(max(1, int(self.lengths[chosen]) - num_hops)))
        return _crop(self.recordings[chosen], first, num_hops)


def _table(turns: Sequence[Turn]) -> np.ndarray:
    number = {speaker: index for index, speaker in enumerate(sorted({turn.speaker for turn in turns}))}
    rows = [(number[turn.speaker], round(100 * turn.start), round(100 * turn.end)) for turn in turns]
    return np.array(rows, dtype=np.int64)


def _crop(table: np.ndarray, first: int, num_hops: int) -> np.ndarray:
    inside = table[(table[:, 2] > first) & (table[:, 1] < first + num_hops)]
    cut = np.column_stack([inside[:, 0], np.clip(inside[:, 1:] - first, 0, num_hops)])
    said = np.bincount(cut[:, 0], weights=cut[:, 2] - cut[:, 1])
    return cut[said[cut[:, 0]] >= _SHORTEST_SHARE]


def _rank(window: np.ndarray, num_speakers: int, lively: bool) -> tuple[float, float]:
    present = len(np.unique(window[:, 0]))
    if lively:
        return float(present >= num_speakers), _liveliness(window)
    return float(present >= num_speakers), float(present == num_speakers)


def _liveliness(window: np.ndarray) -> float:
    """Return the share of overlapped turn time, plus a little for each turn."""
    if len(window) == 0:
        return -0.5
    latest = np.maximum.accumulate(window[:, 2])
    overlap = np.maximum(0, np.minimum(window[1:, 2], latest[:-1]) - window[1:, 1]).sum()
    return float(overlap / (window[:, 2] - window[:, 1]).sum() + 0.005 * len(window))


def _as_outline(rng: np.random.Generator, window: np.ndarray, num_speakers: int) -> Outline:
    speakers = np.unique(window[:, 0])
    kept = rng.permutation(speakers)[:num_speakers]
    window = window[np.isin(window[:, 0], kept)]
    position = np.zeros(int(speakers.max(initial=0)) + 1, dtype=np.int64)
    position[kept] = np.arange(len(kept))
    return Outline(position[window[:, 0]], window[:, 1], window[:, 2] - window[:, 1])
