"""The Combiner of any plan, by definition: a set of frames and a list of groups for each query, one softmax."""

import math
from collections.abc import Callable

import numpy as np

from tests.oracles.core_loops import dyadic_spans

__all__ = [
    "axial_plan",
    "combiner",
    "fixed_plan",
    "hierarchical",
    "logsparse_plan",
    "pooled",
    "routing_plan",
    "rowmajor_abstraction",
]

Plan = Callable[[int, int], tuple[list[int], list[list[int]]]]
"""Takes a query and the number of frames; returns the frames that it attends to directly, and groups."""


def pooled(
    pool: str, key_map: np.ndarray | None = None, query_map: np.ndarray | None = None
) -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    """The abstraction (k, q) of a group by maximum or mean, of ReLU(W x) if there is a W."""

    def abstraction(query, key, b, h, _, members):
        pooled_pair = []
        for x, weight in ((key, key_map), (query, query_map)):
            rows = [x[b, h, j] if weight is None else np.maximum(weight @ x[b, h, j], 0) for j in members]
            pooled_pair.append(np.max(rows, axis=0) if pool.endswith("max") else np.mean(rows, axis=0))
        return tuple(pooled_pair)

    return abstraction


def rowmajor_abstraction(row: int, valid: np.ndarray):
    """The abstraction of a row: the query of its frame in i's column (zero without one), the key that this reads."""

    def abstraction(query, key, b, h, i, members):
        there = members[0] // row * row + i % row
        asked = query[b, h, there] if there < query.shape[2] and valid[b, there] else np.zeros(query.shape[3])
        weights = np.array([math.exp(asked @ key[b, h, j] / math.sqrt(len(asked))) for j in members])
        return sum(w * key[b, h, j] for w, j in zip(weights / weights.sum(), members, strict=True)), asked

    return abstraction


def combiner(
    query: np.ndarray, key: np.ndarray, value: np.ndarray, valid: np.ndarray, plan: Plan, abstraction
) -> np.ndarray:
    """Equation 8, term by term; NaN for a query that sees nothing."""
    out = np.full(query.shape, np.nan)
    root = math.sqrt(query.shape[3])
    for b, h, i in np.ndindex(*query.shape[:3]):
        direct, groups = plan(i, query.shape[2])
        scores = [query[b, h, i] @ key[b, h, j] / root for j in direct if valid[b, j]]
        values = [value[b, h, j] for j in direct if valid[b, j]]
        for group in groups:
            members = [j for j in group if valid[b, j]]
            if not members:
                continue
            group_key, group_query = abstraction(query, key, b, h, i, members)
            local = np.array([math.exp(group_query @ key[b, h, j] / root) for j in members])
            scores.append(query[b, h, i] @ group_key / root)
            values.append(sum(w * value[b, h, j] for w, j in zip(local / local.sum(), members, strict=True)))
        if scores:
            weights = np.array([math.exp(score - max(scores)) for score in scores])
            out[b, h, i] = sum(w * v for w, v in zip(weights / weights.sum(), values, strict=True))
    return out


def hierarchical(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    valid: np.ndarray,
    abstraction,
    block: int,
    fan_out: int,
    causal: bool,
) -> np.ndarray:
    """The partition tree of section 3.1: p(j|i) = p(j|block) p(block|group) ... p(group|i), down from each sibling."""
    out = np.full(query.shape, np.nan)
    frames, root = query.shape[2], math.sqrt(query.shape[3])

    def shares(b, h, i, start, size):
        """p(j | the node of ``size`` frames from ``start``), by frame, and the node's key."""
        members = [j for j in range(start, min(start + size, frames)) if valid[b, j]]
        if not members:
            return None
        node_key, node_query = abstraction(query, key, b, h, i, members)
        if size == block:
            parts = [({j: 1.0}, key[b, h, j]) for j in members]
        else:
            steps = range(start, start + size, size // fan_out)
            parts = [part for step in steps if (part := shares(b, h, i, step, size // fan_out))]
        odds = [math.exp(node_query @ part_key / root) for _, part_key in parts]
        inside = zip(odds, parts, strict=True)
        return {j: odd / sum(odds) * share for odd, (part, _) in inside for j, share in part.items()}, node_key

    for b, h, i in np.ndindex(*query.shape[:3]):
        own = range(i // block * block, min(i // block * block + block, frames))
        terms = [({j: 1.0}, key[b, h, j]) for j in own if valid[b, j] and (j <= i or not causal)]
        size = block
        while size < frames:
            family = i // (size * fan_out) * size * fan_out
            for start in range(family, family + size * fan_out, size):
                if start // size != i // size and (start < i or not causal) and (term := shares(b, h, i, start, size)):
                    terms.append(term)
            size *= fan_out
        if terms:
            odds = [math.exp(query[b, h, i] @ term_key / root) for _, term_key in terms]
            out[b, h, i] = sum(
                odd / sum(odds) * share * value[b, h, j]
                for odd, (part, _) in zip(odds, terms, strict=True)
                for j, share in part.items()
            )
    return out


def fixed_plan(block: int, causal: bool) -> Plan:
    def plan(i, frames):
        blocks = [list(range(start, min(start + block, frames))) for start in range(0, frames, block)]
        own = i // block
        groups = [frame for n, frame in enumerate(blocks) if n < own or (n > own and not causal)]
        return [j for j in blocks[own] if j <= i or not causal], groups

    return plan


def logsparse_plan(causal: bool) -> Plan:
    def plan(i, frames):
        spans = [list(range(a, b)) for a, b in dyadic_spans(i, frames) if a < i or not causal]
        groups = [span for span in spans if span != [i ^ 1]]
        return ([i, i ^ 1] if [i ^ 1] in spans else [i]), groups

    return plan


def axial_plan(kind: str, row: int, causal: bool) -> Plan:
    def plan(i, frames):
        r, c = divmod(i, row)
        grid = [(j, *divmod(j, row)) for j in range(frames)]
        direct = [j for j, y, x in grid if y == r and (x <= c or not causal)]
        if kind != "rowmajor":
            direct += [j for j, y, x in grid if x == c and (y < r or (y > r and not causal))]
        rows, groups = (frames - 1) // row + 1, []
        if kind in ("vertical", "joint"):
            for column in range(row):
                if column != c:
                    groups.append([j for j, y, x in grid if x == column and y < r])
                    groups.append([j for j, y, x in grid if x == column and y > r and not causal])
        if kind != "vertical":
            for other in range(rows):
                if other < r or (other > r and not causal):
                    groups.append([j for j, y, x in grid if y == other and (x != c or kind == "rowmajor")])
        return direct, groups

    return plan


def routing_plan(cluster: np.ndarray, causal: bool) -> Plan:
    """Equations 11 and 12, from the cluster (T,) of each frame."""

    def plan(i, frames):
        seen = [j for j in range(frames) if j <= i or not causal]
        direct = [j for j in seen if cluster[j] == cluster[i]]
        return direct, [[j for j in seen if cluster[j] == other] for other in set(cluster) - {cluster[i]}]

    return plan
