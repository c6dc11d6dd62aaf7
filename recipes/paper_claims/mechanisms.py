"""The attention of a head's layers: one configuration per cell, in frames of 640 ms.

All are causal and without positions. Those of ``WHOLE`` see 96 s = 150 frames at once, with blocks near the square root
of that; those of ``STREAMED`` process chunks of 8 s, and their bounded memories keep 24 frames beside the chunk's: the
last 15 s with XL, the last 38 s with compression.
"""

from collections.abc import Mapping
from typing import Literal

from sortformer.config.attention import AttentionConfig
from sortformer.config.combiners import CombinerAxialCore, CombinerFixedCore, CombinerLogsparseCore
from sortformer.config.cores import AxialCore, FavorCore, FixedCore, FullCore, LogsparseCore
from sortformer.config.memories import CompressiveMemory, NearestMemory, TransformerXLMemory

__all__ = ["CHUNK", "START", "STREAMED", "TWINS", "WHOLE"]

CHUNK = 12
_MEMORY = 24
_BLOCK = 12
_FEATURES = 64


def _xl(frames: int) -> TransformerXLMemory:
    return TransformerXLMemory(frames=frames, chunk_frames=CHUNK)


def _compressive(compression: Literal["conv", "autoencoder"]) -> CompressiveMemory:
    return CompressiveMemory(
        frames=_MEMORY // 2,
        compressed_frames=_MEMORY // 2,
        compression=compression,
        # The papers' own losses: attention reconstruction and autoencoding.
        loss="autoencoding" if compression == "autoencoder" else "attention",
        chunk_frames=CHUNK,
    )


_FULL, _FAVOR = FullCore(causal=True), FavorCore(features=_FEATURES, causal=True)

START = AttentionConfig(_FULL)
"""The attention of the common head, whose weights each mechanism starts from."""

WHOLE: Mapping[str, AttentionConfig] = {
    "full": START,
    "fixed": AttentionConfig(FixedCore(block_frames=_BLOCK, summary_frames=2, causal=True)),
    "combiner_fixed": AttentionConfig(CombinerFixedCore(block_frames=_BLOCK, causal=True)),
    "logsparse": AttentionConfig(LogsparseCore(causal=True)),
    "combiner_logsparse": AttentionConfig(CombinerLogsparseCore(causal=True)),
    "axial": AttentionConfig(AxialCore(row_frames=_BLOCK, causal=True)),
    "combiner_axial": AttentionConfig(CombinerAxialCore(row_frames=_BLOCK, causal=True)),
}

TWINS = (("combiner_fixed", "fixed"), ("combiner_logsparse", "logsparse"), ("combiner_axial", "axial"))
"""Each Combiner with the sparse pattern that it completes."""

STREAMED: Mapping[str, AttentionConfig] = {
    "chunk alone": AttentionConfig(_FULL, memory=_xl(0)),
    "xl": AttentionConfig(_FULL, memory=_xl(_MEMORY)),
    "compressive conv": AttentionConfig(_FULL, memory=_compressive("conv")),
    "compressive autoencoder": AttentionConfig(_FULL, memory=_compressive("autoencoder")),
    "performer": AttentionConfig(_FAVOR),
    "compressive performer conv": AttentionConfig(_FAVOR, memory=_compressive("conv")),
    "compressive performer autoencoder": AttentionConfig(_FAVOR, memory=_compressive("autoencoder")),
    "knn": AttentionConfig(_FULL, memory=NearestMemory(chunk_frames=CHUNK)),
    "combiner_fixed": AttentionConfig(CombinerFixedCore(block_frames=_BLOCK, causal=True)),
    "all frames": AttentionConfig(_FULL, memory=_xl(1_000_000)),
}
