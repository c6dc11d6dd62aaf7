"""Configs of the attention cores of Ren et al., "Combiner", arXiv 2107.05768; see ``config.cores``."""

from dataclasses import dataclass
from functools import partial
from typing import Literal

from sortformer.config.checks import at_least, fraction
from sortformer.errors import ConfigError

__all__ = [
    "CombinerAxialCore",
    "CombinerFixedCore",
    "CombinerHierarchicalCore",
    "CombinerLogsparseCore",
    "CombinerMixtureCore",
    "CombinerRoutingCore",
    "Pool",
]

Pool = Literal["max", "mean", "deepsets_max", "deepsets_mean"]
"""How a Combiner pools the keys and queries of a group."""

_at_least = partial(at_least, "attention core")


@dataclass(frozen=True, slots=True)
class CombinerFixedCore:
    """Own block directly, every other block through one abstraction of it."""

    kind: Literal["combiner_fixed"] = "combiner_fixed"
    block_frames: int = 64
    pool: Pool = "mean"
    causal: bool = False

    def __post_init__(self) -> None:
        _at_least(self.kind, 1, block_frames=self.block_frames)


@dataclass(frozen=True, slots=True)
class CombinerLogsparseCore:
    """The frame itself directly, all others through spans whose length grows with the distance."""

    kind: Literal["combiner_logsparse"] = "combiner_logsparse"
    pool: Pool = "mean"
    causal: bool = False


@dataclass(frozen=True, slots=True)
class CombinerHierarchicalCore:
    """Own block directly, all others through groups of ``fan_out`` blocks, of ``fan_out`` groups, and so on."""

    kind: Literal["combiner_hierarchical"] = "combiner_hierarchical"
    block_frames: int = 64
    fan_out: int = 8
    pool: Pool = "mean"
    causal: bool = False

    def __post_init__(self) -> None:
        _at_least(self.kind, 1, block_frames=self.block_frames)
        _at_least(self.kind, 2, fan_out=self.fan_out)


@dataclass(frozen=True, slots=True)
class CombinerAxialCore:
    """A grid of ``row_frames`` per row: one or both axes directly, the rest through abstractions of columns or rows."""

    kind: Literal["combiner_axial"] = "combiner_axial"
    row_frames: int = 64
    plan: Literal["vertical", "horizontal", "rowmajor"] = "vertical"
    pool: Pool = "mean"
    causal: bool = False

    def __post_init__(self) -> None:
        _at_least(self.kind, 1, row_frames=self.row_frames)
        if self.plan == "rowmajor" and self.pool != "mean":
            raise ConfigError(f"plan 'rowmajor' pools by attention: leave pool at 'mean', got '{self.pool}'")


@dataclass(frozen=True, slots=True)
class CombinerRoutingCore:
    """Own cluster of ``clusters`` directly, every other cluster through one abstraction of it."""

    kind: Literal["combiner_routing"] = "combiner_routing"
    clusters: int = 16
    decay: float = 0.999
    pool: Pool = "mean"
    causal: bool = False

    def __post_init__(self) -> None:
        _at_least(self.kind, 1, clusters=self.clusters)
        fraction(self.kind, decay=self.decay)


@dataclass(frozen=True, slots=True)
class CombinerMixtureCore:
    """Several plans at once, with blocks and rows of ``block_frames``.

    "mean" averages Combiner-Fixed and Combiner-Axial (vertical), as in the paper; "joint" is one softmax over the
    groups of Combiner-Axial, vertical and horizontal, and the keys both attend to directly, as in the authors' code.
    """

    kind: Literal["combiner_mixture"] = "combiner_mixture"
    block_frames: int = 64
    mixture: Literal["mean", "joint"] = "mean"
    pool: Pool = "mean"
    causal: bool = False

    def __post_init__(self) -> None:
        _at_least(self.kind, 1, block_frames=self.block_frames)
