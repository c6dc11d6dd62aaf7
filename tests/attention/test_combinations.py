"""Core x memory x position: valid combinations work in a layer and obey its laws, all others are refused."""

from itertools import product

import pytest
import torch

from sortformer.attention import MultiHeadAttention
from sortformer.config.attention import AttentionConfig
from sortformer.config.combiners import CombinerFixedCore
from sortformer.config.cores import (
    Core,
    DilatedCore,
    FavorCore,
    FullCore,
    GlobalLocalCore,
    LocalCore,
    RandomFeatureCore,
    SpanCore,
)
from sortformer.config.mechanisms import CORES, MEMORIES, POSITIONS
from sortformer.config.memories import CompressiveMemory, NearestMemory, NoMemory, TransformerXLMemory
from sortformer.errors import ConfigError
from sortformer.position import Places, RotaryPosition
from tests.attention.cases import CASES, name
from tests.draws import draw
from tests.masks import all_seen, unpadded

DIM, HEADS, FRAMES = 8, 2, 9
KINDS = {case.config.kind: case.config for case in CASES}
MEMORY = {
    "none": NoMemory(),
    "xl": TransformerXLMemory(frames=4, chunk_frames=3),
    "compressive": CompressiveMemory(frames=2, compressed_frames=2, ratio=2, chunk_frames=3),
    "knn": NearestMemory(frames=6, neighbours=2, chunk_frames=3),
}
SCORING = [position for position, facts in POSITIONS.items() if facts.how in ("add", "multiply")]


def takes(config: Core, position: str) -> bool:
    how = POSITIONS[position].how
    alone = getattr(config, "pool", "mean") != "mean" or getattr(config, "dynamic", False)
    return how is None or (how in CORES[config.kind].positions and not (how == "rotate" and alone))


def legal(core: str, memory: str, position: str) -> bool:
    return takes(KINDS[core], position) and (CORES[core].memory or not MEMORIES[memory].extra_frames)


def build(config: AttentionConfig, seed: int = 0) -> MultiHeadAttention:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layer = MultiHeadAttention(DIM, HEADS, config).double().eval()
        for parameter in layer.parameters():
            torch.nn.init.normal_(parameter, std=0.4)
    return layer


@pytest.mark.parametrize("core", KINDS)
def test_a_layer_takes_every_legal_combination_and_no_other(core: str):
    for memory, position in product(MEMORY, POSITIONS):
        if not legal(core, memory, position):
            with pytest.raises(ConfigError, match=f"core '{core}' does not support the"):
                AttentionConfig(KINDS[core], position, MEMORY[memory])
            continue
        layer = build(AttentionConfig(KINDS[core], position, MEMORY[memory]))
        valid = torch.arange(FRAMES)[None] < 7
        x = draw(1, 1, FRAMES, DIM).masked_fill(~valid[..., None], torch.nan)
        with torch.no_grad():
            out, alone = layer(x, valid).out, layer(*unpadded(x[:, :7])).out
        torch.testing.assert_close(out[:, :7], alone, atol=1e-6, rtol=0, msg=f"{core}, {memory}, {position}")


@pytest.mark.parametrize("position", [*SCORING, "rope"])
@pytest.mark.parametrize(
    "core",
    [DilatedCore(reach=99, dilation=1), GlobalLocalCore(window_frames=1, global_frames=150), SpanCore(max_frames=9999)],
    ids=name,
)
def test_positions_mean_the_same_to_tiles_as_to_all_pairs(core: Core, position: str):
    layer, full = build(AttentionConfig(core, position)), build(AttentionConfig(FullCore(), position))
    full.load_state_dict({key: value for key, value in layer.state_dict().items() if not key.startswith("core.")})
    frames = 99 if isinstance(core, DilatedCore) else 140
    x = draw(2, 1, frames, DIM)
    with torch.no_grad():
        torch.testing.assert_close(layer(*unpadded(x)).out, full(*unpadded(x)).out, atol=1e-5, rtol=0)


@pytest.mark.parametrize("position", [*SCORING, "rope", "none"])
def test_a_memory_of_all_frames_knows_where_they_stood(position: str):
    """Chunk by chunk over all earlier frames equals the causal half of attention, by blocks."""
    memory = TransformerXLMemory(frames=99, chunk_frames=3)
    layer, plain = build(AttentionConfig(position=position, memory=memory)), build(AttentionConfig(position=position))
    x = draw(3, 1, FRAMES, DIM)
    with torch.no_grad():
        for end in (3, 6, 9):
            chunks, whole = (each(*unpadded(x[:, :end])).out[:, end - 3 :] for each in (layer, plain))
            torch.testing.assert_close(chunks, whole, atol=1e-5, rtol=0)


def test_projections_keep_their_names_whatever_the_mechanism():
    common = set(build(AttentionConfig()).state_dict())
    assert common == {f"{part}.{kind}" for part in ("query", "key", "value", "out") for kind in ("weight", "bias")}
    for case in CASES:
        assert common <= set(build(AttentionConfig(case.config)).state_dict())


TURNED = [
    case.config
    for case in CASES
    if takes(case.config, "rope") and not isinstance(case.config, FavorCore | RandomFeatureCore)  # only in expectation
]


@pytest.mark.parametrize("config", TURNED, ids=name)
def test_where_all_frames_stand_is_nothing_to_cores_that_take_rotations(config: Core):
    """If all queries and keys are rotated by the same angle, only their distance may count."""
    core, turn, frames = build(AttentionConfig(config)).core, RotaryPosition(8), 24
    query, key, value = draw(4, 3, 1, HEADS, frames, 8).unbind()
    here = torch.zeros(1, frames)
    with torch.no_grad():
        there = turn.rotate(query, key, Places(here + 7, here + 7))
        torch.testing.assert_close(
            core(*all_seen(*there, value)), core(*all_seen(query, key, value)), atol=1e-9, rtol=0
        )


def test_what_looks_at_queries_or_keys_by_themselves_takes_no_rotations():
    with pytest.raises(
        ConfigError, match="does not support the position 'rope' with the pool 'max', which would depend"
    ):
        AttentionConfig(CombinerFixedCore(pool="max"), "rope")
    with pytest.raises(
        ConfigError, match="does not support the position 'rope' with a dynamic span, which would depend"
    ):
        AttentionConfig(SpanCore(dynamic=True), "rope")


def test_a_refusal_names_what_would_fit():
    with pytest.raises(ConfigError, match=r"core 'local' does not support the position 'xl', which adds .* 'rope'"):
        AttentionConfig(LocalCore(), "xl")
    with pytest.raises(ConfigError, match="core 'local' does not support the memory 'xl', which adds frames to"):
        AttentionConfig(LocalCore(), memory=TransformerXLMemory())
