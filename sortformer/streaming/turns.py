"""Incremental post-processing: the turns of :func:`sortformer.postprocess.turns`, each as soon as it is final.

The segments of a slot are those of :mod:`sortformer.stretches`. Slots are named in order of arrival, once that is
final. It is as soon as a stretch is: any earlier speaker has by then spoken for at least as long.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sortformer.annotation import Turn
from sortformer.config.postprocess import PostprocessConfig
from sortformer.postprocess import decisive
from sortformer.stretches import Stretches
from sortformer.unnamed import arrival_name

__all__ = ["TurnState", "add_frames", "end_turns", "free_slot", "name_slot", "start_turns"]


@dataclass(frozen=True, slots=True)
class SlotState(Stretches):
    """The pending stretches of one slot, and its name."""

    name: str | None = None


@dataclass(frozen=True, slots=True)
class TurnState:
    """The state of post-processing; its size is bounded by the longest turn that is still open."""

    slots: tuple[SlotState, ...]
    sums: np.ndarray  # (n + 1, S) float64: each slot's probabilities summed up to the frames from `first` on
    first: int = 0
    ticks: int = 0  # processed so far
    names: int = 0  # assigned so far


def start_turns(num_slots: int) -> TurnState:
    """Return the state before the first frame."""
    return TurnState((SlotState(),) * num_slots, np.zeros((1, num_slots)))


def add_frames(
    config: PostprocessConfig,
    state: TurnState,
    probs: np.ndarray,
    frame_ticks: int,
    speakers: Collection[int] | None = None,
) -> tuple[TurnState, tuple[Turn, ...]]:
    """Process final probabilities (t, S); return the new state and the turns that are now final.

    A frame has ``frame_ticks`` ticks of 10 ms. Only the slots ``speakers`` have turns (None: all).
    """
    columns = np.repeat(decisive(probs, config, speakers), frame_ticks, axis=0).T
    heard = [slot.hear(config, column, state.ticks) for slot, column in zip(state.slots, columns, strict=True)]
    slots, spans = zip(*heard, strict=True)
    sums = np.concatenate([state.sums, state.sums[-1] + np.cumsum(probs, axis=0, dtype=np.float64)])
    state = replace(state, slots=slots, sums=sums, ticks=state.ticks + columns.shape[1])
    return _give(config, state, spans, frame_ticks)


def end_turns(config: PostprocessConfig, state: TurnState, frame_ticks: int) -> tuple[TurnState, tuple[Turn, ...]]:
    """Close all turns; return the new state and the turns not yet returned."""
    slots, spans = zip(*(slot.end(config, state.ticks) for slot in state.slots), strict=True)
    return _give(config, replace(state, slots=slots), spans, frame_ticks, leaving=range(len(slots)))


def free_slot(
    config: PostprocessConfig, state: TurnState, slot: int, frame_ticks: int
) -> tuple[TurnState, tuple[Turn, ...]]:
    """Close the turns of a slot and remove its name, for another speaker.

    If it is named only now, slots that may have arrived earlier lose their place, unless they would have a turn if the
    stream ended now.
    """
    closed, said = state.slots[slot].end(config, state.ticks)
    spans = [said if index == slot else said[:0] for index in range(len(state.slots))]
    state = replace(state, slots=_with(state.slots, slot, closed))
    state, given = _give(config, state, spans, frame_ticks, leaving=[slot])
    return replace(state, slots=_with(state.slots, slot, SlotState())), given


def name_slot(state: TurnState, slot: int, name: str) -> TurnState:
    """Name a slot before it speaks; it is then skipped when the others are named in order of arrival."""
    return replace(state, slots=_with(state.slots, slot, replace(state.slots[slot], name=name)))


def _named(
    config: PostprocessConfig, state: TurnState, spans: Sequence[np.ndarray], leaving: Collection[int]
) -> TurnState:
    """Name the slots that have spoken by their first turns, as far as the order is certain or ``leaving`` needs it.

    A slot without a turn yet, which may still prove to be the earliest, delays the names of all later ones otherwise.
    """
    arrivals = []
    for index, slot in enumerate(state.slots):
        if slot.name is None:
            starts = np.concatenate([spans[index], slot.end(config, state.ticks)[1]])[:, 0].tolist()
            first = starts[0] if starts else slot.earliest(config, state.ticks)
            arrivals.append((first, index, bool(starts)))
    arrivals.sort()
    last = max((place for place, (_, index, spoke) in enumerate(arrivals) if spoke and index in leaving), default=-1)
    slots, names, certain = state.slots, state.names, True
    for place, (_, index, spoke) in enumerate(arrivals):
        if not certain and place > last:
            break
        if spoke:
            slots = _with(slots, index, replace(slots[index], name=arrival_name(names)))
            names += 1
        certain = certain and spoke
    return replace(state, slots=slots, names=names)


def _give(
    config: PostprocessConfig,
    state: TurnState,
    spans: Sequence[np.ndarray],
    frame_ticks: int,
    leaving: Collection[int] = (),
) -> tuple[TurnState, tuple[Turn, ...]]:
    """Name the slots and return their certain turns; drop the sums that no future turn needs.

    Args:
        spans: newly certain stretches of each slot: (K, 2) start and end in ticks.
        leaving: slots that must be named now if they have spoken.
    """
    state = _named(config, state, spans, leaving)
    given = []
    for index, slot in enumerate(state.slots):
        for start, end in spans[index].tolist():
            assert slot.name is not None
            low, high = (_sum_at(state, index, tick, frame_ticks) for tick in (start, end))
            confidence = config.confidence_of((high - low) / (end - start))
            given.append(Turn(start / 100, end / 100, slot.name, confidence))
    first_needed = min(slot.earliest(config, state.ticks) for slot in state.slots)
    cut = max(0, first_needed // frame_ticks - state.first)
    state = replace(state, sums=state.sums[cut:], first=state.first + cut)
    return state, tuple(sorted(given))


def _sum_at(state: TurnState, slot: int, tick: int, frame_ticks: int) -> float:
    """Return the sum of a slot's probabilities over the ticks before ``tick``."""
    frame, rest = divmod(tick, frame_ticks)
    low = state.sums[frame - state.first, slot]
    if not rest:
        return float(low) * frame_ticks
    return float(low * (frame_ticks - rest) + state.sums[frame - state.first + 1, slot] * rest)


def _with(slots: tuple[SlotState, ...], index: int, slot: SlotState) -> tuple[SlotState, ...]:
    return (*slots[:index], slot, *slots[index + 1 :])
