"""A catalogue of the attention cores, memories, positions and block types: function, cost, compatibility and paper.

L frames, w window, s block, m random features, M frames of memory, C compressed ones, k neighbours.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeVar

__all__ = [
    "ABSENT",
    "BLOCKS",
    "CORES",
    "MEMORIES",
    "POSITIONS",
    "BlockFacts",
    "CoreFacts",
    "How",
    "MemoryFacts",
    "PositionFacts",
]

How = Literal["embed", "rotate", "add", "multiply"]
"""Where positions are applied: to the frames, to queries and keys, or to the score of each pair."""


@dataclass(frozen=True, slots=True)
class CoreFacts:
    """Facts about a core, for all of its options."""

    name: str
    what: str
    cost: str
    paper: str
    causal: bool = True
    """Whether it has a causal form."""
    state: bool = False
    """Whether its causal form can run chunk by chunk with a state, with the same result as for a whole recording.

    Not with positions that score pairs: the state holds keys, but not their distances from queries.
    """
    needs_all: str = ""
    """Why its causal form has no such state: why every frame would have to be kept."""
    memory: bool = True
    """Whether it accepts keys beyond the frames of its queries."""
    positions: tuple[How, ...] = ("embed", "rotate", "add", "multiply")

    @property
    def streaming(self) -> str:
        """How it can run chunk by chunk, or "no", and why its causal form has no state."""
        ways = ", ".join(way for way, there in (("state", self.state), ("memory", self.memory)) if there)
        if not self.needs_all:
            return ways or "no"
        return f"{ways}; no state: {self.needs_all}" if ways else f"no: {self.needs_all}"


@dataclass(frozen=True, slots=True)
class MemoryFacts:
    """Facts about a memory, for all of its options."""

    name: str
    what: str
    cost: str
    paper: str
    extra_frames: bool = True
    """Whether it adds frames to those of the chunk, which the core must then accept."""


@dataclass(frozen=True, slots=True)
class PositionFacts:
    """Facts about a position mechanism; ``how`` is None for the position "none"."""

    name: str
    what: str
    cost: str
    paper: str
    how: How | None


@dataclass(frozen=True, slots=True)
class BlockFacts:
    """Facts about an option for the blocks of a stack, their number, or their outputs."""

    name: str
    what: str
    cost: str
    setting: str
    """The field that enables it."""
    paper: str


Facts = TypeVar("Facts", CoreFacts, MemoryFacts, PositionFacts, BlockFacts)


def _by_name(*catalogue: Facts) -> Mapping[str, Facts]:
    return MappingProxyType({facts.name: facts for facts in catalogue})


_ROTATING: tuple[How, ...] = ("embed", "rotate")
# Rotations encode distance only in the product of query and key: the kernel elu + 1, hashes and clusters would see
# absolute positions.
_EMBEDDING: tuple[How, ...] = ("embed",)
_COMBINER = "Ren et al., Combiner, arXiv 2107.05768"
_SPARSE = "Child et al., arXiv 1904.10509"

CORES = _by_name(
    CoreFacts(
        "full",
        "every pair",
        "L²",
        "Vaswani et al., arXiv 1706.03762",
        needs_all="every past frame is attended to",
    ),
    CoreFacts(
        "local",
        "a window",
        "L w",
        "Longformer, arXiv 2004.05150",
        state=True,
        memory=False,
        positions=_ROTATING,
    ),
    CoreFacts(
        "favor",
        "positive orthogonal random features",
        "L m",
        "Choromanski et al., arXiv 2009.14794",
        state=True,
        positions=_ROTATING,
    ),
    CoreFacts(
        "rfa",
        "random sines and cosines",
        "L m",
        "Peng et al., arXiv 2103.02143",
        state=True,
        positions=_ROTATING,
    ),
    CoreFacts("linear", "kernel elu + 1", "L d", "Katharopoulos et al., 2006.16236", state=True, positions=_EMBEDDING),
    CoreFacts(
        "combiner_fixed",
        "own block, and an abstraction of each other block",
        "L (s + L/s)",
        f"{_COMBINER}, 4.1",
        state=True,
        memory=False,
        positions=_ROTATING,
    ),
    CoreFacts(
        "combiner_logsparse",
        "own pair of frames, and abstractions of spans",
        "L log L",
        f"{_COMBINER}, 4.2",
        needs_all="a span is pooled again, frame by frame, when it joins a longer one",
        memory=False,
        positions=_ROTATING,
    ),
    CoreFacts(
        "combiner_hierarchical",
        "own block, and abstractions of nested groups",
        "L (s + log L)",
        f"{_COMBINER}, 3.1",
        state=True,
        memory=False,
        positions=_ROTATING,
    ),
    CoreFacts(
        "combiner_axial",
        "row and column, and abstractions of the rest",
        "L (s + L/s)",
        f"{_COMBINER}, 4.3",
        needs_all="columns reach back to the first row",
        memory=False,
        positions=_ROTATING,
    ),
    CoreFacts(
        "combiner_routing",
        "own cluster, and an abstraction of each other cluster",
        "L clusters + clusters w²",
        f"{_COMBINER}, 4.4",
        needs_all="a cluster is pooled again, frame by frame, when it grows",
        memory=False,
        positions=_EMBEDDING,
    ),
    CoreFacts(
        "combiner_mixture",
        "fixed and axial: their mean, or one softmax",
        "L (s + L/s)",
        f"{_COMBINER}, 3.3",
        needs_all="as for combiner_axial",
        memory=False,
        positions=_ROTATING,
    ),
    CoreFacts("block_local", "own block and neighbours", "L s", "Parmar et al., arXiv 1802.05751", state=True),
    CoreFacts(
        "strided",
        "neighbours, and every n-th frame",
        "L², in memory L",
        _SPARSE,
        needs_all="each frame is a whole number of strides before some future frame",
    ),
    CoreFacts("fixed", "own block, and the end of each block", "L (s + L/s)", _SPARSE, state=True),
    CoreFacts("dilated", "a window with gaps", "L w", "Longformer, arXiv 2004.05150", state=True),
    CoreFacts("global_local", "a window, and global frames", "L w", "Longformer, arXiv 2004.05150", state=True),
    CoreFacts(
        "global_tokens",
        "a window, and learned tokens",
        "L (w + tokens)",
        "Ainslie et al., ETC, arXiv 2004.08483",
        causal=False,
        memory=False,
        positions=_EMBEDDING,
    ),
    CoreFacts(
        "bigbird",
        "window, global and random blocks",
        "L s",
        "Zaheer et al., arXiv 2007.14062",
        needs_all="a future block may draw any past one",
    ),
    CoreFacts("logsparse", "one frame of each doubling span", "L log L", "Li et al., arXiv 1907.00235", state=True),
    CoreFacts(
        "axial",
        "row and column of a grid",
        "L², in memory L",
        "Ho et al., arXiv 1912.12180",
        needs_all="columns reach back to the first row",
    ),
    CoreFacts(
        "blockwise",
        "for each block, one block per head",
        "L s",
        "Qiu et al., arXiv 1911.02972",
        causal=False,
        memory=False,
        positions=_ROTATING,
    ),
    CoreFacts(
        "linformer",
        "shortened keys and values",
        "L²/ratio",
        "Wang et al., arXiv 2006.04768",
        causal=False,
        positions=_EMBEDDING,
    ),
    CoreFacts(
        "reformer",
        "frames with the same hash",
        "L log L",
        "Kitaev et al., arXiv 2001.04451",
        causal=False,
        memory=False,
        positions=_EMBEDDING,
    ),
    CoreFacts(
        "routing",
        "clusters by k-means",
        "L clusters + clusters w²",
        "Roy et al., arXiv 2003.05997",
        state=True,
        memory=False,
        positions=_EMBEDDING,
    ),
    CoreFacts(
        "sinkhorn",
        "own block, and one assigned by soft sorting",
        "L s + L²/s",
        "Tay et al., arXiv 2002.11296",
        needs_all="any past block may be assigned to a new one",
        memory=False,
        positions=_ROTATING,
    ),
    CoreFacts("span", "a window of learned width", "L w", "Sukhbaatar et al., arXiv 1905.07799", state=True),
)

MEMORIES = _by_name(
    MemoryFacts("none", "nothing", "0", "", extra_frames=False),
    MemoryFacts("xl", "the last hidden frames", "L M", "Dai et al., arXiv 1901.02860"),
    MemoryFacts("compressive", "the last hidden frames, older ones compressed", "L (M + C)", "Rae et al., 1911.05507"),
    MemoryFacts(
        "knn", "nearest keys of a long history", "L M + L k", "Wu et al., arXiv 2203.08913", extra_frames=False
    ),
)

POSITIONS = _by_name(
    PositionFacts("none", "nothing", "0", "", None),
    PositionFacts("sinusoidal", "sines of the frame's index", "L d", "Vaswani et al., 1706.03762", "embed"),
    PositionFacts("learned", "a table of fixed length", "L d", "Gehring et al., 1705.03122", "embed"),
    PositionFacts("coordinates", "sines of frame and depth", "L d", "Dehghani et al., 1807.03819", "embed"),
    PositionFacts("rope", "rotation by the frame's index", "L d", "Su et al., arXiv 2104.09864", "rotate"),
    PositionFacts("shaw", "a learned key for each distance", "L²", "Shaw et al., arXiv 1803.02155", "add"),
    PositionFacts("xl", "separate scores for content and distance", "L² d", "Dai et al., arXiv 1901.02860", "add"),
    PositionFacts("alibi", "a penalty that grows with distance", "L²", "Press et al., 2108.12409", "add"),
    PositionFacts("distance_aware", "a learned factor by distance", "L²", "Wu et al., arXiv 2010.06925", "multiply"),
)

BLOCKS = _by_name(
    BlockFacts(
        "early exit",
        "stops where the head's estimates no longer change",
        "fewer blocks",
        "Diarizer.exit_confidence",
        "Schuster et al., 2207.07061; Elbayad et al., 1910.10073",
    ),
    BlockFacts(
        "label memory",
        "names speakers by the nearest stored frames of voices",
        "L M",
        "VoiceStore",
        "Khandelwal et al., kNN-LM, arXiv 1911.00172",
    ),
    BlockFacts(
        "gru",
        "gates that control what a branch contributes",
        "6 d² weights per branch",
        "residual = 'gru'",
        "Parisotto et al., GTrXL, arXiv 1910.06764",
    ),
    BlockFacts(
        "reversible",
        "inputs of blocks recomputed from their outputs",
        "a second forward pass, and the memory of one block",
        "depth = 'reversible'",
        "Kitaev et al., Reformer, arXiv 2001.04451",
    ),
    BlockFacts(
        "chunked feed-forward",
        "feed-forward parts, a chunk of frames at a time",
        "recomputation in training, and the memory of one chunk",
        "ff_chunk_frames",
        "Kitaev et al., Reformer, arXiv 2001.04451",
    ),
    BlockFacts(
        "universal",
        "one block, repeated",
        "the weights of one block",
        "depth = 'universal'",
        "Dehghani et al., arXiv 1807.03819",
    ),
    BlockFacts(
        "halting",
        "a universal block, repeated as often as each frame needs",
        "as many repetitions as the slowest frame needs",
        "depth = { kind = 'universal', halting = true }",
        "Graves, arXiv 1603.08983",
    ),
)

ABSENT: Mapping[str, str] = MappingProxyType(
    {
        "Decision Transformer": "predicts actions from returns; a recording has neither",
        "SPALM's vocabulary": "mixes distributions over words; slots have no vocabulary",
        "SPALM's gate": "must be trained with the voices it weighs; voices are stored after training",
        "2-D image blocks": "need a second spatial axis; frames have only time",
        "Synthesizer": "its weights are tied to one recording length",
        "Shaw's values": "need the weight of each pair, which fused attention kernels do not return",
        "ETC's typed labels": "distinguish kinds of pairs, as words of one sentence; frames differ only in distance",
        "Sparse Transformer's joined patterns": "combine cores by head or as a union; layers may alternate instead",
        "Routing Transformer's local heads": "a layer has one core for all heads; layers may alternate instead",
        "ETC's contrastive pre-training": "is for encoders without labels; ours starts from labelled voices",
        "attractor decoder": "finds speakers one by one; slots are outputs, and clustering finds further voices",
        "Set Transformer's pooling": "pools a set by a learned query per slot; slots are distinguished by arrival",
        "learned exits": "need classifiers with targets of their own; comparing estimates needs none",
        "annealed order temperatures": "the gate, initially closed, admits soft orders gradually",
        "rates halved on plateaus, early stopping": "no epochs: the rate falls by a cosine, and `best` is kept",
    }
)
"""Mechanisms of the papers that are not implemented, with the reason."""
