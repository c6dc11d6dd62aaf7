"""Configs of the memories that a layer has of earlier chunks, distinguished by ``kind``.

``chunk_frames`` is the chunk length when a whole recording is given at once: it is processed in chunks, each of which
attends to itself and to the memory of earlier ones, as in a stream with chunks of that length.
"""

from dataclasses import dataclass
from typing import Literal

from sortformer.config.bounds import Bounded, size
from sortformer.errors import ConfigError

__all__ = ["CompressiveMemory", "Memory", "NearestMemory", "NoMemory", "TransformerXLMemory"]


class _Memory(Bounded):
    __slots__ = ()
    part = "memory"


@dataclass(frozen=True, slots=True)
class NoMemory:
    """No memory of earlier chunks; a recording given at once is processed as a whole."""

    kind: Literal["none"] = "none"


@dataclass(frozen=True, slots=True)
class TransformerXLMemory(_Memory):
    """The last ``frames`` hidden frames."""

    kind: Literal["xl"] = "xl"
    frames: int = size(188, least=0)
    chunk_frames: int = size(188)


@dataclass(frozen=True, slots=True)
class CompressiveMemory(_Memory):
    """The last ``frames`` hidden frames, and up to ``compressed_frames`` made of ``ratio`` older ones each."""

    kind: Literal["compressive"] = "compressive"
    frames: int = size(188, least=0)
    compressed_frames: int = size(188, least=0)
    ratio: int = size(4)
    compression: Literal["max", "mean", "conv", "dilated_conv", "most_used", "autoencoder"] = "conv"
    loss: Literal["attention", "autoencoding", "none"] = "none"
    """What trains the compression: the attention output over compressed frames, reconstruction of the frames or, with
    "none", the task. The first two are weighted by ``memory_weight`` in the ``[loss]`` of a recipe."""
    chunk_frames: int = size(188)

    def __post_init__(self) -> None:
        _Memory.__post_init__(self)
        if self.loss == "autoencoding" and self.compression in ("max", "mean", "most_used"):
            raise ConfigError(
                f"compression {self.compression!r} has no parameters: loss 'autoencoding' has nothing to train"
            )


@dataclass(frozen=True, slots=True)
class NearestMemory(_Memory):
    """Keys and values of the last ``frames`` frames; each query attends to its ``neighbours`` nearest."""

    kind: Literal["knn"] = "knn"
    frames: int = size(45_000, least=0)
    neighbours: int = size(32)
    chunk_frames: int = size(188)


Memory = NoMemory | TransformerXLMemory | CompressiveMemory | NearestMemory
