"""Every core in small shapes, each with its oracle. A registered core without a case fails the tests."""

from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np

from sortformer.attention.patterns import random_blocks
from sortformer.config import combiners, cores
from sortformer.config.cores import Core
from tests.oracles import attention_loops, combiner_loops, core_loops

__all__ = ["CASES", "FULL_LIMITS", "Case", "causal", "name"]


@dataclass(frozen=True)
class Case:
    """A core's config, and what it should compute: ``oracle(weights by name, query, key, value, valid)``."""

    config: Core
    oracle: Callable[..., np.ndarray]


def name(config: Core) -> str:
    """Return a short name of a config, for test ids."""
    return "-".join(str(value) for value in asdict(config).values())


def causal(config: Core) -> bool:
    return getattr(config, "causal", False)


def pair(config: Core, sees: Callable[[int, int], bool]) -> Case:
    """A pattern: softmax over the keys j for which ``sees(i, j)``."""

    def oracle(weights, query, key, value, valid):
        del weights
        return attention_loops.attention(
            query, key, value, lambda b, i, j: bool(valid[b, j]) and (j <= i or not causal(config)) and sees(i, j)
        )

    return Case(config, oracle)


def kernel(config: Core, of: Callable[[dict], Callable]) -> Case:
    return Case(
        config,
        lambda weights, *arrays: core_loops.kernel_attention(*arrays, of(weights), causal(config)),
    )


def abstraction(config: Core, weights: dict[str, np.ndarray], within: str = ""):
    maps = [weights.get(f"{within}abstraction.{x}_map.weight") for x in ("key", "query")]
    return combiner_loops.pooled(config.pool, *maps)  # pyright: ignore[reportAttributeAccessIssue]


def combine(config: Core, plan) -> Case:
    return Case(config, lambda weights, *arrays: combiner_loops.combiner(*arrays, plan, abstraction(config, weights)))


def hierarchy(config: combiners.CombinerHierarchicalCore) -> Case:
    def oracle(weights, *arrays):
        tree = config.block_frames, config.fan_out, config.causal
        return combiner_loops.hierarchical(*arrays, abstraction(config, weights), *tree)

    return Case(config, oracle)


def rowmajor(config: combiners.CombinerAxialCore) -> Case:
    plan = combiner_loops.axial_plan("rowmajor", config.row_frames, config.causal)

    def oracle(weights, query, key, value, valid):
        del weights
        abstraction = combiner_loops.rowmajor_abstraction(config.row_frames, valid)
        return combiner_loops.combiner(query, key, value, valid, plan, abstraction)

    return Case(config, oracle)


def mixture(config: combiners.CombinerMixtureCore) -> Case:
    plans = [
        combiner_loops.fixed_plan(config.block_frames, config.causal),
        combiner_loops.axial_plan("vertical", config.block_frames, config.causal),
    ]

    def oracle(weights, *arrays):
        pools = [abstraction(config, weights, f"plans.{number}.") for number in range(2)]
        return sum(combiner_loops.combiner(*arrays, *pair) for pair in zip(plans, pools, strict=True)) / 2

    return Case(config, oracle)


def route_combiner(config: combiners.CombinerRoutingCore) -> Case:
    def oracle(weights, query, key, value, valid):
        out, near = np.empty_like(query), core_loops.clusters(key, weights["clusters.centroids"])
        for b, h in np.ndindex(*near.shape[:2]):
            one = [x[b : b + 1, h : h + 1] for x in (query, key, value)]
            plan = combiner_loops.routing_plan(near[b, h], config.causal)
            out[b, h] = combiner_loops.combiner(*one, valid[b : b + 1], plan, abstraction(config, weights))[0, 0]
        return out

    return Case(config, oracle)


def spanned(config: cores.SpanCore) -> Case:
    def oracle(weights, *arrays):
        def spans(h: int, query: np.ndarray) -> float:
            level = weights["level"][h] + (weights["direction"][h] @ query if config.dynamic else 0.0)
            return config.max_frames / (1 + np.exp(-level))

        return core_loops.span(*arrays, spans, config.ramp_frames, config.causal)

    return Case(config, oracle)


def linformer(config: cores.LinformerCore) -> Case:
    def oracle(weights, *arrays):
        learned = None if config.projection == "mean" else (weights["key_weight"], weights["value_weight"])
        chunk = config.chunk_frames if config.projection == "learned" else config.ratio
        return core_loops.linformer(*arrays, chunk, learned)

    return Case(config, oracle)


def bigbird(causal: bool) -> Case:
    config = cores.BigBirdCore(block_frames=2, global_blocks=1, random_blocks=1, seed=3, causal=causal)

    def drew(later: int, earlier: int) -> bool:
        return later > earlier and earlier in random_blocks(config.seed, later, config.random_blocks)

    def sees(i: int, j: int) -> bool:
        a, b = i // config.block_frames, j // config.block_frames
        return abs(a - b) <= 1 or min(a, b) < config.global_blocks or drew(a, b) or drew(b, a)

    return pair(config, sees)


