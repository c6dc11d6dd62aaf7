"""Attention cores, memories and positions on a separate device."""

import pytest
import torch
from torch import Tensor, nn

from sortformer.attention import Context, MultiHeadAttention, build_core
from sortformer.config.attention import AttentionConfig
from sortformer.config.mechanisms import POSITIONS
from sortformer.config.memories import CompressiveMemory, NearestMemory, TransformerXLMemory
from tests.attention.cases import CASES, name
from tests.draws import draw
from tests.elsewhere.both import both, gradients
from tests.elsewhere.device import PLACE, elsewhere

HEADS, DIM, FRAMES = 2, 4, 11
LENGTHS = torch.tensor([FRAMES, 7])
CHUNK = 3
MEMORIES = {
    "xl": TransformerXLMemory(frames=5, chunk_frames=CHUNK),
    "knn": NearestMemory(frames=7, neighbours=2, chunk_frames=CHUNK),
    "conv": CompressiveMemory(frames=4, compressed_frames=3, ratio=2, loss="attention", chunk_frames=CHUNK),
}


def test_what_meets_the_cpu_is_refused():
    with elsewhere():
        here, there = torch.ones(3, 2), torch.ones(3, 2, device=PLACE)
        assert (there + there).device == PLACE
        assert float((there * torch.tensor(2.0)).sum()) == 12
        for meeting in (
            lambda: there + here,
            lambda: there @ here.T,
            lambda: torch.cat([there, here]),
            lambda: there.scatter_(0, torch.zeros(1, 2, dtype=torch.int64), there),
            lambda: there.numpy(),
        ):
            with pytest.raises((RuntimeError, TypeError)):
                meeting()


@pytest.mark.parametrize("case", CASES, ids=lambda case: name(case.config))
def test_cores(case):
    torch.manual_seed(0)
    core = build_core(case.config, HEADS, DIM).double()
    valid = torch.arange(FRAMES) < LENGTHS[:, None]
    given = [x.requires_grad_() for x in draw(1, 3, 2, HEADS, FRAMES, DIM).unbind()]
    both(lambda core, valid, *x: gradients([core(*x, Context(valid))], core, *x), core, valid, *given, float64=True)


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("position", POSITIONS)
def test_memories_and_positions(memory, position):
    torch.manual_seed(0)
    config = AttentionConfig(position=position, memory=MEMORIES[memory], learned_positions=2 * FRAMES)
    layer = MultiHeadAttention(HEADS * DIM, HEADS, config, depth=1).double()
    valid = torch.arange(FRAMES) < LENGTHS[:, None]

    def run(layer: nn.Module, valid: Tensor, x: Tensor) -> list[Tensor | None]:
        step = layer(x, valid)
        return gradients([step.out, *step.losses.values()], layer, x)

    both(run, layer, valid, draw(1, 2, FRAMES, HEADS * DIM).requires_grad_(), float64=True)
