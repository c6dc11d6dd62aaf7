"""The speaker cache of one stream, one frame and one slot at a time, in lists and float64."""

import math

__all__ = ["compressed"]

SILENCE = None


def compressed(probs, frames, silence_frames, *, floor=0.25, newcomer=0.05, strong=0.75, weak=1.5, enough=0.5):
    """Return the frame at each of the ``frames`` places of the cache, or SILENCE; ``probs`` are (T, S) lists."""
    slots = len(probs[0])
    budget = max(0, frames // slots - silence_frames)
    table = [_scores_of_slot(probs, slot, floor, math.floor(enough * budget)) for slot in range(slots)]
    for column in table:
        for t in range(frames, len(probs)):
            column[t] += newcomer
        _raise_best(column, math.floor(strong * budget), 2 * math.log(2))
        _raise_best(column, math.floor(weak * budget), math.log(2))
    candidates = []
    for slot, column in enumerate(table):
        candidates += [(score, slot, t) for t, score in enumerate(column) if score > -math.inf]
        candidates += [(math.inf, slot, len(probs) + extra) for extra in range(silence_frames)]
    best = sorted(candidates, key=lambda candidate: -candidate[0])[:frames]
    places = [t if t < len(probs) else SILENCE for _, _, t in sorted(best, key=lambda candidate: candidate[1:])]
    return places + [SILENCE] * (frames - len(places))


def _scores_of_slot(probs, slot, floor, enough):
    column = []
    for frame in probs:
        score = math.log(max(frame[slot], floor)) + math.log(2)
        for other, p in enumerate(frame):
            if other != slot:
                score += math.log(max(1 - p, floor))
        column.append(score if frame[slot] > 0.5 else -math.inf)
    if sum(score > 0 for score in column) >= enough:
        column = [score if score > 0 else -math.inf for score in column]
    return column


def _raise_best(column, count, bonus):
    for t in sorted(range(len(column)), key=lambda t: -column[t])[:count]:
        column[t] += bonus
