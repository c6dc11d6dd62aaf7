"""Targets from 10 ms speech activity: output frames, slots in order of arrival."""

import numpy as np

from sortformer.grid import FrameGrid
from sortformer.simulate.speech_activity import active_runs, joined_runs
from sortformer.targets import Labelling, pool_nemo

__all__ = ["arrival_targets", "bridged"]


def bridged(active: np.ndarray, shortest_pause: int) -> np.ndarray:
    """Return ``active`` (..., H) with the pauses of each row that are shorter than ``shortest_pause`` hops filled."""
    filled = active.reshape(-1, active.shape[-1]).copy()
    for row in filled:
        for start, end in zip(*joined_runs(*active_runs(row), shortest_pause), strict=True):
            row[start:end] = True
    return filled.reshape(active.shape)


def arrival_targets(
    active: np.ndarray, grid: FrameGrid, labelling: Labelling = "cover"
) -> tuple[np.ndarray, np.ndarray]:
    """Pool hops to output frames and sort the slots by first active frame, then by first active hop.

    The same rule as :func:`sortformer.targets.activity`, for a whole batch at once and without turns.

    Args:
        active: (B, S, H) bool, one row per slot, one column per hop of ``grid``.

    Returns:
        Targets (B, T, S) float32 of zeros and ones, and the order (B, S): the row of ``active`` in each slot of the
        targets.
    """
    batch, slots, num_hops = active.shape
    num_frames = grid.output_frames(num_hops * grid.hop_samples)
    padded = np.zeros((batch, slots, num_frames * grid.subsampling), dtype=bool)
    padded[..., :num_hops] = active
    if labelling == "nemo":
        frames = pool_nemo(padded, grid.subsampling)
    else:
        frames = 2 * padded.reshape(batch, slots, num_frames, grid.subsampling).sum(axis=-1) >= grid.subsampling
    arrival = np.where(frames.any(axis=-1), frames.argmax(axis=-1), num_frames)
    order = np.lexsort((padded.argmax(axis=-1), arrival), axis=-1)
    ordered = np.take_along_axis(frames, order[..., None], axis=1)
    return np.ascontiguousarray(ordered.transpose(0, 2, 1), dtype=np.float32), order
