"""Configs of the attention cores, distinguished by ``kind``.

Their implementations are in ``sortformer.attention``, their costs and papers in ``config.mechanisms``. ``causal`` means
that a frame attends only to itself and to earlier frames.
"""

import math
from dataclasses import dataclass
from typing import Literal

from sortformer.config.bounds import Bounded, bounded, size
from sortformer.config.checks import require
from sortformer.config.combiners import Combiner
from sortformer.errors import ConfigError

__all__ = [
    "AxialCore",
    "BigBirdCore",
    "BlockLocalCore",
    "BlockwiseCore",
    "Core",
    "DilatedCore",
    "FavorCore",
    "FixedCore",
    "FullCore",
    "GlobalLocalCore",
    "GlobalTokensCore",
    "LinearCore",
    "LinformerCore",
    "LocalCore",
    "LogsparseCore",
    "PatternCore",
    "RandomFeatureCore",
    "ReformerCore",
    "RoutingCore",
    "SinkhornCore",
    "SpanCore",
    "StridedCore",
]

# Drawn in small groups, which is slow; and more features than frames gain nothing.
_MOST_FEATURES = 65_536


@dataclass(frozen=True, slots=True)
class FullCore:
    """Every frame attends to every frame."""

    kind: Literal["full"] = "full"
    causal: bool = False


@dataclass(frozen=True, slots=True)
class LocalCore(Bounded):
    """A frame attends to ``window_frames`` on each side."""

    kind: Literal["local"] = "local"
    window_frames: int = size(125)
    causal: bool = False


@dataclass(frozen=True, slots=True)
class BlockLocalCore(Bounded):
    """A block attends to itself and to ``neighbours`` blocks on each side."""

    kind: Literal["block_local"] = "block_local"
    block_frames: int = size(64)
    neighbours: int = size(1, least=0)
    causal: bool = False


@dataclass(frozen=True, slots=True)
class StridedCore(Bounded):
    """The ``stride_frames`` frames on each side, and all frames at multiples of that distance."""

    kind: Literal["strided"] = "strided"
    stride_frames: int = size(32)
    causal: bool = False


@dataclass(frozen=True, slots=True)
class FixedCore(Bounded):
    """Own block, and the last ``summary_frames`` of every block."""

    kind: Literal["fixed"] = "fixed"
    block_frames: int = size(64)
    summary_frames: int = size(8)
    causal: bool = False

    def __post_init__(self) -> None:
        Bounded.__post_init__(self)
        if self.summary_frames > self.block_frames:
            raise ConfigError(f"summary_frames {self.summary_frames} exceeds block_frames {self.block_frames}")


@dataclass(frozen=True, slots=True)
class DilatedCore(Bounded):
    """``reach`` frames on each side, ``dilation`` apart."""

    kind: Literal["dilated"] = "dilated"
    reach: int = size(64)
    dilation: int = size(4)
    causal: bool = False


@dataclass(frozen=True, slots=True)
class GlobalLocalCore(Bounded):
    """A window, and the first ``global_frames``, which attend to all and are attended to by all."""

    kind: Literal["global_local"] = "global_local"
    window_frames: int = size(125)
    global_frames: int = size(8, least=0)
    causal: bool = False


@dataclass(frozen=True, slots=True)
class GlobalTokensCore(Bounded):
    """A window, and learned ``tokens``, which attend to all frames and are attended to by all."""

    kind: Literal["global_tokens"] = "global_tokens"
    window_frames: int = size(125)
    tokens: int = size(8, least=0)


@dataclass(frozen=True, slots=True)
class BigBirdCore(Bounded):
    """Neighbouring blocks, the first (global) blocks, and ``random_blocks`` drawn once by ``seed``."""

    kind: Literal["bigbird"] = "bigbird"
    block_frames: int = size(64)
    global_blocks: int = size(1, least=0)
    random_blocks: int = size(2, least=0)
    seed: int = 0
    causal: bool = False

    def __post_init__(self) -> None:
        Bounded.__post_init__(self)
        if self.seed < 0:
            raise ConfigError(f"seed of the attention core 'bigbird' must be >= 0, got {self.seed}")


@dataclass(frozen=True, slots=True)
class LogsparseCore:
    """The nearest frame of each of the spans around a frame, whose lengths double with the distance."""

    kind: Literal["logsparse"] = "logsparse"
    causal: bool = False


@dataclass(frozen=True, slots=True)
class AxialCore(Bounded):
    """Own row and column, with time as a grid of ``row_frames`` per row."""

    kind: Literal["axial"] = "axial"
    row_frames: int = size(64)
    causal: bool = False


