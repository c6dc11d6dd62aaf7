"""DER of whole recordings with many speakers, from one border to the next, in steps of 10 ms.

Between two borders (of turns, of the UEM, of collars) nothing changes, so each piece is counted once, by the
definition. Speakers are paired without trying every pairing: the best pairing of n pairs is extended to the best one
of n + 1 along the augmenting path with the largest gain (the Hungarian method, with Bellman-Ford).
"""

from collections import Counter

STEP = 100  # in a second


def stretches(turns):
    """Return {speaker: [(start, end), ...]} in steps, with overlapping and touching turns merged."""
    found = {}
    for turn in sorted(turns, key=lambda turn: turn.start):
        start, end = round(turn.start * STEP), round(turn.end * STEP)
        own = found.setdefault(turn.speaker, [])
        if own and start <= own[-1][1]:
            start, end = own[-1][0], max(end, own.pop()[1])
        own.append((start, end))
    return found


def pieces(ours, theirs, uem, collar, skip_overlap):
    """Return (length, reference speakers, hypothesis speakers) of each scored piece."""
    events = [
        (round(time * STEP), change, "in", None) for part in uem for time, change in zip(part, (1, -1), strict=True)
    ]
    for kind, speakers in (("true", ours), ("said", theirs)):
        for name, own in speakers.items():
            for start, end in own:
                events += [(start, 1, kind, name), (end, -1, kind, name)]
    for own in ours.values():
        for border in (time for stretch in own for time in stretch):
            events += [(border - collar, 1, "near", None), (border + collar, -1, "near", None)]
    now, count = 0, {kind: Counter() for kind in ("in", "near", "true", "said")}
    for time, change, kind, name in sorted(events, key=lambda event: event[0]):
        if time > now and count["in"][None] and not count["near"][None]:
            true, said = ({name for name, times in count[side].items() if times} for side in ("true", "said"))
            if not (skip_overlap and len(true) > 1):
                yield time - now, true, said
        now = time
        count[kind][name] += change


def best_pairing(together, ours, theirs):
    """{theirs: ours} with the largest sum of ``together[ours, theirs]``."""
    partner, free = {}, set(ours)
    while free:
        newcomer = {b: max(free, key=lambda a, b=b: together[a, b]) for b in theirs}
        gain, before = {b: together[a, b] for b, a in newcomer.items()}, dict.fromkeys(theirs)
        for _ in partner:
            for b, a in partner.items():
                for c in theirs:
                    if (more := gain[b] - together[a, b] + together[a, c]) > gain[c]:
                        gain[c], before[c] = more, b
        last = max((b for b in theirs if b not in partner), key=lambda b: gain[b], default=None)
        if last is None or gain[last] <= 0:
            break
        while before[last] is not None:
            partner[last], last = partner[before[last]], before[last]
        partner[last] = newcomer[last]
        free.remove(newcomer[last])
    return partner


def der(reference, hypothesis, uem, collar_s=0.0, skip_overlap=False):
    """(total, miss, false alarm, confusion) in seconds."""
    ours, theirs = stretches(reference), stretches(hypothesis)
    found = list(pieces(ours, theirs, uem, round(collar_s * STEP), skip_overlap))
    together = Counter()
    for length, true, said in found:
        for a in true:
            for b in said:
                together[a, b] += length
    partner = best_pairing(together, ours, theirs)
    total = miss = false_alarm = confusion = 0
    for length, true, said in found:
        right = sum(partner.get(b) in true for b in said)
        total += length * len(true)
        miss += length * max(0, len(true) - len(said))
        false_alarm += length * max(0, len(said) - len(true))
        confusion += length * (min(len(true), len(said)) - right)
    return tuple(count / STEP for count in (total, miss, false_alarm, confusion))
