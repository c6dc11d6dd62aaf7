"""Configs of the attention cores, distinguished by ``kind``.

Their implementations are in ``sortformer.attention``, their costs and papers in ``config.mechanisms``. ``causal`` means
that a frame attends only to itself and to earlier frames.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import Literal

from sortformer.config.checks import at_least, fraction, require
from sortformer.config.combiners import (
    CombinerAxialCore,
    CombinerFixedCore,
    CombinerHierarchicalCore,
    CombinerLogsparseCore,
    CombinerMixtureCore,
    CombinerRoutingCore,
)
from sortformer.errors import ConfigError

__all__ = [
    "AxialCore",
    "BigBirdCore",
    "BlockLocalCore",
    "BlockwiseCore",
    "CombinerAxialCore",
    "CombinerFixedCore",
    "CombinerHierarchicalCore",
    "CombinerLogsparseCore",
    "CombinerMixtureCore",
    "CombinerRoutingCore",
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

_at_least = partial(at_least, "attention core")
_MOST_FEATURES = 65_536


@dataclass(frozen=True, slots=True)
class FullCore:
    """Every frame attends to every frame."""

    kind: Literal["full"] = "full"
    causal: bool = False


@dataclass(frozen=True, slots=True)
class LocalCore:
    """A frame attends to ``window_frames`` on each side."""

    kind: Literal["local"] = "local"
    window_frames: int = 125
    causal: bool = False

    def __post_init__(self) -> None:
        _at_least(self.kind, 1, window_frames=self.window_frames)


@dataclass(frozen=True, slots=True)
class BlockLocalCore:
    """A block attends to itself and to ``neighbours`` blocks on each side."""

    kind: Literal["block_local"] = "block_local"
    block_frames: int = 64
    neighbours: int = 1
    causal: bool = False

    def __post_init__(self) -> None:
        _at_least(self.kind, 1, block_frames=self.block_frames)
        _at_least(self.kind, 0, neighbours=self.neighbours)


@dataclass(frozen=True, slots=True)
class StridedCore:
    """The ``stride_frames`` frames on each side, and all frames at multiples of that distance."""

    kind: Literal["strided"] = "strided"
    stride_frames: int = 32
    causal: bool = False

    def __post_init__(self) -> None:
        _at_least(self.kind, 1, stride_frames=self.stride_frames)


@dataclass(frozen=True, slots=True)
class FixedCore:
    """Own block, and the last ``summary_frames`` of every block."""

    kind: Literal["fixed"] = "fixed"
    block_frames: int = 64
    summary_frames: int = 8
    causal: bool = False

    def __post_init__(self) -> None:
        _at_least(self.kind, 1, block_frames=self.block_frames, summary_frames=self.summary_frames)
        if self.summary_frames > self.block_frames:
            raise ConfigError(f"summary_frames {self.summary_frames} exceeds block_frames {self.block_frames}")


@dataclass(frozen=True, slots=True)
class DilatedCore:
    """``reach`` frames on each side, ``dilation`` apart."""

    kind: Literal["dilated"] = "dilated"
    reach: int = 64
    dilation: int = 4
    causal: bool = False

    def __post_init__(self) -> None:
        _at_least(self.kind, 1, reach=self.reach, dilation=self.dilation)


@dataclass(frozen=True, slots=True)
class GlobalLocalCore:
    """A window, and the first ``global_frames``, which attend to all and are attended to by all."""

    kind: Literal["global_local"] = "global_local"
    window_frames: int = 125
    global_frames: int = 8
    causal: bool = False

    def __post_init__(self) -> None:
        _at_least(self.kind, 1, window_frames=self.window_frames)
        _at_least(self.kind, 0, global_frames=self.global_frames)


@dataclass(frozen=True, slots=True)
class GlobalTokensCore:
    """A window, and learned ``tokens``, which attend to all frames and are attended to by all."""

    kind: Literal["global_tokens"] = "global_tokens"
    window_frames: int = 125
    tokens: int = 8

    def __post_init__(self) -> None:
        _at_least(self.kind, 1, window_frames=self.window_frames)
        _at_least(self.kind, 0, tokens=self.tokens)


@dataclass(frozen=True, slots=True)
class BigBirdCore:
    """Neighbouring blocks, the first (global) blocks, and ``random_blocks`` drawn once by ``seed``."""

    kind: Literal["bigbird"] = "bigbird"
    block_frames: int = 64
    global_blocks: int = 1
    random_blocks: int = 2
    seed: int = 0
    causal: bool = False

    def __post_init__(self) -> None:
        _at_least(self.kind, 1, block_frames=self.block_frames)
        _at_least(self.kind, 0, global_blocks=self.global_blocks, random_blocks=self.random_blocks)
        if self.seed < 0:
            raise ConfigError(f"seed of the attention core 'bigbird' must be >= 0, got {self.seed}")


@dataclass(frozen=True, slots=True)
class LogsparseCore:
    """The nearest frame of each of the spans around a frame, whose lengths double with the distance."""

    kind: Literal["logsparse"] = "logsparse"
    causal: bool = False


@dataclass(frozen=True, slots=True)
class AxialCore:
    """Own row and column, with time as a grid of ``row_frames`` per row."""

    kind: Literal["axial"] = "axial"
    row_frames: int = 64
    causal: bool = False

    def __post_init__(self) -> None:
        _at_least(self.kind, 1, row_frames=self.row_frames)


@dataclass(frozen=True, slots=True)
class BlockwiseCore:
    """Each block attends to one block: in head ``h`` (from 0) the ``h``-th after it, with wrap-around."""

    kind: Literal["blockwise"] = "blockwise"
    block_frames: int = 64

    def __post_init__(self) -> None:
        _at_least(self.kind, 1, block_frames=self.block_frames)


@dataclass(frozen=True, slots=True)
class FavorCore:
    """Softmax (or ReLU) attention by random features, drawn orthogonally."""

    kind: Literal["favor"] = "favor"
    features: int = 256
    kernel: Literal["softmax", "relu"] = "softmax"
    causal: bool = False
    redraw_every: int = 0
    """Training steps between redraws of the features (0: never)."""

    def __post_init__(self) -> None:
        _check_drawn(self)


@dataclass(frozen=True, slots=True)
class RandomFeatureCore:
    """Softmax attention over unit vectors by sines and cosines of ``features`` random projections."""

    kind: Literal["rfa"] = "rfa"
    features: int = 128
    causal: bool = False
    redraw_every: int = 0
    """Training steps between redraws of the projections (0: never)."""

    def __post_init__(self) -> None:
        _check_drawn(self)


def _check_drawn(core: FavorCore | RandomFeatureCore) -> None:
    _at_least(core.kind, 1, features=core.features)
    _at_least(core.kind, 0, redraw_every=core.redraw_every)
    # Drawn in small groups, which is slow; and more features than frames gain nothing.
    require(
        core.features <= _MOST_FEATURES,
        f"features of the attention core '{core.kind}' must be <= {_MOST_FEATURES}, got {core.features}",
    )


@dataclass(frozen=True, slots=True)
class LinearCore:
    """The kernel elu(x) + 1 in place of the exponential."""

    kind: Literal["linear"] = "linear"
    causal: bool = False


@dataclass(frozen=True, slots=True)
class LinformerCore:
    """Keys and values shortened ``ratio`` times, by a mean or a learned convolution over each ``ratio`` frames.

    "learned" instead has weights over chunks of ``chunk_frames``, the length of the recordings if that is fixed.
    """

    kind: Literal["linformer"] = "linformer"
    ratio: int = 8
    projection: Literal["mean", "conv", "learned"] = "conv"
    chunk_frames: int = 256

    def __post_init__(self) -> None:
        _at_least(self.kind, 1, ratio=self.ratio, chunk_frames=self.chunk_frames)
        require(
            self.projection != "learned" or self.chunk_frames % self.ratio == 0,
            f"chunk_frames {self.chunk_frames} of the attention core 'linformer' is not a multiple of "
            f"ratio {self.ratio}",
        )


@dataclass(frozen=True, slots=True)
class ReformerCore:
    """Frames in the same hash bucket attend to each other; queries and keys are shared."""

    kind: Literal["reformer"] = "reformer"
    buckets: int = 16
    rounds: int = 2
    chunk_frames: int = 64

    def __post_init__(self) -> None:
        _at_least(self.kind, 1, rounds=self.rounds, chunk_frames=self.chunk_frames)
        if self.buckets != 1 and (self.buckets < 2 or self.buckets % 2):
            raise ConfigError(f"buckets of the attention core 'reformer' must be 1 or even, got {self.buckets}")


@dataclass(frozen=True, slots=True)
class RoutingCore:
    """For each of ``clusters`` centroids, the ``window_frames`` nearest (causal: last) frames attend to each other."""

    kind: Literal["routing"] = "routing"
    clusters: int = 8
    window_frames: int = 64
    decay: float = 0.999
    causal: bool = False

    def __post_init__(self) -> None:
        _at_least(self.kind, 1, clusters=self.clusters, window_frames=self.window_frames)
        fraction(self.kind, decay=self.decay)


@dataclass(frozen=True, slots=True)
class SinkhornCore:
    """A block attends to itself and to the block that soft sorting assigns to it.

    With ``cut_blocks`` above 0, every frame attends only to that many of the first sorted blocks.
    """

    kind: Literal["sinkhorn"] = "sinkhorn"
    block_frames: int = 64
    iterations: int = 8
    temperature: float = 0.75
    cut_blocks: int = 0
    causal: bool = False

    def __post_init__(self) -> None:
        _at_least(self.kind, 1, block_frames=self.block_frames)
        _at_least(self.kind, 0, iterations=self.iterations, cut_blocks=self.cut_blocks)
        require(
            1e-3 <= self.temperature < math.inf,  # below it, values are no longer finite
            f"temperature of the attention core 'sinkhorn' must be at least 0.001, got {self.temperature}",
        )
        require(
            not (self.causal and self.cut_blocks),
            "cut_blocks of the attention core 'sinkhorn' needs the whole recording to sort: it cannot be causal",
        )


@dataclass(frozen=True, slots=True)
class SpanCore:
    """A window of learned width, up to ``max_frames`` on each side, per head or, if ``dynamic``, per head and frame."""

    kind: Literal["span"] = "span"
    max_frames: int = 250
    ramp_frames: int = 32
    dynamic: bool = False
    causal: bool = False

    def __post_init__(self) -> None:
        _at_least(self.kind, 1, max_frames=self.max_frames, ramp_frames=self.ramp_frames)


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
    | CombinerFixedCore
    | CombinerLogsparseCore
    | CombinerHierarchicalCore
    | CombinerAxialCore
    | CombinerRoutingCore
    | CombinerMixtureCore
)
