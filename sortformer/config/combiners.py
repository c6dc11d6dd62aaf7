"""Configs of the attention cores of Ren et al., "Combiner", arXiv 2107.05768; see ``config.cores``."""

from dataclasses import dataclass
from typing import Literal

from sortformer.config.bounds import Bounded, bounded, size
from sortformer.errors import ConfigError

__all__ = [
    "Combiner",
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


@dataclass(frozen=True, slots=True)
class CombinerFixedCore(Bounded):
    """Own block directly, every other block through one abstraction of it."""

    kind: Literal["combiner_fixed"] = "combiner_fixed"
    block_frames: int = size(64)
    pool: Pool = "mean"
    causal: bool = False


@dataclass(frozen=True, slots=True)
class CombinerLogsparseCore:
    """The frame itself directly, all others through spans whose length grows with the distance."""

    kind: Literal["combiner_logsparse"] = "combiner_logsparse"
    pool: Pool = "mean"
    causal: bool = False


@dataclass(frozen=True, slots=True)
class CombinerHierarchicalCore(Bounded):
    """Own block directly, all others through groups of ``fan_out`` blocks, of ``fan_out`` groups, and so on."""

    kind: Literal["combiner_hierarchical"] = "combiner_hierarchical"
    block_frames: int = size(64)
    fan_out: int = size(8, least=2)
    pool: Pool = "mean"
    causal: bool = False


@dataclass(frozen=True, slots=True)
class CombinerAxialCore(Bounded):
    """A grid of ``row_frames`` per row: one or both axes directly, the rest through abstractions of columns or rows."""

    kind: Literal["combiner_axial"] = "combiner_axial"
    row_frames: int = size(64)
    plan: Literal["vertical", "horizontal", "rowmajor"] = "vertical"
    pool: Pool = "mean"
    causal: bool = False

    def __post_init__(self) -> None:
        Bounded.__post_init__(self)
        if self.plan == "rowmajor" and self.pool != "mean":
            raise ConfigError(f"plan 'rowmajor' pools by attention: leave pool at 'mean', got '{self.pool}'")


@dataclass(frozen=True, slots=True)
class CombinerRoutingCore(Bounded):
    """Own cluster of ``clusters`` directly, every other cluster through one abstraction of it."""

    kind: Literal["combiner_routing"] = "combiner_routing"
    clusters: int = size(16)
    decay: float = bounded(0.999, 0, 1)
    pool: Pool = "mean"
    causal: bool = False


@dataclass(frozen=True, slots=True)
class CombinerMixtureCore(Bounded):
    """Several plans at once, with blocks and rows of ``block_frames``.

    "mean" averages Combiner-Fixed and Combiner-Axial (vertical), as in the paper; "joint" is one softmax over the
    groups of Combiner-Axial, vertical and horizontal, and the keys both attend to directly, as in the authors' code.
    """

    kind: Literal["combiner_mixture"] = "combiner_mixture"
    block_frames: int = size(64)
    mixture: Literal["mean", "joint"] = "mean"
    pool: Pool = "mean"
    causal: bool = False


Combiner = (
    CombinerFixedCore
    | CombinerLogsparseCore
    | CombinerHierarchicalCore
    | CombinerAxialCore
    | CombinerRoutingCore
    | CombinerMixtureCore
)
