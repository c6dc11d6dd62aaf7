"""The measured cells: each attention mechanism as the configuration of one layer, given the number of frames.

Where a paper sets the block size to the square root of the length, so do these; all other sizes, on which the cost of
O(L) mechanisms depends, are the defaults.
"""

from collections.abc import Callable, Mapping
from math import isqrt

from sortformer.config.attention import AttentionConfig
from sortformer.config.combiners import (
    CombinerAxialCore,
    CombinerFixedCore,
    CombinerHierarchicalCore,
    CombinerLogsparseCore,
    CombinerMixtureCore,
    CombinerRoutingCore,
)
from sortformer.config.cores import (
    AxialCore,
    BigBirdCore,
    BlockLocalCore,
    BlockwiseCore,
    DilatedCore,
    FavorCore,
    FixedCore,
    FullCore,
    GlobalLocalCore,
    GlobalTokensCore,
    LinearCore,
    LinformerCore,
    LocalCore,
    LogsparseCore,
    RandomFeatureCore,
    ReformerCore,
    RoutingCore,
    SinkhornCore,
    SpanCore,
    StridedCore,
)
from sortformer.config.memories import CompressiveMemory, NearestMemory, TransformerXLMemory

__all__ = ["EXPECTED", "FIRST_TIER", "MECHANISMS", "STREAMED"]

Cell = Callable[[int], AttentionConfig]

MECHANISMS: Mapping[str, Cell] = {
    "full": lambda _: AttentionConfig(FullCore()),
    "local": lambda _: AttentionConfig(LocalCore()),
    "favor": lambda _: AttentionConfig(FavorCore()),
    "xl": lambda _: AttentionConfig(FullCore(), memory=TransformerXLMemory()),
    "compressive": lambda _: AttentionConfig(FullCore(), memory=CompressiveMemory()),
    "compressive performer": lambda _: AttentionConfig(FavorCore(), memory=CompressiveMemory()),
    "knn": lambda _: AttentionConfig(FullCore(), memory=NearestMemory()),
    "combiner_fixed": lambda frames: AttentionConfig(CombinerFixedCore(block_frames=isqrt(frames))),
    "combiner_axial": lambda frames: AttentionConfig(CombinerAxialCore(row_frames=isqrt(frames))),
    "combiner_logsparse": lambda _: AttentionConfig(CombinerLogsparseCore()),
    "combiner_hierarchical": lambda _: AttentionConfig(CombinerHierarchicalCore()),
    "combiner_mixture": lambda frames: AttentionConfig(CombinerMixtureCore(block_frames=isqrt(frames))),
    "combiner_routing": lambda frames: AttentionConfig(CombinerRoutingCore(clusters=isqrt(frames))),
    "rfa": lambda _: AttentionConfig(RandomFeatureCore()),
    "linear": lambda _: AttentionConfig(LinearCore()),
    "block_local": lambda _: AttentionConfig(BlockLocalCore()),
    "blockwise": lambda frames: AttentionConfig(BlockwiseCore(block_frames=max(1, frames // 2))),
    "strided": lambda frames: AttentionConfig(StridedCore(stride_frames=isqrt(frames))),
    "fixed": lambda frames: AttentionConfig(FixedCore(block_frames=isqrt(frames))),
    "dilated": lambda _: AttentionConfig(DilatedCore()),
    "global_local": lambda _: AttentionConfig(GlobalLocalCore()),
    "global_tokens": lambda _: AttentionConfig(GlobalTokensCore()),
    "bigbird": lambda _: AttentionConfig(BigBirdCore()),
    "logsparse": lambda _: AttentionConfig(LogsparseCore()),
    "axial": lambda frames: AttentionConfig(AxialCore(row_frames=isqrt(frames))),
    "linformer": lambda _: AttentionConfig(LinformerCore()),
    "reformer": lambda frames: AttentionConfig(ReformerCore(buckets=2 * max(1, frames // 128))),
    "routing": lambda frames: AttentionConfig(RoutingCore(clusters=isqrt(frames), window_frames=isqrt(frames))),
    "sinkhorn": lambda _: AttentionConfig(SinkhornCore()),
    "span": lambda _: AttentionConfig(SpanCore()),
}

STREAMED: Mapping[str, AttentionConfig] = {
    "local, streamed": AttentionConfig(LocalCore(causal=True)),
    "favor, streamed": AttentionConfig(FavorCore(causal=True)),
    "linear, streamed": AttentionConfig(LinearCore(causal=True)),
    "combiner_fixed, streamed": AttentionConfig(CombinerFixedCore(causal=True)),
    "xl, streamed": AttentionConfig(FullCore(causal=True), memory=TransformerXLMemory()),
    "compressive, streamed": AttentionConfig(FullCore(causal=True), memory=CompressiveMemory()),
    "compressive performer, streamed": AttentionConfig(FavorCore(causal=True), memory=CompressiveMemory()),
    "knn, streamed": AttentionConfig(FullCore(causal=True), memory=NearestMemory()),
}
"""Some of the mechanisms that stream; full attention, Combiner-Axial and -Logsparse need the whole recording."""

FIRST_TIER = (*tuple(MECHANISMS)[:10], *STREAMED)
"""Mechanisms that are measured up to ten hours."""

EXPECTED: Mapping[str, tuple[float, float]] = {
    "full": (2.0, 0.2),
    "local": (1.0, 0.15),
    "favor": (1.0, 0.15),
    "compressive": (1.0, 0.15),
    "combiner_fixed": (1.5, 0.2),
    "combiner_axial": (1.5, 0.2),
}
"""The expected slope of log seconds against log minutes, and its tolerance."""
