"""Attention one query at a time in float64, and the score of each position mechanism for one pair of frames."""

import math
from collections.abc import Callable

import numpy as np

__all__ = [
    "alibi_score",
    "attention",
    "distance_aware_score",
    "rotated",
    "shaw_score",
    "sinusoid",
    "transformer_xl_score",
]


def attention(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    may_attend: Callable[[int, int, int], bool],
    score: Callable[[int, int, int, int], float] | None = None,
) -> np.ndarray:
    """Mix values (B, H, T, d) for each query over the keys j with ``may_attend(b, i, j)``.

    ``score(b, h, i, j)`` replaces the product of query i and key j (before the division by sqrt(d)). The output of a
    query without keys is NaN: it is not compared.
    """
    batch, heads, frames, dim = query.shape
    out = np.full(value.shape, np.nan)
    for b in range(batch):
        for h in range(heads):
            for i in range(frames):
                seen = [j for j in range(frames) if may_attend(b, i, j)]
                if not seen:
                    continue
                products = [score(b, h, i, j) if score else float(np.dot(query[b, h, i], key[b, h, j])) for j in seen]
                weights = [math.exp((product - max(products)) / math.sqrt(dim)) for product in products]
                mixed = sum(weight * value[b, h, j] for weight, j in zip(weights, seen, strict=True))
                out[b, h, i] = mixed / sum(weights)
    return out


def shaw_score(query: np.ndarray, key: np.ndarray, table: np.ndarray, i: int, j: int) -> float:
    """q_i . (k_j + a_clip(j - i)); the middle row of ``table`` (2 n + 1, d) is distance 0."""
    reach = (len(table) - 1) // 2
    distance = max(-reach, min(reach, j - i))
    return float(np.dot(query, key + table[reach + distance]))


def sinusoid(position: float, dim: int) -> np.ndarray:
    """The encoding (dim,) of one position: alternating sine and cosine of decreasing frequencies."""
    code = np.zeros(dim)
    for channel in range(dim):
        angle = position / 10_000 ** (2 * (channel // 2) / dim)
        code[channel] = math.sin(angle) if channel % 2 == 0 else math.cos(angle)
    return code


def transformer_xl_score(
    query: np.ndarray,
    key: np.ndarray,
    projection: np.ndarray,
    content_bias: np.ndarray,
    distance_bias: np.ndarray,
    i: int,
    j: int,
) -> float:
    """(q_i + u) . k_j + (q_i + v) . W_h r_(i - j), with the rows W_h (d, H * d) of this head."""
    code = projection @ sinusoid(i - j, projection.shape[1])
    return float(np.dot(query + content_bias, key) + np.dot(query + distance_bias, code))


def alibi_score(query: np.ndarray, key: np.ndarray, slope: float, i: int, j: int) -> float:
    """q_i . k_j less a penalty that is ``slope |i - j|`` once both are divided by sqrt(d)."""
    return float(np.dot(query, key) - slope * abs(i - j) * math.sqrt(len(query)))


def distance_aware_score(query: np.ndarray, key: np.ndarray, a: float, b: float, i: int, j: int) -> float:
    """max(0, q_i . k_j) times (1 + e^b) / (1 + e^(b - a |i - j|))."""
    return max(0.0, float(np.dot(query, key))) * (1 + math.exp(b)) / (1 + math.exp(b - a * abs(i - j)))


def rotated(vector: np.ndarray, position: int, base: float = 10_000.0) -> np.ndarray:
    """Rotate one vector (d,) by its position: channel c and channel c + d / 2 are a complex number."""
    half = len(vector) // 2
    out = np.zeros(len(vector))
    for c in range(half):
        turned = complex(vector[c], vector[c + half]) * np.exp(1j * position / base ** (2 * c / len(vector)))
        out[c], out[c + half] = turned.real, turned.imag
    return out
