"""Post-processing as the frames come: the turns of :func:`sortformer.postprocess.turns`, each as soon as it is certain.

A slot's stretches of speech are those of :mod:`sortformer.stretches`, as there. They become turns once the slot has a
name, and names are given in order of arrival, as far as that is certain.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np

from sortformer.annotation import Turn, arrival_name
from sortformer.config.postprocess import PostprocessConfig
from sortformer.postprocess import decisive
from sortformer.stretches import Span, Stretches

__all__ = ["TurnState", "add_frames", "end_turns", "free_slot", "name_slot", "start_turns", "tentative_turns"]


@dataclass(frozen=True, slots=True)
class SlotState(Stretches):
    """What is known, and not yet given, of one slot."""

    unnamed: tuple[Span, ...] = ()  # certain turns, in ticks, that wait for the slot's name
    name: str | None = None


@dataclass(frozen=True, slots=True)
class TurnState:
    """What a stream remembers of its turns: bounded by the longest turn that is still open."""

    slots: tuple[SlotState, ...]
    sums: np.ndarray  # (n + 1, S) float64: each slot's probabilities summed up to the frames from `first` on
    first: int = 0
    ticks: int = 0  # heard so far
    names: int = 0  # given so far


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
    """Take in final probabilities (t, S); return the new state and the turns that have become certain.

    A frame lasts ``frame_ticks`` of 10 ms. Speakers are named in order of arrival: a turn waits until nobody who has no
    name yet can turn out to have spoken before it. Only the slots ``speakers`` have turns (None: all).
    """
    columns = np.repeat(decisive(probs, config, speakers), frame_ticks, axis=0).T
    heard = (slot.hear(config, column, state.ticks) for slot, column in zip(state.slots, columns, strict=True))
    slots = tuple(_with_turns(*each) for each in heard)
    sums = np.concatenate([state.sums, state.sums[-1] + np.cumsum(probs, axis=0, dtype=np.float64)])
    return _give(config, replace(state, slots=slots, sums=sums, ticks=state.ticks + columns.shape[1]), frame_ticks)


def tentative_turns(config: PostprocessConfig, state: TurnState, frame_ticks: int) -> tuple[Turn, ...]:
    """Return the turns that there would be, beside those given, if the stream ended now."""
    return end_turns(config, state, frame_ticks)[1]


def end_turns(config: PostprocessConfig, state: TurnState, frame_ticks: int) -> tuple[TurnState, tuple[Turn, ...]]:
    """Close all turns; return the new state and the turns not yet given."""
    slots = tuple(_closed(config, slot, state.ticks) for slot in state.slots)
    return _give(config, replace(state, slots=slots), frame_ticks, certain_only=False)


def free_slot(
    config: PostprocessConfig, state: TurnState, slot: int, frame_ticks: int
) -> tuple[TurnState, tuple[Turn, ...]]:
    """Close the turns of a slot and forget its name; whoever takes the slot next is somebody else."""
    slots = _with(state.slots, slot, _closed(config, state.slots[slot], state.ticks))
    state, given = _give(config, replace(state, slots=slots), frame_ticks, certain_only=False)
    return replace(state, slots=_with(state.slots, slot, SlotState())), given


def name_slot(state: TurnState, slot: int, name: str) -> TurnState:
    """Name a slot before it speaks; it is left out when the others are named in order of arrival."""
    return replace(state, slots=_with(state.slots, slot, replace(state.slots[slot], name=name)))


def _with_turns(slot: SlotState, spans: np.ndarray) -> SlotState:
    """Return a slot with more certain turns, (K, 2) start and end in ticks."""
    return replace(slot, unnamed=(*slot.unnamed, *map(tuple, spans.tolist())))


def _closed(config: PostprocessConfig, slot: SlotState, now: int) -> SlotState:
    """Return the slot as if the stream ended now."""
    return _with_turns(*slot.end(config, now))


def _named(config: PostprocessConfig, state: TurnState, *, certain_only: bool) -> TurnState:
    """Name the slots that have spoken in order of their first turns, as far as that order is certain or all."""
    arrivals = []
    for index, slot in enumerate(state.slots):
        if slot.name is None:
            turns = _closed(config, slot, state.ticks).unnamed
            first = turns[0][0] if turns else slot.earliest(config, state.ticks)
            arrivals.append((first, index, bool(turns)))
    slots, names = state.slots, state.names
    for _, index, certain in sorted(arrivals):
        if certain:
            slots = _with(slots, index, replace(slots[index], name=arrival_name(names)))
            names += 1
        elif certain_only:
            break
    return replace(state, slots=slots, names=names)


def _give(
    config: PostprocessConfig, state: TurnState, frame_ticks: int, *, certain_only: bool = True
) -> tuple[TurnState, tuple[Turn, ...]]:
    """Name the slots and give their certain turns; forget the sums that no coming turn needs."""
    state = _named(config, state, certain_only=certain_only)
    given = []
    for index, slot in enumerate(state.slots):
        if slot.name is not None:
            for start, end in slot.unnamed:
                low, high = (_sum_at(state, index, tick, frame_ticks) for tick in (start, end))
                confidence = config.confidence_of((high - low) / (end - start))
                given.append(Turn(start / 100, end / 100, slot.name, confidence))
    slots = tuple(replace(slot, unnamed=()) if slot.name else slot for slot in state.slots)
    starts = (slot.unnamed[0][0] if slot.unnamed else slot.earliest(config, state.ticks) for slot in slots)
    cut = max(0, min(starts, default=state.ticks) // frame_ticks - state.first)
    state = replace(state, slots=slots, sums=state.sums[cut:], first=state.first + cut)
    return state, tuple(sorted(given))


def _sum_at(state: TurnState, slot: int, tick: int, frame_ticks: int) -> float:
    """The sum of a slot's probabilities over the ticks before ``tick``."""
    frame, rest = divmod(tick, frame_ticks)
    low = state.sums[frame - state.first, slot]
    if not rest:
        return float(low) * frame_ticks
    return float(low * (frame_ticks - rest) + state.sums[frame - state.first + 1, slot] * rest)


def _with(slots: tuple[SlotState, ...], index: int, slot: SlotState) -> tuple[SlotState, ...]:
    return (*slots[:index], slot, *slots[index + 1 :])
