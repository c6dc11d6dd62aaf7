"""Memories as plain lists of frames, one recording and one chunk at a time, in float64."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

__all__ = ["ListMemory", "attention_over", "compress", "nearest"]


@dataclass
class ListMemory:
    """Recent and compressed frames with their positions, as lists."""

    length: int
    compressed_length: int = 0
    ratio: int = 1
    recent: list[tuple[float, np.ndarray]] = field(default_factory=list)
    compressed: list[tuple[float, np.ndarray]] = field(default_factory=list)
    usage: list[float] = field(default_factory=list)

    def push(self, frames: list[tuple[float, np.ndarray]], squeeze) -> None:
        """Append a chunk; whole groups that are too many are squeezed, ``squeeze(group of (at, frame, usage))``."""
        self.recent += frames
        self.usage += [0.0] * len(frames)
        old = []
        while len(self.recent) >= self.length + self.ratio:
            old += [(*frame, use) for frame, use in zip(self.recent[: self.ratio], self.usage, strict=False)]
            self.recent, self.usage = self.recent[self.ratio :], self.usage[self.ratio :]
        if old and self.compressed_length:
            self.compressed = (self.compressed + squeeze(old))[-self.compressed_length :]

    @property
    def frames(self) -> list[tuple[float, np.ndarray]]:
        return self.compressed + self.recent


def compress(kind: str, ratio: int, weights: dict[str, np.ndarray]):
    """Compress old frames (at, frame, usage) to (at, frame)."""

    def squeeze(old: list[tuple[float, np.ndarray, float]]) -> list[tuple[float, np.ndarray]]:
        if kind == "most_used":
            best = sorted(range(len(old)), key=lambda n: -old[n][2])[: len(old) // ratio]
            return [old[n][:2] for n in sorted(best)]
        frames = [frame for _, frame, _ in old]
        if kind == "dilated_conv":
            for layer, dilation in enumerate((1, 2)):
                weight, bias = weights[f"dilated.{layer}.weight"], weights[f"dilated.{layer}.bias"]
                heard = [
                    bias
                    + sum(
                        weight[:, :, tap] @ frames[n + (tap - 1) * dilation]
                        for tap in range(3)
                        if 0 <= n + (tap - 1) * dilation < len(frames)
                    )
                    for n in range(len(frames))
                ]
                frames = [frame + np.maximum(h, 0) for frame, h in zip(frames, heard, strict=True)]
        out = []
        for start in range(0, len(old), ratio):
            group = frames[start : start + ratio]
            at = float(np.mean([place for place, _, _ in old[start : start + ratio]]))
            if kind == "mean":
                frame = np.mean(group, axis=0)
            elif kind == "max":
                frame = np.max(group, axis=0)
            elif kind == "autoencoder":
                hidden = weights["widen.bias"] + sum(weights["widen.weight"][:, :, n] @ group[n] for n in range(ratio))
                frame = weights["narrow.weight"][:, :, 0] @ np.maximum(hidden, 0) + weights["narrow.bias"]
            else:
                frame = weights["conv.bias"] + sum(weights["conv.weight"][:, :, n] @ group[n] for n in range(ratio))
            out.append((at, frame))
        return out

    return squeeze


def attention_over(
    query: np.ndarray,
    keys: list[np.ndarray],
    values: list[np.ndarray],
    score: Callable[[np.ndarray, np.ndarray, int], float] = lambda query, key, _: float(query @ key),
) -> tuple[np.ndarray, np.ndarray]:
    """Return output and weights of softmax attention of one query over lists. ``score(query, key, its number)``."""
    scores = np.array([score(query, key, n) for n, key in enumerate(keys)]) / math.sqrt(len(query))
    weights = np.exp(scores - scores.max())
    weights = weights / weights.sum()
    return sum(w * v for w, v in zip(weights, values, strict=True)), weights


def nearest(
    query: np.ndarray, keys: list[np.ndarray], values: list[np.ndarray], count: int, sharpness: float
) -> np.ndarray:
    """Read the values of the ``count`` keys with the largest cosine to the query."""
    unit = query / np.linalg.norm(query)
    scores = [float(unit @ key / np.linalg.norm(key)) for key in keys]
    best = sorted(range(len(keys)), key=lambda n: -scores[n])[:count]
    weights = np.array([math.exp(sharpness * scores[n]) for n in best])
    return sum(w * values[n] for w, n in zip(weights / weights.sum(), best, strict=True))
