"""What a layer remembers of earlier chunks: one frozen record a memory, told apart by ``kind``.

``chunk_frames`` is the length of a chunk where a whole recording is given at once: it is cut, and each chunk attends to
itself and to what the memory kept of those before it, as in a stream with chunks of that length.
"""

from dataclasses import dataclass
from functools import partial
from typing import Literal

from sortformer.config.checks import at_least
from sortformer.errors import ConfigError

__all__ = ["CompressiveMemory", "Memory", "NearestMemory", "NoMemory", "TransformerXLMemory"]


_at_least = partial(at_least, "memory")


@dataclass(frozen=True, slots=True)
class NoMemory:
    """A chunk knows nothing of those before it; a recording that is given at once is not cut."""

    kind: Literal["none"] = "none"


@dataclass(frozen=True, slots=True)
class TransformerXLMemory:
    """The last ``frames`` hidden frames."""

    kind: Literal["xl"] = "xl"
    frames: int = 188
    chunk_frames: int = 188

    def __post_init__(self) -> None:
        _at_least(self.kind, 0, frames=self.frames)
        _at_least(self.kind, 1, chunk_frames=self.chunk_frames)


@dataclass(frozen=True, slots=True)
class CompressiveMemory:
    """The last ``frames`` hidden frames, and of older ones ``compressed_frames`` in which ``ratio`` became one."""

    kind: Literal["compressive"] = "compressive"
    frames: int = 188
    compressed_frames: int = 188
    ratio: int = 4
    compression: Literal["max", "mean", "conv", "dilated_conv", "most_used", "autoencoder"] = "conv"
    loss: Literal["attention", "autoencoding", "none"] = "none"
    """What the compression learns from: what attention reads from it, the frames that can be rebuilt from it, or, with
    "none", the task. A recipe weighs the first two by ``memory_weight`` of its ``[loss]``."""
    chunk_frames: int = 188

    def __post_init__(self) -> None:
        _at_least(self.kind, 0, frames=self.frames, compressed_frames=self.compressed_frames)
        _at_least(self.kind, 1, ratio=self.ratio, chunk_frames=self.chunk_frames)
        if self.loss == "autoencoding" and self.compression == "most_used":
            raise ConfigError("compression 'most_used' keeps frames as they are: there is nothing to rebuild them with")


@dataclass(frozen=True, slots=True)
class NearestMemory:
    """Keys and values of the last ``frames`` frames, of which each query reads the ``neighbours`` nearest."""

    kind: Literal["knn"] = "knn"
    frames: int = 45_000
    neighbours: int = 32
    chunk_frames: int = 188

    def __post_init__(self) -> None:
        _at_least(self.kind, 0, frames=self.frames)
        _at_least(self.kind, 1, neighbours=self.neighbours, chunk_frames=self.chunk_frames)


Memory = NoMemory | TransformerXLMemory | CompressiveMemory | NearestMemory
