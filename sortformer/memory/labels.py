"""Label memory: stored frames with their speakers, which classify new frames by nearest neighbours.

kNN-LM (Khandelwal et al., arXiv 1911.00172, section 2) with frames of speech in place of contexts and speakers in place
of words. An unknown voice has neighbours too, so the neighbours compete with a "stranger" at a fixed distance, with
the weight of as many frames; at an infinite distance this is the paper's equation 2.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor
from torch.nn.functional import normalize

from sortformer.config.labels import LabelConfig

__all__ = ["LabelMemory", "interpolate"]

_TILE = 1024  # frames compared with all stored ones at a time


@dataclass(frozen=True, slots=True, eq=False)
class LabelMemory:
    """Stored frames and their labels, in any order.

    They stay in the pieces in which they came, so that adding some does not copy those before.
    """

    config: LabelConfig = field(default_factory=LabelConfig)
    keys: tuple[Tensor, ...] = ()  # (m, D) each, normalised to length one
    labels: tuple[Tensor, ...] = ()  # (m,) each

    @property
    def key(self) -> Tensor:
        """All stored frames, (M, D)."""
        return _joined(self.keys, torch.zeros(0, 0, dtype=torch.float32, device="cpu"))

    @property
    def label(self) -> Tensor:
        """The label of each of them, (M,)."""
        return _joined(self.labels, torch.zeros(0, dtype=torch.int64, device="cpu"))

    def add(self, frames: Tensor, label: int) -> "LabelMemory":
        """Return a memory that also holds frames (n, D) of a label."""
        key = normalize(frames.detach(), dim=-1)
        whose = torch.full((len(key),), label, dtype=torch.int64, device=key.device)
        return replace(self, keys=(*self.keys, key), labels=(*self.labels, whose))

    def merge(self, other: "LabelMemory") -> "LabelMemory":
        """Return a memory that also holds the frames of another under their labels, except those that it has."""
        key, label, held = other.key, other.label, set(_rows(self))
        new = torch.tensor([row not in held for row in _rows(other)], dtype=torch.bool, device="cpu")
        return replace(self, keys=(*self.keys, key[new]), labels=(*self.labels, label[new]))

    def without(self, label: int) -> "LabelMemory":
        """Return a memory without the frames of a label; higher labels decrease by one."""
        key, whose = self.key, self.label
        kept = whose != label
        rest = whose[kept]
        return replace(self, keys=(key[kept],), labels=(rest - (rest > label).to(rest.dtype),))

    def read(self, frames: Tensor, num_labels: int) -> Tensor:
        """Return the probability of each label for frames (T, D), (T, L); the remainder to 1 is that of a stranger.

        The probability of a label is the share of its frames in the weights, exp(-distance / temperature), of the
        neighbours and the stranger.
        """
        key, label = self.key, self.label
        return torch.cat([self._read(tile, key, label, num_labels) for tile in frames.split(_TILE)])

    def _read(self, frames: Tensor, key: Tensor, label: Tensor, num_labels: int) -> Tensor:
        found = frames.new_zeros(len(frames), num_labels)
        count = min(self.config.neighbours, len(key))
        if not count:
            return found
        near, index = (normalize(frames, dim=-1) @ key.T).topk(count, dim=-1)
        score = -(2 - 2 * near) / self.config.temperature
        stranger = math.log(count) - self.config.stranger / self.config.temperature
        weight = torch.cat((score, score.new_full((len(score), 1), stranger)), dim=-1).softmax(dim=-1)
        return found.scatter_add(1, label[index], weight[:, :-1].to(found.dtype))


def _joined(pieces: tuple[Tensor, ...], empty: Tensor) -> Tensor:
    """Return the pieces as one tensor: the only one with rows itself, not a copy."""
    filled = [piece for piece in pieces if len(piece)] or [empty]
    return filled[0] if len(filled) == 1 else torch.cat(filled)


def _rows(memory: LabelMemory) -> Iterator[tuple[int, bytes]]:
    """Yield the label and the content of each frame."""
    return zip(memory.label.tolist(), (row.tobytes() for row in memory.key.numpy()), strict=True)


def interpolate(labels: Tensor, model: Tensor, lam: float) -> Tensor:
    """Return lam p_labels + (1 - lam) p_model, of any one shape (kNN-LM, equation 3)."""
    return lam * labels + (1 - lam) * model
