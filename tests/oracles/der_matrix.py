"""DER of long recordings: activity in cells of 10 ms, and all pairings of speakers.

It differs from ``der_cells`` (which is slower) only in counting cells for all pairings at once. ``map_without_collar``
pairs speakers by the whole UEM, as md-eval does; else by the scored region.
"""

from itertools import permutations

import numpy as np

CELL = 100  # cells in a second


def activity(turns, cells):
    names = sorted({turn.speaker for turn in turns})
    active = np.zeros((len(names), cells), dtype=bool)
    for turn in turns:
        active[names.index(turn.speaker), round(turn.start * CELL) : round(turn.end * CELL)] = True
    return active


def scored_cells(reference, uem, collar_s, skip_overlap):
    inside = np.zeros(reference.shape[1], dtype=bool)
    for start, end in uem:
        inside[round(start * CELL) : round(end * CELL)] = True
    collar = round(collar_s * CELL)
    for speaker in reference:
        padded = np.concatenate([[False], speaker, [False]])
        for border in np.flatnonzero(padded[1:] != padded[:-1]):
            inside[max(0, border - collar) : border + collar] = False
    if skip_overlap:
        inside &= reference.sum(axis=0) < 2
    return inside


def most_together(together):
    """The pairing of rows with columns whose sum is largest, as a list of pairs."""
    if together.shape[0] > together.shape[1]:
        return [(row, column) for column, row in most_together(together.T)]
    rows = range(together.shape[0])
    best = max(permutations(range(together.shape[1]), len(rows)), key=lambda chosen: together[rows, chosen].sum())
    return list(zip(rows, best, strict=True))


def der(reference, hypothesis, end_s, uem, collar_s=0.0, skip_overlap=False, map_without_collar=False):
    """(total, miss, false alarm, confusion) in seconds."""
    cells = round(end_s * CELL)
    ours, theirs = activity(reference, cells), activity(hypothesis, cells)
    scored = scored_cells(ours, uem, collar_s, skip_overlap)
    paired = scored_cells(ours, uem, 0.0, False) if map_without_collar else scored
    together = ours[:, paired].astype(float) @ theirs[:, paired].T.astype(float)
    pairing = most_together(together)
    true, said = ours[:, scored].sum(axis=0), theirs[:, scored].sum(axis=0)
    right = sum((ours[a, scored] & theirs[b, scored]).sum() for a, b in pairing)
    miss, false_alarm = np.maximum(true - said, 0).sum(), np.maximum(said - true, 0).sum()
    confusion = np.minimum(true, said).sum() - right
    return tuple(float(count) / CELL for count in (true.sum(), miss, false_alarm, confusion))
