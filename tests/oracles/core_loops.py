"""Attention cores one query at a time in float64, from the papers: patterns, kernels, hashing, routing, sorting."""

import math
from collections.abc import Callable

import numpy as np

__all__ = [
    "blockwise",
    "clusters",
    "dyadic_spans",
    "elu_kernel",
    "favor_kernel",
    "fourier_kernel",
    "global_tokens",
    "kernel_attention",
    "linformer",
    "reformer",
    "relu_kernel",
    "routing",
    "routing_causal",
    "sinkhorn_attention",
    "softmax_over",
    "span",
]


def softmax_over(query: np.ndarray, keys: list[np.ndarray], values: list[np.ndarray]) -> np.ndarray:
    """Softmax attention of one query over a list of keys; NaN where there are none."""
    if not keys:
        return np.full(query.shape, np.nan)
    scores = [float(query @ key) / math.sqrt(len(query)) for key in keys]
    weights = [math.exp(score - max(scores)) for score in scores]
    return sum(w * v for w, v in zip(weights, values, strict=True)) / sum(weights)


def dyadic_spans(i: int, frames: int) -> list[tuple[int, int]]:
    """Halve [0, 2^n) down to i; return the halves without i, as (start, stop), longest first, cut at ``frames``."""
    start, size = 0, 1
    while size < frames:
        size *= 2
    spans = []
    while size > 1:
        size //= 2
        left, right = (start, start + size), (start + size, start + 2 * size)
        spans.append(left if i >= right[0] else right)
        start = right[0] if i >= right[0] else left[0]
    return [(a, min(b, frames)) for a, b in spans if a < frames]


def kernel_attention(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    valid: np.ndarray,
    kernel: Callable[[np.ndarray, np.ndarray], float],
    causal: bool,
) -> np.ndarray:
    """sum_j K(q_i, k_j) v_j / sum_j K(q_i, k_j) over the valid keys."""
    out = np.full(query.shape, np.nan)
    for b, h, i in np.ndindex(*query.shape[:3]):
        seen = [j for j in range(key.shape[2]) if valid[b, j] and (j <= i or not causal)]
        weights = [kernel(query[b, h, i], key[b, h, j]) for j in seen]
        if seen:
            out[b, h, i] = sum(w * value[b, h, j] for w, j in zip(weights, seen, strict=True)) / sum(weights)
    return out


def favor_kernel(directions: np.ndarray) -> Callable[[np.ndarray, np.ndarray], float]:
    """phi(x)_w = exp(w . x - |x|^2 / 2) / sqrt(m) with x = q / d^(1/4)."""

    def features(x: np.ndarray) -> np.ndarray:
        x = x / len(x) ** 0.25
        return np.array([math.exp(w @ x - x @ x / 2) for w in directions]) / math.sqrt(len(directions))

    return lambda q, k: float(features(q) @ features(k))


def relu_kernel(directions: np.ndarray, floor: float = 1e-3) -> Callable[[np.ndarray, np.ndarray], float]:
    """phi(x)_w = max(0, w . x) + epsilon, with x = q / d^(1/4)."""

    def features(x: np.ndarray) -> np.ndarray:
        return np.array([max(0.0, w @ x / len(x) ** 0.25) + floor for w in directions])

    return lambda q, k: float(features(q) @ features(k))


def fourier_kernel(directions: np.ndarray) -> Callable[[np.ndarray, np.ndarray], float]:
    """The mean of cos(w . (q - k)) for q and k of length one: the product of sine and cosine features."""

    def kernel(q: np.ndarray, k: np.ndarray) -> float:
        gap = q / np.linalg.norm(q) - k / np.linalg.norm(k)
        return float(np.mean([math.cos(w @ gap) for w in directions]))

    return kernel


def elu_kernel(q: np.ndarray, k: np.ndarray) -> float:
    def features(x: np.ndarray) -> np.ndarray:
        return np.array([value + 1 if value > 0 else math.exp(value) for value in x])

    return float(features(q) @ features(k))


def span(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    valid: np.ndarray,
    spans: Callable[[int, np.ndarray], float],
    ramp: int,
    causal: bool,
) -> np.ndarray:
    """sum_j m(|i - j|) exp(s_ij) v_j over its sum, with m(x) = clamp((R + z - x) / R, 0, 1) and z by head and query."""
    out = np.full(query.shape, np.nan)
    for b, h, i in np.ndindex(*query.shape[:3]):
        reach = spans(h, query[b, h, i])
        total, mixed = 0.0, np.zeros(query.shape[3])
        for j in range(key.shape[2]):
            soft = min(1.0, max(0.0, (ramp + reach - abs(i - j)) / ramp))
            if valid[b, j] and (j <= i or not causal):
                weight = soft * math.exp(query[b, h, i] @ key[b, h, j] / math.sqrt(query.shape[3]))
                total, mixed = total + weight, mixed + weight * value[b, h, j]
        if total > 0:
            out[b, h, i] = mixed / total
    return out


