"""Universal Transformer: one layer repeated, with adaptive halting per frame."""

from functools import partial
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from sortformer.config.attention import AttentionConfig, Position
from sortformer.config.cores import SpanCore
from sortformer.config.depth import UniversalDepth
from sortformer.config.model import EncoderConfig
from sortformer.layers import TransformerBlock, build_stack
from sortformer.layers.universal import HaltingStack, UniversalStack
from sortformer.position.absolute import sinusoids
from tests.masks import unpadded
from tests.oracles.depth_loops import halted

DIM, FRAMES = 8, 7


def build(
    layers: int, depth: UniversalDepth, position: Position = "rope", seed: int = 0, **options: Any
) -> UniversalStack:
    config = EncoderConfig(
        "transformer",
        dim=DIM,
        heads=2,
        ff_dim=12,
        layers=layers,
        position=position,
        depth=depth,
        dropout=0.0,
        **options,
    )
    kind = partial(TransformerBlock, norm="pre", activation="gelu")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        stack = build_stack(config, kind).double()
        for parameter in stack.parameters():
            nn.init.normal_(parameter, std=0.4)
    assert isinstance(stack, UniversalStack)
    return stack


def frames(seed: int = 1, rows: int = 2) -> Tensor:
    return torch.randn(rows, FRAMES, DIM, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("position", ["rope", "coordinates"])
def test_it_is_one_block_that_is_told_the_time(position: str):
    stack, x = build(3, UniversalDepth(), position), frames()
    found = stack(*unpadded(x)).out
    for time in range(1, 4):
        x = x + sinusoids(torch.tensor(time), DIM)
        if position == "coordinates":
            x = x + sinusoids(torch.arange(FRAMES), DIM)
        x = stack[0](*unpadded(x)).out
    torch.testing.assert_close(found, x)


def test_where_the_stack_adds_coordinates_its_block_adds_none():
    stack, x = build(3, UniversalDepth(), "coordinates"), frames()
    torch.testing.assert_close(stack[0](*unpadded(x.flip(1))).out, stack[0](*unpadded(x)).out.flip(1))


@pytest.mark.parametrize("halting", [False, True])
def test_its_weights_do_not_grow_with_its_layers(halting: bool):
    few, many = (build(layers, UniversalDepth(halting=halting)).state_dict() for layers in (1, 9))
    assert {name: value.shape for name, value in few.items()} == {name: value.shape for name, value in many.items()}


@given(seed=st.integers(0, 200), layers=st.integers(1, 5), halt_at=st.floats(0.3, 1.0))
@settings(max_examples=30)
def test_halting_is_the_loop_over_frames(seed: int, layers: int, halt_at: float):
    stack = build(layers, UniversalDepth(halting=True, halt_at=halt_at), seed=seed)
    assert isinstance(stack, HaltingStack)
    x = frames(seed)
    with torch.no_grad():
        found = stack(*unpadded(x))
        expected, ponder = halted(
            x,
            lambda layer, state: stack.run(layer, *unpadded(state)).out,
            lambda frame: float(torch.sigmoid(frame @ stack.done_weight + stack.done_bias)),
            layers,
            halt_at,
        )
    torch.testing.assert_close(found.out, expected)
    assert found.losses["ponder"].item() == pytest.approx(sum(map(sum, ponder)) / (2 * FRAMES))


def test_with_one_step_it_is_the_layer():
    halting, plain = (build(1, UniversalDepth(halting=halting)) for halting in (True, False))
    plain.load_state_dict({name: value for name, value in halting.state_dict().items() if "done" not in name})
    found = halting(*unpadded(frames()))
    torch.testing.assert_close(found.out, plain(*unpadded(frames())).out)
    assert found.losses["ponder"].item() == 2.0


@pytest.mark.parametrize(("bias", "times"), [(1e3, 1), (-1e3, 4)])
def test_who_is_sure_at_once_runs_once_and_who_never_is_gets_the_last_state(bias: float, times: int):
    stack = build(4, UniversalDepth(halting=True))
    stack.done_bias.data.fill_(bias)  # pyright: ignore[reportCallIssue, reportAttributeAccessIssue]
    ran = []
    stack[0].attention_norm.register_forward_hook(lambda *_: ran.append(1))
    x = frames()
    found = stack(*unpadded(x))
    assert len(ran) == times
    for layer in range(times):
        x = stack.run(layer, *unpadded(x)).out
    torch.testing.assert_close(found.out, x)
    assert found.losses["ponder"].item() == times + 1


def test_padding_neither_ponders_nor_touches_the_others():
    stack, x = build(4, UniversalDepth(halting=True)), frames()
    valid = torch.arange(FRAMES) < torch.tensor([[FRAMES], [4]])
    found = stack(x.masked_fill(~valid[..., None], torch.nan), valid)
    alone = [stack(*unpadded(x[row : row + 1, :length])) for row, length in enumerate((FRAMES, 4))]
    for row, length in enumerate((FRAMES, 4)):
        torch.testing.assert_close(found.out[row, :length], alone[row].out[0])
    expected = (FRAMES * alone[0].losses["ponder"] + 4 * alone[1].losses["ponder"]) / (FRAMES + 4)
    torch.testing.assert_close(found.losses["ponder"], expected)


def test_pondering_costs_where_frames_may_still_become_sure():
    stack = build(4, UniversalDepth(halting=True))
    stack(*unpadded(frames())).losses["ponder"].backward()
    gradient = stack.done_bias.grad  # pyright: ignore[reportAttributeAccessIssue]
    assert isinstance(gradient, Tensor)
    assert gradient < 0  # more certain frames halt earlier


@pytest.mark.parametrize("halting", [False, True])
def test_the_loss_of_its_core_counts_each_time(halting: bool):
    span = AttentionConfig(SpanCore(max_frames=4, ramp_frames=3))
    stack = build(4, UniversalDepth(halting=halting), attention=(span,))
    if isinstance(stack, HaltingStack):
        stack.done_bias.data.fill_(-1e3)  # no frame halts before the last time
    found, once = (run(*unpadded(frames())).losses["span"] for run in (stack, stack[0]))
    torch.testing.assert_close(found, 4 * once)