@dataclass(frozen=True, slots=True)
class BlockwiseCore(Bounded):
    """Each block attends to one block: in head ``h`` (from 0) the ``h``-th after it, with wrap-around."""

    kind: Literal["blockwise"] = "blockwise"
    block_frames: int = size(64)


@dataclass(frozen=True, slots=True)
class FavorCore(Bounded):
    """Softmax (or ReLU) attention by random features, drawn orthogonally."""

    kind: Literal["favor"] = "favor"
    features: int = size(256, most=_MOST_FEATURES)
    kernel: Literal["softmax", "relu"] = "softmax"
    causal: bool = False
    redraw_every: int = size(0, least=0)
    """Training steps between redraws of the features (0: never)."""


@dataclass(frozen=True, slots=True)
class RandomFeatureCore(Bounded):
    """Softmax attention over unit vectors by sines and cosines of ``features`` random projections."""

    kind: Literal["rfa"] = "rfa"
    features: int = size(128, most=_MOST_FEATURES)
    causal: bool = False
    redraw_every: int = size(0, least=0)
    """Training steps between redraws of the projections (0: never)."""


@dataclass(frozen=True, slots=True)
class LinearCore:
    """The kernel elu(x) + 1 in place of the exponential."""

    kind: Literal["linear"] = "linear"
    causal: bool = False


@dataclass(frozen=True, slots=True)
class LinformerCore(Bounded):
    """Keys and values shortened ``ratio`` times, by a mean or a learned convolution over each ``ratio`` frames.

    "learned" instead has weights over chunks of ``chunk_frames``, the length of the recordings if that is fixed.
    """

    kind: Literal["linformer"] = "linformer"
    ratio: int = size(8)
    projection: Literal["mean", "conv", "learned"] = "conv"
    chunk_frames: int = size(256)

    def __post_init__(self) -> None:
        Bounded.__post_init__(self)
        require(
            self.projection != "learned" or self.chunk_frames % self.ratio == 0,
            f"chunk_frames {self.chunk_frames} of the attention core 'linformer' is not a multiple of "
            f"ratio {self.ratio}",
        )


@dataclass(frozen=True, slots=True)
class ReformerCore(Bounded):
    """Frames in the same hash bucket attend to each other; queries and keys are shared."""

    kind: Literal["reformer"] = "reformer"
    buckets: int = size(16)
    rounds: int = size(2)
    chunk_frames: int = size(64)

    def __post_init__(self) -> None:
        Bounded.__post_init__(self)
        if self.buckets != 1 and self.buckets % 2:
            raise ConfigError(f"buckets of the attention core 'reformer' must be 1 or even, got {self.buckets}")


@dataclass(frozen=True, slots=True)
class RoutingCore(Bounded):
    """For each of ``clusters`` centroids, the ``window_frames`` nearest (causal: last) frames attend to each other."""

    kind: Literal["routing"] = "routing"
    clusters: int = size(8)
    window_frames: int = size(64)
    decay: float = bounded(0.999, 0, 1)
    causal: bool = False


@dataclass(frozen=True, slots=True)
class SinkhornCore(Bounded):
    """A block attends to itself and to the block that soft sorting assigns to it.

    With ``cut_blocks`` above 0, every frame attends only to that many of the first sorted blocks.
    """

    kind: Literal["sinkhorn"] = "sinkhorn"
    block_frames: int = size(64)
    iterations: int = size(8, least=0)
    temperature: float = 0.75
    cut_blocks: int = size(0, least=0)
    causal: bool = False

    def __post_init__(self) -> None:
        Bounded.__post_init__(self)
        require(
            1e-3 <= self.temperature < math.inf,  # below it, values are no longer finite
            f"temperature of the attention core 'sinkhorn' must be at least 0.001, got {self.temperature}",
        )
        require(
            not (self.causal and self.cut_blocks),
            "cut_blocks of the attention core 'sinkhorn' needs the whole recording to sort: it cannot be causal",
        )


@dataclass(frozen=True, slots=True)
class SpanCore(Bounded):
    """A window of learned width, up to ``max_frames`` on each side, per head or, if ``dynamic``, per head and frame."""

    kind: Literal["span"] = "span"
    max_frames: int = size(250)
    ramp_frames: int = size(32)
    dynamic: bool = False
    causal: bool = False


PatternCore = (
    BlockLocalCore | StridedCore | FixedCore | DilatedCore | GlobalLocalCore | BigBirdCore | LogsparseCore | AxialCore
)
"""Cores defined by a pattern of pairs alone."""

Core = (
    FullCore
    | LocalCore
    | PatternCore
    | GlobalTokensCore
    | BlockwiseCore
    | FavorCore
    | RandomFeatureCore
    | LinearCore
    | LinformerCore
    | ReformerCore
    | RoutingCore
    | SinkhornCore
    | SpanCore
    | Combiner
)
