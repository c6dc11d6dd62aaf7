"""Building attention cores from their configs."""

from sortformer.attention import patterns
from sortformer.attention.blockwise import BlockwiseAttention
from sortformer.attention.combiner_axial import CombinerAxial, CombinerMixture
from sortformer.attention.combiner_fixed import CombinerFixed
from sortformer.attention.combiner_hierarchical import CombinerHierarchical
from sortformer.attention.combiner_routing import CombinerRouting
from sortformer.attention.combiner_tree import CombinerTree
from sortformer.attention.favor import FavorAttention
from sortformer.attention.full import FullAttention
from sortformer.attention.global_tokens import GlobalTokenAttention
from sortformer.attention.linear import LinearAttention
from sortformer.attention.linformer import LinformerAttention
from sortformer.attention.local import LocalAttention
from sortformer.attention.pattern import Pattern, PatternAttention
from sortformer.attention.protocol import Core
from sortformer.attention.random_feature import RandomFeatureAttention
from sortformer.attention.reformer import ReformerAttention
from sortformer.attention.routing import RoutingAttention
from sortformer.attention.sinkhorn import SinkhornAttention
from sortformer.attention.span import SpanAttention
from sortformer.attention.streamed_pattern import StreamedPatternAttention
from sortformer.config import combiners, cores
from sortformer.config.mechanisms import CORES

__all__ = ["build_core"]


def build_core(config: cores.Core, heads: int, head_dim: int) -> Core:
    """Return the core of a layer with ``heads`` of ``head_dim`` channels each."""
    match config:
        case cores.FullCore():
            return FullAttention(config.causal)
        case cores.LocalCore():
            return LocalAttention(config.window_frames, config.causal)
        case cores.FavorCore():
            return FavorAttention(head_dim, config.features, config.kernel, config.causal, config.redraw_every)
        case cores.RandomFeatureCore():
            return RandomFeatureAttention(head_dim, config.features, config.causal, config.redraw_every)
        case cores.LinearCore():
            return LinearAttention(head_dim, config.causal)
        case combiners.CombinerFixedCore():
            return CombinerFixed(head_dim, config.block_frames, config.pool, config.causal)
        case combiners.CombinerLogsparseCore():
            return CombinerTree(head_dim, 2, 2, config.pool, nested=False, causal=config.causal)
        case combiners.CombinerHierarchicalCore():
            return CombinerHierarchical(head_dim, config.block_frames, config.fan_out, config.pool, config.causal)
        case combiners.CombinerRoutingCore():
            return CombinerRouting(heads, head_dim, config.clusters, config.decay, config.pool, config.causal)
        case combiners.CombinerAxialCore():
            return CombinerAxial(head_dim, config.row_frames, config.plan, config.pool, config.causal)
        case combiners.CombinerMixtureCore(mixture="joint"):
            return CombinerAxial(head_dim, config.block_frames, "joint", config.pool, config.causal)
        case combiners.CombinerMixtureCore():
            fixed = CombinerFixed(head_dim, config.block_frames, config.pool, config.causal)
            axial = CombinerAxial(head_dim, config.block_frames, "vertical", config.pool, config.causal)
            return CombinerMixture([fixed, axial])
        case cores.BlockwiseCore():
            return BlockwiseAttention(config.block_frames)
        case cores.LinformerCore():
            chunk = config.chunk_frames if config.projection == "learned" else config.ratio
            return LinformerAttention(chunk, chunk // config.ratio, learned=config.projection != "mean")
        case cores.GlobalTokensCore():
            return GlobalTokenAttention(heads, head_dim, config.window_frames, config.tokens)
        case cores.ReformerCore():
            return ReformerAttention(head_dim, config.buckets, config.rounds, config.chunk_frames)
        case cores.RoutingCore():
            return RoutingAttention(heads, head_dim, config.clusters, config.window_frames, config.decay, config.causal)
        case cores.SinkhornCore():
            return SinkhornAttention(
                config.block_frames, config.iterations, config.temperature, config.cut_blocks, config.causal
            )
        case cores.SpanCore():
            return SpanAttention(heads, head_dim, config.max_frames, config.ramp_frames, config.dynamic, config.causal)
        case _:
            kind = StreamedPatternAttention if CORES[config.kind].state else PatternAttention
            return kind(_pattern(config), config.causal)


def _pattern(config: cores.PatternCore) -> Pattern:
    match config:
        case cores.BlockLocalCore():
            return patterns.BlockLocal(config.block_frames, config.neighbours)
        case cores.StridedCore():
            return patterns.Strided(config.stride_frames)
        case cores.FixedCore():
            return patterns.Fixed(config.block_frames, config.summary_frames)
        case cores.DilatedCore():
            return patterns.Dilated(config.reach, config.dilation)
        case cores.GlobalLocalCore():
            return patterns.GlobalLocal(config.window_frames, config.global_frames)
        case cores.BigBirdCore():
            return patterns.BigBird(config.block_frames, config.global_blocks, config.random_blocks, config.seed)
        case cores.LogsparseCore():
            return patterns.Logsparse()
        case cores.AxialCore():
            return patterns.Axial(config.row_frames)
