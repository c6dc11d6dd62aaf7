"""Diarization and Jaccard error of one recording, cell by cell of 10 ms, over every pairing of speakers."""

from itertools import combinations, permutations

CELL = 100  # cells in a second


def speakers_by_cell(turns, cells):
    result = [set() for _ in range(cells)]
    for turn in turns:
        for cell in range(round(turn.start * CELL), min(round(turn.end * CELL), cells)):
            result[cell].add(turn.speaker)
    return result


def scored_cells(reference, cells, uem, collar_s, skip_overlap):
    """Cells inside the UEM, away from borders of the reference and, if asked, from its overlaps."""
    names = set().union(*reference) if reference else set()
    collar = round(collar_s * CELL)
    near = set()
    for name in names:
        for cell in range(cells + 1):
            before = cell > 0 and name in reference[cell - 1]
            after = cell < cells and name in reference[cell]
            if before != after:
                near.update(range(cell - collar, cell + collar))
    inside = set()
    for start, end in uem:
        inside.update(range(round(start * CELL), round(end * CELL)))
    return [
        cell
        for cell in range(cells)
        if cell in inside and cell not in near and not (skip_overlap and len(reference[cell]) > 1)
    ]


def pairings(ours, theirs):
    """Every way to pair as many speakers as possible, as {theirs: ours}."""
    ours, theirs = sorted(ours), sorted(theirs)
    if len(theirs) <= len(ours):
        for chosen in permutations(ours, len(theirs)):
            yield dict(zip(theirs, chosen, strict=True))
    else:
        for chosen in combinations(theirs, len(ours)):
            for order in permutations(ours):
                yield dict(zip(chosen, order, strict=True))


def der(reference_turns, hypothesis_turns, cells, uem, collar_s=0.0, skip_overlap=False):
    """(total, miss, false alarm, confusion) in seconds, of the pairing with the fewest errors."""
    reference, hypothesis = speakers_by_cell(reference_turns, cells), speakers_by_cell(hypothesis_turns, cells)
    scored = scored_cells(reference, cells, uem, collar_s, skip_overlap)
    best = None
    for pairing in pairings(set().union(*reference), set().union(*hypothesis)):
        total = miss = false_alarm = confusion = 0
        for cell in scored:
            true = reference[cell]
            said = hypothesis[cell]
            right = sum(pairing.get(name) in true for name in said)
            total += len(true)
            miss += max(0, len(true) - len(said))
            false_alarm += max(0, len(said) - len(true))
            confusion += min(len(true), len(said)) - right
        if best is None or confusion < best[3]:
            best = (total, miss, false_alarm, confusion)
    return tuple(count / CELL for count in best)


def jers(reference_turns, hypothesis_turns, cells, uem):
    """The sums of Jaccard errors under each pairing with the longest common time (there may be several)."""
    reference, hypothesis = speakers_by_cell(reference_turns, cells), speakers_by_cell(hypothesis_turns, cells)
    scored = scored_cells(reference, cells, uem, 0, False)
    ours = {name: {c for c in scored if name in reference[c]} for name in set().union(*reference)}
    theirs = {name: {c for c in scored if name in hypothesis[c]} for name in set().union(*hypothesis)}
    ours = {name: where for name, where in ours.items() if where}
    results = []
    for pairing in pairings(ours, theirs):
        together = sum(len(theirs[a] & ours[b]) for a, b in pairing.items())
        partner = {b: a for a, b in pairing.items()}
        errors = 0.0
        for name, where in ours.items():
            other = theirs[partner[name]] if name in partner else set()
            errors += 1 - len(where & other) / len(where | other)
        results.append((together, errors))
    longest = max(together for together, _ in results)
    return [errors for together, errors in results if together == longest], len(ours)
