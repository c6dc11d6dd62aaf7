"""Post-processing as the frames come: the turns of :func:`sortformer.postprocess.turns`, each as soon as it is certain.

A slot's stretches of speech go through the same stages as there: padded and joined where they touch, dropped when too
short, joined across short gaps, rounded to ticks of 10 ms and joined where they touch. Each stage holds back its last
stretch until whatever may still come starts too late to join it.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

import numpy as np

from sortformer.annotation import Turn, arrival_name
from sortformer.config.postprocess import PostprocessConfig
from sortformer.postprocess import TICK_US, decisive, in_microseconds, speaking

__all__ = ["TurnState", "add_frames", "end_turns", "free_slot", "name_slot", "start_turns", "tentative_turns"]

Span = tuple[int, int]  # start and end

_NEVER = 1 << 60


@dataclass(frozen=True, slots=True)
class SlotState:
    """What is known, and not yet given, of one slot."""

    since: int | None = None  # tick at which it began to speak; None while silent
    padded: Span | None = None  # the last padded stretch, in microseconds
    bridged: Span | None = None  # the last one that is long enough, in microseconds
    rounded: Span | None = None  # the last one in ticks
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
    now = state.ticks + len(probs) * frame_ticks
    slots = []
    for slot, column in zip(state.slots, decisive(probs, config, speakers).T, strict=True):
        spoke = slot.since is not None
        changes = speaking(np.repeat(column, frame_ticks), config.onset, config.offset, spoke)
        closed, since = [], slot.since
        for border in (np.flatnonzero(np.diff(changes, prepend=spoke)) + state.ticks).tolist():
            if since is None:
                since = border
            else:
                closed.append((since, border))
                since = None
        slots.append(_settle(config, replace(slot, since=since), closed, now if since is None else since, now))
    sums = np.concatenate([state.sums, state.sums[-1] + np.cumsum(probs, axis=0, dtype=np.float64)])
    return _give(config, replace(state, slots=tuple(slots), sums=sums, ticks=now), frame_ticks)


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


def _settle(config: PostprocessConfig, slot: SlotState, closed: Iterable[Span], open_from: int, now: int) -> SlotState:
    """Add closed stretches, in ticks, to a slot; nothing that comes later starts before the tick ``open_from``."""
    pad_on, pad_off, min_on, min_off = in_microseconds(config)
    spans = [(max(0, start * TICK_US - pad_on), max(0, end * TICK_US + pad_off)) for start, end in closed]
    frontier = max(0, open_from * TICK_US - pad_on)
    spans, padded = _join(slot.padded, spans, frontier, gap=0)
    frontier = padded[0] if padded else frontier
    spans = [(start, end) for start, end in spans if end - start >= min_on]
    spans, bridged = _join(slot.bridged, spans, frontier, gap=min_off - 1)
    frontier = bridged[0] if bridged else frontier
    spans = [(_tick(start), min(_tick(end), now)) for start, end in spans]
    spans = [(start, end) for start, end in spans if start < end]
    spans, rounded = _join(slot.rounded, spans, _tick(frontier), gap=0)
    return replace(slot, padded=padded, bridged=bridged, rounded=rounded, unnamed=(*slot.unnamed, *spans))


def _join(pending: Span | None, spans: list[Span], frontier: int, gap: int) -> tuple[list[Span], Span | None]:
    """Join stretches at most ``gap`` apart; return those that nothing from ``frontier`` on can join, and the last."""
    done = []
    for span in spans:
        if pending and span[0] - pending[1] <= gap:
            pending = (pending[0], max(pending[1], span[1]))
            continue
        if pending:
            done.append(pending)
        pending = span
    if pending and frontier - pending[1] > gap:
        done.append(pending)
        pending = None
    return done, pending


def _tick(time_us: int) -> int:
    return (time_us + TICK_US // 2) // TICK_US


def _closed(config: PostprocessConfig, slot: SlotState, now: int) -> SlotState:
    """Return the slot as if the stream ended now: an open stretch stops 10 ms early, as NVIDIA's does."""
    closed = [] if slot.since is None else [(slot.since, now - 1)]
    return _settle(config, replace(slot, since=None), closed, _NEVER, now)


def _named(config: PostprocessConfig, state: TurnState, *, certain_only: bool) -> TurnState:
    """Name the slots that have spoken in order of their first turns, as far as that order is certain or all."""
    pad_on = in_microseconds(config)[0]
    arrivals = []
    for index, slot in enumerate(state.slots):
        if slot.name is None:
            turns = _closed(config, slot, state.ticks).unnamed
            since = state.ticks if slot.since is None else slot.since
            earliest = slot.padded[0] if slot.padded else max(0, since * TICK_US - pad_on)
            arrivals.append((turns[0][0] if turns else _tick(earliest), index, bool(turns)))
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
                given.append(Turn(start / 100, end / 100, slot.name, (high - low) / (end - start)))
    slots = tuple(replace(slot, unnamed=()) if slot.name else slot for slot in state.slots)
    needed = min((_earliest(config, slot, state.ticks) for slot in slots), default=state.ticks) // frame_ticks
    cut = max(0, needed - state.first)
    state = replace(state, slots=slots, sums=state.sums[cut:], first=state.first + cut)
    return state, tuple(sorted(given))


def _sum_at(state: TurnState, slot: int, tick: int, frame_ticks: int) -> float:
    """The sum of a slot's probabilities over the ticks before ``tick``."""
    frame, rest = divmod(tick, frame_ticks)
    low = state.sums[frame - state.first, slot]
    if not rest:
        return float(low) * frame_ticks
    return float(low * (frame_ticks - rest) + state.sums[frame - state.first + 1, slot] * rest)


def _earliest(config: PostprocessConfig, slot: SlotState, now: int) -> int:
    """The first tick that a coming turn of the slot may begin at."""
    if slot.unnamed:
        return slot.unnamed[0][0]
    if slot.rounded:
        return slot.rounded[0]
    pad_on = in_microseconds(config)[0]
    start = max(0, (now if slot.since is None else slot.since) * TICK_US - pad_on)
    for pending in (slot.padded, slot.bridged):
        start = pending[0] if pending else start
    return _tick(start)


def _with(slots: tuple[SlotState, ...], index: int, slot: SlotState) -> tuple[SlotState, ...]:
    return (*slots[:index], slot, *slots[index + 1 :])