def blockwise(query: np.ndarray, key: np.ndarray, value: np.ndarray, valid: np.ndarray, block: int) -> np.ndarray:
    """In head h, block n attends to block (n + h) modulo the number of blocks of the recording."""
    out = np.full(query.shape, np.nan)
    for b, h, i in np.ndindex(*query.shape[:3]):
        length = max((j + 1 for j in range(key.shape[2]) if valid[b, j]), default=0)
        if not length:
            continue
        partner = (i // block + h) % math.ceil(length / block)
        seen = [j for j in range(key.shape[2]) if valid[b, j] and j // block == partner]
        out[b, h, i] = softmax_over(query[b, h, i], [key[b, h, j] for j in seen], [value[b, h, j] for j in seen])
    return out


def global_tokens(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    valid: np.ndarray,
    tokens: tuple[np.ndarray, np.ndarray, np.ndarray],
    window: int,
) -> np.ndarray:
    """Tokens (H, n, d; query, key, value) read tokens and frames; a frame reads its window and what the tokens read."""
    out = np.full(query.shape, np.nan)
    for b, h in np.ndindex(*query.shape[:2]):
        asking, asked, told = (list(x[h]) for x in tokens)
        length = [j for j in range(key.shape[2]) if valid[b, j]]
        keys, values = asked + [key[b, h, j] for j in length], told + [value[b, h, j] for j in length]
        read = [softmax_over(token, keys, values) for token in asking]
        for i in range(query.shape[2]):
            near = [j for j in length if abs(i - j) <= window]
            keys, values = asked + [key[b, h, j] for j in near], read + [value[b, h, j] for j in near]
            out[b, h, i] = softmax_over(query[b, h, i], keys, values)
    return out


def linformer(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    valid: np.ndarray,
    chunk: int,
    weights: tuple[np.ndarray, np.ndarray] | None,
) -> np.ndarray:
    """Attend to a few keys and values per chunk: its mean, or sums weighted by position in the chunk (slots, chunk)."""
    out = np.full(query.shape, np.nan)
    for b, h, i in np.ndindex(*query.shape[:3]):
        keys, values = [], []
        for start in range(0, key.shape[2], chunk):
            seen = [j for j in range(start, min(start + chunk, key.shape[2])) if valid[b, j]]
            shares = (np.full((1, chunk), 1 / len(seen)),) * 2 if seen and weights is None else weights
            for slot in range(len(shares[0]) if seen else 0):
                keys.append(sum(shares[0][slot, j - start] * key[b, h, j] for j in seen))
                values.append(sum(shares[1][slot, j - start] * value[b, h, j] for j in seen))
        out[b, h, i] = softmax_over(query[b, h, i], keys, values)
    return out


def reformer(
    query: np.ndarray, value: np.ndarray, valid: np.ndarray, rotations: np.ndarray, buckets: int, chunk: int
) -> np.ndarray:
    """Each round: sort by (bucket, time), cut into chunks, attend within bucket to own chunk and the one before."""
    out = np.full(query.shape, np.nan)
    for b, h in np.ndindex(*query.shape[:2]):
        length = [t for t in range(query.shape[2]) if valid[b, t]]
        for i in length:
            total, mixed = [], []
            for rotation in rotations:
                turned = [query[b, h, t] @ rotation for t in length]
                bucket = {
                    t: int(np.argmax(np.concatenate([x, -x]))) if buckets > 1 else 0
                    for t, x in zip(length, turned, strict=True)
                }
                order = sorted(length, key=lambda t: (bucket[t], t))
                place = {t: n // chunk for n, t in enumerate(order)}
                weights, values = [], []
                for j in order:
                    if bucket[j] == bucket[i] and place[i] - 1 <= place[j] <= place[i]:
                        unit = query[b, h, j] / np.linalg.norm(query[b, h, j])
                        score = -1e5 if i == j else query[b, h, i] @ unit / math.sqrt(query.shape[3])
                        weights.append(score)
                        values.append(value[b, h, j])
                most = max(weights)
                shares = np.array([math.exp(w - most) for w in weights])
                total.append(most + math.log(shares.sum()))
                mixed.append(sum(s * v for s, v in zip(shares / shares.sum(), values, strict=True)))
            rounds = np.array([math.exp(t - max(total)) for t in total])
            out[b, h, i] = sum(r * m for r, m in zip(rounds / rounds.sum(), mixed, strict=True))
    return out


def standardised(x: np.ndarray) -> np.ndarray:
    return (x - x.mean()) / math.sqrt(x.var() + 1e-5)


def clusters(key: np.ndarray, centroids: np.ndarray) -> np.ndarray:
    """The centroid that each key (B, H, T, d) is nearest to."""
    out = np.zeros(key.shape[:3], dtype=int)
    for b, h, j in np.ndindex(*key.shape[:3]):
        out[b, h, j] = max(range(len(centroids[h])), key=lambda c: float(standardised(key[b, h, j]) @ centroids[h][c]))
    return out


def routing_causal(
    query: np.ndarray, key: np.ndarray, value: np.ndarray, valid: np.ndarray, centroids: np.ndarray, window: int
) -> np.ndarray:
    """A frame attends to itself and to the ``window`` frames before it whose keys have the same nearest centroid."""
    out = np.full(query.shape, np.nan)
    near = clusters(key, centroids)
    for b, h, i in np.ndindex(*query.shape[:3]):
        seen = [j for j in range(i + 1) if valid[b, j] and near[b, h, j] == near[b, h, i]][-window - 1 :]
        keys = [standardised(key[b, h, j]) for j in seen]
        out[b, h, i] = softmax_over(standardised(query[b, h, i]), keys, [value[b, h, j] for j in seen])
    return out


def routing(
    query: np.ndarray, key: np.ndarray, value: np.ndarray, valid: np.ndarray, centroids: np.ndarray, window: int
) -> np.ndarray:
    """Each centroid takes its nearest queries and keys; a frame's output is the mean over its clusters, or zero."""

    out = np.zeros(query.shape)
    for b, h in np.ndindex(*query.shape[:2]):
        length = [t for t in range(query.shape[2]) if valid[b, t]]
        queries, keys = ({t: standardised(x[b, h, t]) for t in length} for x in (query, key))
        said: dict[int, list[np.ndarray]] = {t: [] for t in length}
        for centroid in centroids[h]:
            asking, asked = (
                sorted(length, key=lambda t, x=x: float(-(x[t] @ centroid)))[:window] for x in (queries, keys)
            )
            for i in asking:
                said[i].append(softmax_over(queries[i], [keys[j] for j in asked], [value[b, h, j] for j in asked]))
        for i in length:
            if said[i]:
                out[b, h, i] = np.mean(said[i], axis=0)
    return out


def doubly_stochastic(matrix: np.ndarray, iterations: int, causal: bool) -> np.ndarray:
    """Normalise rows and columns repeatedly; causal: columns by their sums up to each row."""
    for _ in range(iterations):
        rows = matrix.sum(axis=1, keepdims=True)
        matrix = np.divide(matrix, rows, out=np.zeros_like(matrix), where=rows > 0)
        columns = np.array([matrix[: row + 1 if causal else None].sum(axis=0) for row in range(len(matrix))])
        matrix = np.divide(matrix, columns, out=np.zeros_like(matrix), where=columns > 0)
    return matrix


def sinkhorn_attention(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    valid: np.ndarray,
    block: int,
    iterations: int,
    temperature: float,
    cut: int = 0,
    causal: bool = False,
) -> np.ndarray:
    """Sort blocks by a doubly stochastic matrix of scores of their means; attend to own and sorted block.

    With a cut: to the first sorted blocks only. Causal: a block is scored by the mean of the queries up to its first
    one, among the blocks before it.
    """
    out = np.full(query.shape, np.nan)
    frames, dim = query.shape[2:]
    for b, h in np.ndindex(*query.shape[:2]):
        members = [[j for j in range(n, min(n + block, frames)) if valid[b, j]] for n in range(0, frames, block)]
        members = [frame for frame in members if frame]
        before = [[j for j in range(frame[0] + 1) if valid[b, j]] for frame in members]
        asking = [query[b, h, frame].mean(axis=0) for frame in (before if causal else members)]
        asked = [key[b, h, frame].mean(axis=0) for frame in members]
        order = np.array([[math.exp(q @ k / math.sqrt(dim) / temperature) for k in asked] for q in asking])
        order = doubly_stochastic(np.tril(order, -1) if causal else order, iterations, causal)
        sorted_keys, sorted_values = [], []
        for row in range(len(members)):
            mixed = np.zeros((2, block, dim))
            places = set()
            for column, frame in enumerate(members[:row] if causal else members):
                for j in frame:
                    places.add(j % block)
                    mixed[0, j % block] += order[row, column] * key[b, h, j]
                    mixed[1, j % block] += order[row, column] * value[b, h, j]
            sorted_keys.append([mixed[0, place] for place in sorted(places)])
            sorted_values.append([mixed[1, place] for place in sorted(places)])
        for row, frame in enumerate(members):
            for i in frame:
                own = [j for j in frame if j <= i or not causal]
                keys = [key[b, h, j] for j in own] + sorted_keys[row]
                values = [value[b, h, j] for j in own] + sorted_values[row]
                if cut:
                    keys, values = ([x for one in part[:cut] for x in one] for part in (sorted_keys, sorted_values))
                out[b, h, i] = softmax_over(query[b, h, i], keys, values)
    return out