def logsparse_sees(i: int, j: int) -> bool:
    spans = core_loops.dyadic_spans(i, 1 << 6)
    return i == j or any(j == (b - 1 if b <= i else a) for a, b in spans)


def grid_sees(row: int) -> Callable[[int, int], bool]:
    return lambda i, j: i // row == j // row or i % row == j % row


def both(make: Callable[[bool], Case]) -> list[Case]:
    return [make(False), make(True)]


CASES: list[Case] = [
    *both(lambda c: pair(cores.FullCore(causal=c), lambda *_: True)),
    *both(lambda c: pair(cores.LocalCore(window_frames=3, causal=c), lambda i, j: abs(i - j) <= 3)),
    *both(lambda c: pair(cores.BlockLocalCore(block_frames=3, causal=c), lambda i, j: abs(i // 3 - j // 3) <= 1)),
    *both(
        lambda c: pair(cores.StridedCore(stride_frames=3, causal=c), lambda i, j: abs(i - j) <= 3 or (i - j) % 3 == 0)
    ),
    *both(
        lambda c: pair(
            cores.FixedCore(block_frames=4, summary_frames=1, causal=c), lambda i, j: i // 4 == j // 4 or j % 4 == 3
        )
    ),
    *both(lambda c: pair(cores.DilatedCore(reach=2, dilation=3, causal=c), lambda i, j: i - j in (-6, -3, 0, 3, 6))),
    *both(
        lambda c: pair(
            cores.GlobalLocalCore(window_frames=2, global_frames=2, causal=c),
            lambda i, j: abs(i - j) <= 2 or min(i, j) < 2,
        )
    ),
    Case(
        cores.GlobalTokensCore(window_frames=2, tokens=3),
        lambda weights, *arrays: core_loops.global_tokens(
            *arrays, (weights["query"], weights["key"], weights["value"]), 2
        ),
    ),
    *both(bigbird),
    *both(lambda c: pair(cores.LogsparseCore(causal=c), logsparse_sees)),
    *both(lambda c: pair(cores.AxialCore(row_frames=4, causal=c), grid_sees(4))),
    Case(cores.BlockwiseCore(block_frames=3), lambda _, *arrays: core_loops.blockwise(*arrays, 3)),
    *both(
        lambda c: kernel(
            cores.FavorCore(features=6, causal=c), lambda weights: core_loops.favor_kernel(weights["directions"])
        )
    ),
    kernel(
        cores.FavorCore(features=6, kernel="relu", causal=True),
        lambda weights: core_loops.relu_kernel(weights["directions"]),
    ),
    *both(
        lambda c: kernel(
            cores.RandomFeatureCore(features=24, causal=c),
            lambda weights: core_loops.fourier_kernel(weights["directions"]),
        )
    ),
    *both(lambda c: kernel(cores.LinearCore(causal=c), lambda _: core_loops.elu_kernel)),
    linformer(cores.LinformerCore(ratio=3, projection="conv")),
    linformer(cores.LinformerCore(ratio=3, projection="mean")),
    linformer(cores.LinformerCore(ratio=2, projection="learned", chunk_frames=4)),
    linformer(cores.LinformerCore(ratio=5, projection="learned", chunk_frames=20)),
    Case(
        cores.ReformerCore(buckets=4, rounds=2, chunk_frames=3),
        lambda weights, query, _, *arrays: core_loops.reformer(query, *arrays, weights["rotations"], 4, 3),
    ),
    Case(
        cores.RoutingCore(clusters=3, window_frames=4),
        lambda weights, *arrays: core_loops.routing(*arrays, weights["clusters.centroids"], 4),
    ),
    Case(
        cores.RoutingCore(clusters=3, window_frames=2, causal=True),
        lambda weights, *arrays: core_loops.routing_causal(*arrays, weights["clusters.centroids"], 2),
    ),
    *both(
        lambda c: Case(
            cores.SinkhornCore(block_frames=3, iterations=4, causal=c),
            lambda _, *arrays: core_loops.sinkhorn_attention(*arrays, 3, 4, 0.75, causal=c),
        )
    ),
    Case(
        cores.SinkhornCore(block_frames=2, iterations=3, cut_blocks=2),
        lambda _, *arrays: core_loops.sinkhorn_attention(*arrays, 2, 3, 0.75, cut=2),
    ),
    *both(lambda c: spanned(cores.SpanCore(max_frames=4, ramp_frames=3, causal=c))),
    spanned(cores.SpanCore(max_frames=4, ramp_frames=3, dynamic=True)),
    *both(
        lambda c: combine(
            combiners.CombinerFixedCore(block_frames=3, pool="max", causal=c), combiner_loops.fixed_plan(3, c)
        )
    ),
    combine(combiners.CombinerFixedCore(block_frames=3, pool="mean", causal=True), combiner_loops.fixed_plan(3, True)),
    combine(combiners.CombinerFixedCore(block_frames=3, pool="deepsets_mean"), combiner_loops.fixed_plan(3, False)),
    *both(
        lambda c: combine(
            combiners.CombinerLogsparseCore(pool="deepsets_max", causal=c), combiner_loops.logsparse_plan(c)
        )
    ),
    *both(
        lambda c: combine(
            combiners.CombinerAxialCore(row_frames=4, plan="vertical", pool="max", causal=c),
            combiner_loops.axial_plan("vertical", 4, c),
        )
    ),
    combine(
        combiners.CombinerAxialCore(row_frames=4, plan="vertical", pool="deepsets_mean"),
        combiner_loops.axial_plan("vertical", 4, False),
    ),
    *both(
        lambda c: combine(
            combiners.CombinerAxialCore(row_frames=4, plan="horizontal", pool="mean", causal=c),
            combiner_loops.axial_plan("horizontal", 4, c),
        )
    ),
    combine(
        combiners.CombinerAxialCore(row_frames=4, plan="horizontal", pool="max", causal=True),
        combiner_loops.axial_plan("horizontal", 4, True),
    ),
    *both(lambda c: rowmajor(combiners.CombinerAxialCore(row_frames=4, plan="rowmajor", causal=c))),
    *both(lambda c: mixture(combiners.CombinerMixtureCore(block_frames=4, causal=c))),
    mixture(combiners.CombinerMixtureCore(block_frames=3, pool="max")),
    mixture(combiners.CombinerMixtureCore(block_frames=3, pool="deepsets_mean", causal=True)),
    *both(
        lambda c: combine(
            combiners.CombinerMixtureCore(block_frames=4, mixture="joint", causal=c),
            combiner_loops.axial_plan("joint", 4, c),
        )
    ),
    combine(
        combiners.CombinerMixtureCore(block_frames=3, mixture="joint", pool="deepsets_max", causal=True),
        combiner_loops.axial_plan("joint", 3, True),
    ),
    *both(lambda c: route_combiner(combiners.CombinerRoutingCore(clusters=3, causal=c))),
    *both(lambda c: route_combiner(combiners.CombinerRoutingCore(clusters=3, pool="deepsets_mean", causal=c))),
    *both(lambda c: route_combiner(combiners.CombinerRoutingCore(clusters=2, pool="max", causal=c))),
    route_combiner(combiners.CombinerRoutingCore(clusters=9, pool="deepsets_max", causal=True)),
    *both(lambda c: hierarchy(combiners.CombinerHierarchicalCore(block_frames=2, fan_out=2, causal=c))),
    hierarchy(combiners.CombinerHierarchicalCore(block_frames=1, fan_out=3, pool="max", causal=True)),
    hierarchy(combiners.CombinerHierarchicalCore(block_frames=1, fan_out=2, pool="deepsets_max")),
    hierarchy(combiners.CombinerHierarchicalCore(block_frames=3, fan_out=2, pool="deepsets_mean")),
]


def limits(c: bool) -> list[Core]:
    axial = [
        combiners.CombinerAxialCore(row_frames=row, plan=plan, causal=c)
        for row in (1, 99)
        for plan in ("vertical", "horizontal", "rowmajor")
    ]
    return [
        cores.LocalCore(window_frames=99, causal=c),
        cores.BlockLocalCore(block_frames=99, causal=c),
        cores.StridedCore(stride_frames=1, causal=c),
        cores.FixedCore(block_frames=4, summary_frames=4, causal=c),
        cores.DilatedCore(reach=99, dilation=1, causal=c),
        cores.GlobalLocalCore(window_frames=1, global_frames=99, causal=c),
        cores.BigBirdCore(block_frames=2, global_blocks=99, causal=c),
        cores.BigBirdCore(block_frames=2, global_blocks=0, random_blocks=200, causal=c),
        cores.AxialCore(row_frames=1, causal=c),
        cores.AxialCore(row_frames=99, causal=c),
        cores.SpanCore(max_frames=999, causal=c),
        combiners.CombinerFixedCore(block_frames=1, causal=c),
        combiners.CombinerFixedCore(block_frames=99, causal=c),
        combiners.CombinerMixtureCore(block_frames=1, causal=c),
        combiners.CombinerMixtureCore(block_frames=1, mixture="joint", causal=c),
        combiners.CombinerMixtureCore(block_frames=99, mixture="joint", causal=c),
        combiners.CombinerHierarchicalCore(block_frames=1, fan_out=99, causal=c),
        combiners.CombinerHierarchicalCore(block_frames=99, causal=c),
        combiners.CombinerRoutingCore(clusters=1, causal=c),
        *axial,
    ]


FULL_LIMITS: list[Core] = [
    *limits(False),
    *limits(True),
    cores.BlockwiseCore(block_frames=99),
    cores.GlobalTokensCore(window_frames=99, tokens=0),
    cores.LinformerCore(ratio=1),
    cores.LinformerCore(ratio=1, projection="learned", chunk_frames=1),
    cores.SinkhornCore(block_frames=99),
    cores.SinkhornCore(block_frames=99, cut_blocks=1),
]
"""Configs that equal full attention, or its causal half."""
