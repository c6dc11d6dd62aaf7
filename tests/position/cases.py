"""The effect of every position on attention, by frame and pair. A position without a case fails the tests.

``weights`` are those of a layer by name, of ``heads`` heads and the ``DEPTH``-th of its stack, from 0.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sortformer.config.attention import Position
from tests.oracles import attention_loops as oracle

__all__ = ["CASES", "DEPTH", "Case"]

DEPTH = 2

Weights = dict[str, np.ndarray]


def as_it_is(weights: Weights, x: np.ndarray, t: int) -> np.ndarray:
    del weights, t
    return x


def product(weights: Weights, h: int, query: np.ndarray, key: np.ndarray, i: int, j: int) -> float:
    del weights, h, i, j
    return float(query @ key)


@dataclass(frozen=True)
class Case:
    """A frame (D,) with its position t added, and the score of a pair in head h before the division by sqrt(d)."""

    embed: Callable[[Weights, np.ndarray, int], np.ndarray] = as_it_is
    score: Callable[[Weights, int, np.ndarray, np.ndarray, int, int], float] = product
    relative: bool = False
    """Whether it is shift-invariant."""


def sinusoidal(weights: Weights, x: np.ndarray, t: int) -> np.ndarray:
    del weights
    return x + oracle.sinusoid(t, len(x))


def coordinates(weights: Weights, x: np.ndarray, t: int) -> np.ndarray:
    del weights
    return x + oracle.sinusoid(t, len(x)) + oracle.sinusoid(DEPTH + 1, len(x))


def learned(weights: Weights, x: np.ndarray, t: int) -> np.ndarray:
    return x + weights["position.table"][t]


def rope(weights: Weights, h: int, query: np.ndarray, key: np.ndarray, i: int, j: int) -> float:
    del weights, h
    return float(oracle.rotated(query, i) @ oracle.rotated(key, j))


def shaw(weights: Weights, h: int, query: np.ndarray, key: np.ndarray, i: int, j: int) -> float:
    del h
    return oracle.shaw_score(query, key, weights["position.keys"], i, j)


def xl(weights: Weights, h: int, query: np.ndarray, key: np.ndarray, i: int, j: int) -> float:
    u, v = weights["position.content_bias"], weights["position.distance_bias"]
    projection = weights["position.projection.weight"]
    rows = projection.reshape(len(u), -1, projection.shape[1])
    return oracle.transformer_xl_score(query, key, rows[h], u[h], v[h], i, j)


def alibi(weights: Weights, h: int, query: np.ndarray, key: np.ndarray, i: int, j: int) -> float:
    heads = len(weights["query.weight"]) // len(query)
    slope = 2.0 ** (-8 * (h + 1) / heads) if heads == 1 or h + 1 < heads else 0.0
    return oracle.alibi_score(query, key, slope, i, j)


def distance_aware(weights: Weights, h: int, query: np.ndarray, key: np.ndarray, i: int, j: int) -> float:
    a, b = weights["position.slope"][h], weights["position.saturation"][h]
    return oracle.distance_aware_score(query, key, a, b, i, j)


CASES: dict[Position, Case] = {
    "none": Case(relative=True),
    "sinusoidal": Case(embed=sinusoidal),
    "learned": Case(embed=learned),
    "coordinates": Case(embed=coordinates),
    "rope": Case(score=rope, relative=True),
    "shaw": Case(score=shaw, relative=True),
    "xl": Case(score=xl, relative=True),
    "alibi": Case(score=alibi, relative=True),
    "distance_aware": Case(score=distance_aware, relative=True),
}
