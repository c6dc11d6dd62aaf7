"""Training targets from turns: an activity matrix whose columns are speakers in order of arrival."""

from collections.abc import Iterable
from typing import Literal

import numpy as np

from sortformer.annotation import Turn, merged
from sortformer.errors import InputError
from sortformer.grid import FrameGrid

__all__ = ["Labelling", "activity", "pool_nemo"]

Labelling = Literal["cover", "nemo"]


def activity(
    turns: Iterable[Turn], num_frames: int, num_slots: int, grid: FrameGrid, labelling: Labelling = "cover"
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return the activity in each output frame, (num_frames, num_slots) float32 of 0 and 1, and the speakers.

    Column k is the k-th speaker to arrive (first active frame, then exact start, then name); columns without a speaker
    are 0. The speakers returned are all that are active in any frame, in this order: those from ``num_slots`` on have
    no column, so ``len(speakers) > num_slots`` means that some were left out.

    Args:
        turns: a diarization or turns in seconds from the start of the first frame; parts past the last are ignored.
        labelling: "cover" marks a frame if the speaker covers half or more of it, exact to the sample; "nemo" marks it
            as NVIDIA's training does (10 ms labels pooled over nine around the frame's start), which shifts boundaries
            by about half a frame: for fine-tuning weights that were trained with it.

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
    active = {speaker: _LABELLINGS[labelling](own, num_frames, grid) for speaker, own in by_speaker.items()}
    heard = [speaker for speaker, frames in active.items() if frames.any()]
    speakers = tuple(sorted(heard, key=lambda who: (active[who].argmax(), by_speaker[who][0].start, who)))
    result = np.zeros((num_frames, num_slots), dtype=np.float32)
    for slot, speaker in enumerate(speakers[:num_slots]):
        result[:, slot] = active[speaker]
    return result, speakers


def _cover(turns: list[Turn], num_frames: int, grid: FrameGrid) -> np.ndarray:
    """Return which frames (num_frames,) one speaker's disjoint turns cover by half or more."""
    covered = np.zeros(num_frames)
    for turn in turns:
        covered += grid.coverage(turn.start, turn.end, num_frames)
    return 2 * np.rint(covered * grid.step_samples) >= grid.step_samples


def _nemo(turns: list[Turn], num_frames: int, grid: FrameGrid) -> np.ndarray:
    """Return the active frames (num_frames,) of one speaker, from labels of 10 ms that are pooled."""
    labels = np.zeros(num_frames * grid.subsampling, dtype=bool)
    rate = grid.sample_rate / grid.hop_samples
    for turn in turns:
        labels[int(turn.start * rate) : int(turn.end * rate)] = True
    return pool_nemo(labels, grid.subsampling)


def pool_nemo(labels: np.ndarray, subsampling: int) -> np.ndarray:
    """Pool labels (..., num_frames * subsampling) of 10 ms to frames (..., num_frames) as NeMo 3.0.0 does.

    Frame i is active if half or more of the labels 8i-5 to 8i+3 are; the first pool starts at 0 and the last runs to
    the end. Without subsampling, labels are returned as they are.
    """
    if subsampling == 1 or labels.shape[-1] == 0:
        return labels
    centres = np.arange(0, labels.shape[-1], subsampling) - 1
    first = np.maximum(centres - subsampling // 2, 0)
    last = centres + subsampling // 2 + 1
    last[-1] = labels.shape[-1]
    cumulative = np.insert(np.cumsum(labels, axis=-1), 0, 0, axis=-1)
    return 2 * (cumulative[..., last] - cumulative[..., first]) >= last - first


_LABELLINGS = {"cover": _cover, "nemo": _nemo}
