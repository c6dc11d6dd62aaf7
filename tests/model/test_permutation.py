"""The permutation encoding: the guarantees of its designs, and controls that violate them."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from sortformer.config.model import HeadConfig
from sortformer.model.permutation import PermutationEncoding, harmonics
from tests.model.activities import ARRIVALS, speaking_from
from tests.oracles.arrival_loops import expected_arrivals, soft_ranks

SOFT = ["soft", "softsort", "sinkhorn"]
SORTED = ["hard", *SOFT]
CONFIG = HeadConfig(num_slots=4, dim=16, heads=2, ff_dim=16)


def build(design: str, kernel: str = "sinusoidal", **changes) -> PermutationEncoding:
    torch.manual_seed(0)
    return PermutationEncoding(replace(CONFIG, permutation=design, kernel=kernel, **changes))


def encode(encoding: PermutationEncoding, logits: Tensor) -> Tensor:
    with torch.no_grad():
        return encoding.encode(logits, torch.ones(logits.shape[:2], dtype=torch.bool))


def estimates(seed: int, frames: int = 60, scale: float = 3.0) -> Tensor:
    """Return smooth random logits (1, T, 4) of classes that arrive at different frames."""
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(1, 4, frames + 8, generator=generator)
    logits = 3 * scale * torch.nn.functional.avg_pool1d(noise, 9, stride=1).transpose(1, 2)
    for k, arrival in enumerate(torch.randperm(frames // 2, generator=generator)[:4].tolist()):
        logits[:, :arrival, k] = -logits[:, :arrival, k].abs()
        logits[:, arrival, k] = logits[:, arrival, k].abs()
    return logits


designs = pytest.mark.parametrize("design", SORTED)
kernels = pytest.mark.parametrize("kernel", ["sinusoidal", "harmonic", "learned"])


@pytest.mark.parametrize("design", SOFT)
@kernels
def test_designs_b_and_c_have_the_gradients_that_differences_have(design, kernel):
    encoding, logits = build(design, kernel).double(), estimates(2, frames=9, scale=0.3).double().requires_grad_()
    valid = torch.ones(logits.shape[:2], dtype=torch.bool)
    assert torch.autograd.gradcheck(lambda x: encoding.encode(x, valid), logits)


@designs
@kernels
@given(seed=st.integers(0, 1000), order=st.permutations(range(4)))
@settings(max_examples=25)
def test_permuting_the_classes_changes_no_encoding(design, kernel, seed, order):
    encoding, logits = build(design, kernel), estimates(seed)
    torch.testing.assert_close(encode(encoding, logits[..., list(order)]), encode(encoding, logits), atol=1e-4, rtol=0)


@designs
@kernels
@given(
    arrivals=st.lists(st.integers(0, 3), min_size=4, max_size=4),
    level=st.lists(st.sampled_from([0.5, 4.0, 40.0]), min_size=4, max_size=4),
    order=st.permutations(range(4)),
)
@settings(max_examples=25)
def test_permuting_classes_that_arrive_at_once_changes_no_encoding(design, kernel, arrivals, level, order):
    """With different probabilities or the same."""
    encoding = build(design, kernel)
    logits = speaking_from(tuple(20 * frame for frame in arrivals)) / 6.0 * torch.tensor(level)
    torch.testing.assert_close(encode(encoding, logits[..., list(order)]), encode(encoding, logits), atol=1e-4, rtol=0)


def test_of_classes_that_arrive_at_once_the_surer_one_comes_first():
    encoding = build("hard", "learned")
    logits = torch.full((1, 3, 4), -50.0)
    logits[:, 1:, [1, 3]] = torch.tensor([1.0, 2.0])
    probs = logits[0, 2].sigmoid()
    expected = probs[3] * encoding.table[0] + probs[1] * encoding.table[1]
    torch.testing.assert_close(encode(encoding, logits)[0, 2], expected.detach(), atol=1e-6, rtol=0)


def test_permuting_the_classes_changes_no_bit_that_counts_in_design_a():
    encoding, logits = build("hard"), estimates(1).double()
    permuted = encode(encoding, logits[..., [2, 0, 3, 1]])
    torch.testing.assert_close(permuted, encode(encoding, logits), atol=1e-14, rtol=0)


@kernels
def test_permuting_the_classes_changes_the_unsorted_control(kernel):
    encoding, logits = build("label", kernel), estimates(1)
    assert (encode(encoding, logits[..., [2, 0, 3, 1]]) - encode(encoding, logits)).abs().max() > 0.5


@designs
@given(seed=st.integers(0, 1000), silence=st.integers(1, 50))
@settings(max_examples=25)
def test_leading_silence_shifts_the_encoding_and_changes_nothing_else(design, seed, silence):
    encoding, logits = build(design), estimates(seed)
    later = torch.cat([torch.full((1, silence, 4), -50.0), logits], dim=1)
    torch.testing.assert_close(encode(encoding, later)[:, silence:], encode(encoding, logits), atol=1e-4, rtol=0)


def test_a_class_that_never_speaks_adds_exactly_nothing_to_design_a():
    encoding = build("hard")
    quiet, nearly = speaking_from((60, 5, 999, 30)), speaking_from((60, 5, 999, 30))
    nearly[..., 2] = -0.01
    torch.testing.assert_close(encode(encoding, nearly), encode(encoding, quiet), atol=0, rtol=0)


@pytest.mark.parametrize("design", SOFT)
@kernels
def test_a_class_that_never_speaks_adds_next_to_nothing_to_designs_b_and_c(design, kernel):
    encoding = build(design, kernel)
    with_it = speaking_from((60, 5, 999, 30))
    unthinkable = with_it.clone()
    unthinkable[..., 2] = -50.0
    torch.testing.assert_close(encode(encoding, with_it), encode(encoding, unthinkable), atol=1e-3, rtol=0)


@kernels
@given(seed=st.integers(0, 1000), frames=st.integers(1, 59))
@settings(max_examples=25)
def test_design_a_of_a_prefix_is_the_prefix_of_design_a(kernel, seed, frames):
    """Therefore it is exact in a stream: later frames do not change earlier encodings."""
    encoding, logits = build("hard", kernel), estimates(seed)
    torch.testing.assert_close(
        encode(encoding, logits[:, :frames]), encode(encoding, logits)[:, :frames], atol=1e-6, rtol=0
    )


@pytest.mark.parametrize("design", SOFT)
def test_designs_b_and_c_look_ahead(design):
    """The control of the test above: it could fail."""
    encoding, logits = build(design), speaking_from(ARRIVALS, level=2.0)
    before = encode(encoding, logits[:, :40])
    assert (before - encode(encoding, logits)[:, :40]).abs().max() > 1e-3


@pytest.mark.parametrize("kernel", ["harmonic", "learned"])
def test_design_b_adds_the_code_of_the_soft_rank_of_each_class_as_far_as_it_speaks(kernel):
    encoding, logits = build("soft", kernel, order_temperature_frames=5.0), estimates(3)
    times, presence = expected_arrivals(logits[0].double().numpy(), encoding.sharpness)
    ranks = soft_ranks(times, 5.0)
    codes = harmonics(torch.tensor(ranks), CONFIG.dim)
    if kernel == "learned":
        table = encoding.table.detach().double().numpy()
        codes = torch.tensor(np.stack([np.interp(ranks, range(4), column) for column in table.T], axis=1))
    expected = (torch.sigmoid(logits[0].double()) * torch.tensor(presence)) @ codes
    torch.testing.assert_close(encode(encoding, logits)[0].double(), expected, atol=1e-4, rtol=0)


@pytest.mark.parametrize("design", SOFT)
@kernels
@pytest.mark.parametrize(("temperature", "tolerance"), [(3.0, 2e-3), (1.0, 1e-6), (0.1, 1e-6)])
def test_designs_b_and_c_become_design_a_as_the_temperature_falls(design, kernel, temperature, tolerance):
    logits = speaking_from(ARRIVALS, level=20.0)
    hard = build("hard", kernel)
    other = build(design, kernel, order_temperature_frames=temperature)
    other.load_state_dict(hard.state_dict())
    torch.testing.assert_close(encode(other, logits), encode(hard, logits), atol=tolerance, rtol=0)


@pytest.mark.parametrize("design", [*SORTED, "label"])
@kernels
@pytest.mark.parametrize("level", [6.0, 50.0])
def test_gradients_are_finite_at_any_confidence(design, kernel, level):
    encoding = build(design, kernel)
    torch.nn.init.ones_(encoding.gate)
    logits = torch.cat([speaking_from(ARRIVALS, level=level), speaking_from((0, 0, 999, 999), level=level)])
    logits.requires_grad_()
    valid = torch.arange(200) < torch.tensor([[200], [150]])
    encoding(logits, valid)[0].square().sum().backward()
    for tensor in (logits, *encoding.parameters()):
        assert tensor.grad is not None
        assert torch.isfinite(tensor.grad).all()
    assert logits.grad is not None
    assert not logits.grad[1, 150:].any()


@pytest.mark.parametrize("design", SOFT)
@pytest.mark.parametrize("extreme", [{"order_temperature_frames": 1e-3}, {"arrival_sharpness": 1e3}])
def test_what_the_config_allows_gives_numbers(design, extreme):
    encoding = build(design, **extreme)
    torch.nn.init.ones_(encoding.gate)
    logits = torch.cat([speaking_from(ARRIVALS, level=2.0), torch.zeros(1, 200, 4)]).requires_grad_()
    out = encoding(logits, torch.ones(2, 200, dtype=torch.bool))[0]
    out.square().sum().backward()
    assert torch.isfinite(out).all()
    for tensor in (logits, *encoding.parameters()):
        assert tensor.grad is not None
        assert torch.isfinite(tensor.grad).all()


@pytest.mark.parametrize("design", SOFT)
def test_the_gradient_to_when_can_be_stopped(design):
    logits = estimates(3, scale=0.5)
    gradients = []
    for detach in (False, True):
        encoding = build(design, detach_order=detach, arrival_sharpness=1.0)
        probe = logits.clone().requires_grad_()
        encoding.encode(probe, torch.ones(1, 60, dtype=torch.bool))[0, -1].sum().backward()
        assert probe.grad is not None
        gradients.append(probe.grad)
    # The last frame's encoding depends on the first frames through the arrivals (and the chance of presence).
    assert gradients[0][0, 0].abs().max() > gradients[1][0, 0].abs().max()


@pytest.mark.parametrize("design", [*SORTED, "label"])
def test_the_padding_is_not_read(design):
    encoding, logits = build(design), estimates(4)
    alone = encode(encoding, logits)
    padded = torch.cat([logits, torch.full((1, 20, 4), torch.nan)], dim=1)
    valid = torch.arange(80)[None] < 60
    with torch.no_grad():
        found = encoding.encode(padded, valid)
    torch.testing.assert_close(found[:, :60], alone, atol=1e-5, rtol=0)
    assert not found[:, 60:].any()


def test_the_first_chunk_of_a_stream_is_encoded_as_a_whole_recording():
    encoding, logits = build("hard"), torch.cat([estimates(4), torch.full((1, 20, 4), torch.nan)], dim=1)
    torch.nn.init.constant_(encoding.gate, 0.5)
    valid = torch.arange(80)[None] < 60
    with torch.no_grad():
        chunk, _ = encoding(logits, valid, encoding.init_state(logits))
        whole, _ = encoding(logits, valid)
    torch.testing.assert_close(chunk, whole, atol=0, rtol=0)


@pytest.mark.parametrize("design", [*SORTED, "label"])
def test_rows_do_not_know_of_each_other(design):
    encoding = build(design)
    rows = [estimates(seed) for seed in range(3)]
    together = encode(encoding, torch.cat(rows))
    for row, logits in enumerate(rows):
        torch.testing.assert_close(together[row], encode(encoding, logits)[0], atol=1e-5, rtol=0)


@pytest.mark.parametrize("design", [*SORTED, "label"])
@kernels
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_it_works_in_the_precision_of_the_model(design, kernel, dtype):
    encoding = build(design, kernel).to(dtype)
    torch.nn.init.ones_(encoding.gate)
    out = encoding(estimates(5).to(dtype), torch.ones(1, 60, dtype=torch.bool))[0]
    assert out.dtype is dtype
    assert torch.isfinite(out).all()


def test_harmonics_are_sines_of_whole_periods_and_orthogonal():
    codes = harmonics(torch.arange(7), 16)
    expected = [[math.sin(2 * math.pi * (rank + 1) * place / 16) for place in range(1, 17)] for rank in range(7)]
    torch.testing.assert_close(codes, torch.tensor(expected), atol=1e-5, rtol=0)
    torch.testing.assert_close(codes @ codes.T, 8 * torch.eye(7), atol=1e-4, rtol=0)


@kernels
def test_the_code_of_a_rank_is_that_of_its_kernel(kernel):
    encoding = build("label", kernel)
    found = encode(encoding, 100.0 * torch.eye(4)[None] - 50.0)[0]  # each class alone, in turn
    turns = [[rank * 10_000 ** -(place // 2 / 8) for place in range(16)] for rank in range(4)]
    expected = {
        "sinusoidal": torch.tensor(
            [[(math.sin, math.cos)[place % 2](row[place]) for place in range(16)] for row in turns]
        ),
        "harmonic": harmonics(torch.arange(4), 16),
        "learned": encoding.table,
    }[kernel]
    torch.testing.assert_close(found, expected, check_dtype=False)


@pytest.mark.parametrize(("design", "shared_out"), [("sinkhorn", True), ("softsort", False)])
def test_sinkhorn_gives_each_class_to_the_slots_in_one_piece_as_softsort_does_not(design, shared_out):
    encoding, logits = build(design, "learned"), speaking_from((0, 1, 2, 150))
    torch.nn.init.ones_(encoding.table)  # so that the code of a class is how much of it is in the slots
    whole = torch.allclose(encode(encoding, logits), logits.sigmoid().sum(dim=2, keepdim=True), atol=1e-2)
    assert whole is shared_out


def test_a_closed_gate_adds_exactly_nothing():
    out = build("hard")(estimates(6), torch.ones(1, 60, dtype=torch.bool))[0]
    assert not out.any()


@pytest.mark.parametrize(("gate", "size"), [("scalar", 1), ("channel", 16)])
def test_the_gate_is_one_number_or_one_a_channel(gate, size):
    assert build("hard", gate=gate).gate.shape == (size,)


def test_silence_is_not_blown_up_to_unit_size():
    encoding = build("hard")
    torch.nn.init.ones_(encoding.gate)
    with torch.no_grad():
        logits = torch.full((1, 10, 4), -9.0)
        logits[:, 0] = 9.0  # all arrive, and then are silent
        out = encoding(logits, torch.ones(1, 10, dtype=torch.bool))[0]
    assert out[:, 0].abs().max() > 0.5
    assert 0 < out[:, 1:].abs().max() < 1e-2
