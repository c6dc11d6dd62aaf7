"""The bridge from turns to training targets: an activity matrix whose columns are speakers in order of arrival."""

from collections.abc import Iterable
from typing import Literal

import numpy as np

from sortformer.annotation import Turn, merged
from sortformer.errors import InputError
from sortformer.grid import FrameGrid

__all__ = ["Labelling", "activity"]

Labelling = Literal["cover", "nemo"]


def activity(
    turns: Iterable[Turn], num_frames: int, num_slots: int, grid: FrameGrid, labelling: Labelling = "cover"
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return who is active in which output frame, (num_frames, num_slots) float32 of 0 and 1, and the speakers.

    Column k is the k-th speaker to arrive (first active frame, then exact start, then name); columns without a speaker
    are 0. The speakers returned are all that are active in some frame, in that order: those from ``num_slots`` on
    found no column, so ``len(speakers) > num_slots`` tells that some were left out.

    Args:
        turns: a diarization or turns in seconds from the first frame's start; what lies past the last frame is ignored.
        labelling: "cover" marks a frame of which the speaker covers half or more, exact to the sample; "nemo" marks it
            as NVIDIA's training does (10 ms labels pooled over nine around the frame's start), which shifts borders by
            about half a frame: for fine-tuning weights that were trained with it.

    Raises:
        InputError: when ``num_frames`` is negative, ``num_slots`` is not positive or the labelling is unknown.
    """
    if num_frames < 0 or num_slots < 1:
        raise InputError(f"activity needs num_frames >= 0 and num_slots >= 1, got {num_frames} and {num_slots}")
    if labelling not in _LABELLINGS:
        raise InputError(f"the labelling must be one of {', '.join(_LABELLINGS)}, got {labelling!r}")
    by_speaker: dict[str, list[Turn]] = {}
    for turn in merged(turns):
        by_speaker.setdefault(turn.speaker, []).append(turn)
    arrivals: list[tuple[int, float, str]] = []
    columns: dict[str, np.ndarray] = {}
    for speaker, own in by_speaker.items():
        active = _LABELLINGS[labelling](own, num_frames, grid)
        if active.any():
            columns[speaker] = active
            arrivals.append((int(active.argmax()), own[0].start, speaker))
    speakers = tuple(speaker for _, _, speaker in sorted(arrivals))
    result = np.zeros((num_frames, num_slots), dtype=np.float32)
    for slot, speaker in enumerate(speakers[:num_slots]):
        result[:, slot] = columns[speaker]
    return result, speakers


def _cover(turns: list[Turn], num_frames: int, grid: FrameGrid) -> np.ndarray:
    """Frames (num_frames,) of which one speaker's disjoint turns cover half or more."""
    covered = np.zeros(num_frames)
    for turn in turns:
        covered += grid.coverage(turn.start, turn.end, num_frames)
    return 2 * np.rint(covered * grid.step_samples) >= grid.step_samples


def _nemo(turns: list[Turn], num_frames: int, grid: FrameGrid) -> np.ndarray:
    """Frames (num_frames,) as NeMo 3.0.0 pools them: mean of the 10 ms labels 8i-5 to 8i+3, active from 0.5 on.

    The first pool starts at 0 and the last runs to the end of the last frame.
    """
    pooled = grid.subsampling
    fine = np.zeros(num_frames * pooled, dtype=np.int64)
    rate = grid.sample_rate / grid.hop_samples
    for turn in turns:
        fine[int(turn.start * rate) : int(turn.end * rate)] = 1
    centres = pooled * np.arange(num_frames) - 1
    first = np.maximum(centres - pooled // 2, 0)
    last = np.minimum(centres + pooled // 2 + 1, len(fine))
    if num_frames:
        last[-1] = len(fine)
    cumulative = np.concatenate([[0], np.cumsum(fine)])
    return 2 * (cumulative[last] - cumulative[first]) >= last - first


_LABELLINGS = {"cover": _cover, "nemo": _nemo}
