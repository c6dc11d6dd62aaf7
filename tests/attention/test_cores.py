"""The laws of attention cores, for every registered core."""

import dataclasses
import itertools
from collections import defaultdict
from dataclasses import replace
from math import prod

import numpy as np
import pytest
import torch
from torch import Tensor

from sortformer.attention import Context, Core, RecurrentCore, build_core, combiner_axial, combiner_fixed
from sortformer.attention.combiner_axial import CombinerAxial, CombinerMixture
from sortformer.attention.pattern import PatternAttention
from sortformer.attention.softmax import TILE_FRAMES, attend
from sortformer.config import combiners, cores
from sortformer.config.mechanisms import CORES
from sortformer.streaming.rows import row, shapes, side_by_side
from tests.attention.cases import CASES, FULL_LIMITS, Case, causal, name
from tests.draws import draw
from tests.masks import all_seen

HEADS, DIM, FRAMES = 2, 4, 11
LENGTHS = torch.tensor([FRAMES, 7])
VALID = torch.arange(FRAMES) < LENGTHS[:, None]
CAUSAL = [case for case in CASES if causal(case.config)]

halves = pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: name(case.config))
every_combiner = pytest.mark.parametrize(
    "case", [case for case in CASES if case.config.kind.startswith("combiner")], ids=lambda case: name(case.config)
)


def build(config: cores.Core, seed: int = 0) -> Core:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        core = build_core(config, HEADS, DIM).double().eval()
        for parameter in core.parameters():
            torch.nn.init.normal_(parameter, std=0.5)
    return core


def weights(core: Core) -> dict[str, np.ndarray]:
    return {key: value.numpy() for key, value in core.state_dict().items()}


def test_every_core_that_is_registered_has_an_oracle():
    assert {case.config.kind for case in CASES} == set(CORES)


@pytest.mark.parametrize(
    "config",
    [
        combiners.CombinerFixedCore(block_frames=2**20),
        combiners.CombinerFixedCore(block_frames=2**20, causal=True),
        combiners.CombinerHierarchicalCore(block_frames=2**20),
        combiners.CombinerAxialCore(row_frames=2**20),
        combiners.CombinerAxialCore(row_frames=2**20, plan="horizontal"),
        combiners.CombinerAxialCore(row_frames=2**20, plan="rowmajor"),
        combiners.CombinerMixtureCore(block_frames=2**20, mixture="joint"),
        cores.SinkhornCore(block_frames=2**20),
        cores.SinkhornCore(block_frames=2**20, cut_blocks=1),
        cores.BlockwiseCore(block_frames=2**20),
        cores.ReformerCore(chunk_frames=2**20),
        cores.LinformerCore(ratio=2**20, projection="mean"),
    ],
    ids=name,
)
def test_a_block_beyond_the_recording_is_one_that_holds_it(config: cores.Core):
    sizes = {key: FRAMES for key, value in dataclasses.asdict(config).items() if value == 2**20}
    query, key, value = draw(1, 3, 2, HEADS, FRAMES, DIM).unbind()
    beyond, whole = (build(each)(query, key, value, Context(VALID)) for each in (config, replace(config, **sizes)))
    torch.testing.assert_close(beyond, whole, atol=0, rtol=0)


def test_every_core_with_a_causal_form_has_an_oracle_for_it():
    assert {case.config.kind for case in CAUSAL} == {facts.name for facts in CORES.values() if facts.causal}


@every_case
def test_it_equals_its_oracle(case: Case):
    core = build(case.config)
    query, key, value = draw(1, 3, 2, HEADS, FRAMES, DIM).unbind()
    with torch.no_grad():
        out = core(query, key, value, Context(VALID)).numpy()
    expected = case.oracle(weights(core), query.numpy(), key.numpy(), value.numpy(), VALID.numpy())
    counts = np.broadcast_to(VALID.numpy()[:, None, :, None], out.shape)
    assert np.isfinite(out).all()
    np.testing.assert_allclose(out[counts], expected[counts], atol=1e-9)


@every_case
def test_padding_changes_nothing(case: Case):
    core = build(case.config)
    query, key, value = draw(3, 3, 2, HEADS, FRAMES, DIM).unbind()
    with torch.no_grad():
        together = core(query, key, value, Context(VALID))
        for row, length in enumerate(LENGTHS.tolist()):
            part = [x[row : row + 1, :, :length] for x in (query, key, value)]
            torch.testing.assert_close(together[row : row + 1, :, :length], core(*all_seen(*part)), atol=1e-9, rtol=0)


@every_case
def test_gradients_are_those_of_finite_differences(case: Case):
    core = build(case.config)
    query, key, value = (x.requires_grad_() for x in draw(4, 3, 1, HEADS, 6, DIM).unbind())
    valid = torch.arange(6)[None] < 5
    assert torch.autograd.gradcheck(
        lambda *x: core(*x, Context(valid))[:, :, :5], (query, key, value), fast_mode=True, atol=1e-5
    )
    core(query, key, value, Context(valid))[:, :, :5].square().sum().backward()
    for key_name, parameter in core.named_parameters():
        assert parameter.grad is not None, key_name
        assert torch.isfinite(parameter.grad).all(), key_name


@every_case
def test_a_row_without_a_valid_frame_stays_finite_and_so_do_its_gradients(case: Case):
    core = build(case.config)
    query, key, value = (x.requires_grad_() for x in draw(5, 3, 1, HEADS, FRAMES, DIM).unbind())
    out = core(query, key, value, Context(torch.zeros(1, FRAMES, dtype=torch.bool)))
    assert torch.isfinite(out).all()
    out.sum().backward()
    for x in (query, key, value):
        assert x.grad is None or torch.isfinite(x.grad).all()


@pytest.mark.parametrize("case", CAUSAL, ids=lambda case: name(case.config))
@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_a_causal_core_never_looks_ahead(case: Case, scale: float):
    core, (query, key, value) = build(case.config), draw(6, 3, 1, HEADS, FRAMES, DIM)
    later = scale * draw(7, 3, 1, HEADS, FRAMES, DIM)
    with torch.no_grad():
        before = core(*all_seen(query, key, value))
        for cut in (1, 4, 9):
            changed = [
                torch.cat((x[:, :, :cut], y[:, :, cut:]), dim=2)
                for x, y in zip((query, key, value), later, strict=True)
            ]
            after = core(*all_seen(*changed))
            torch.testing.assert_close(after[:, :, :cut], before[:, :, :cut], atol=1e-9, rtol=0)
        assert not torch.allclose(core(*all_seen(*later))[:, :, 0], before[:, :, 0])


@every_case
def test_no_two_weights_are_one(case: Case):
    weights = list(build_core(case.config, HEADS, DIM).parameters())
    assert len({weight.data_ptr() for weight in weights}) == len(weights)


SUMS = cores.LinformerCore | cores.SinkhornCore | cores.GlobalTokensCore
"""Those whose values are sums of frames, with weights that need not be those of a mean, or learned."""


@pytest.mark.parametrize(
    "case", [case for case in CASES if not isinstance(case.config, SUMS)], ids=lambda case: name(case.config)
)
def test_weights_sum_to_one(case: Case):
    """A frame that is in no cluster of the routing gets an output of zero."""
    core, (query, key, _) = build(case.config), draw(8, 3, 1, HEADS, FRAMES, DIM)
    with torch.no_grad():
        out = core(*all_seen(query, key, torch.ones_like(query)))
    heard = out.abs() > 1e-9 if isinstance(case.config, cores.RoutingCore) else torch.ones_like(out, dtype=torch.bool)
    torch.testing.assert_close(out[heard], torch.ones_like(out[heard]), atol=1e-9, rtol=0)


@pytest.mark.parametrize("config", FULL_LIMITS, ids=name)
def test_in_the_limit_it_is_full_attention(config: cores.Core):
    core = build_core(config, HEADS, DIM).double()
    full = build_core(cores.FullCore(causal=causal(config)), HEADS, DIM)
    query, key, value = draw(9, 3, 2, HEADS, 8, DIM).unbind()
    valid = torch.arange(8) < torch.tensor([[8], [5]])
    with torch.no_grad():
        out, expected = (one(query, key, value, Context(valid)) for one in (core, full))
    real = valid[:, None, :, None].expand_as(out)
    torch.testing.assert_close(out[real], expected[real], atol=1e-9, rtol=0)


@pytest.mark.parametrize(
    "case", [case for case in CASES if CORES[case.config.kind].memory], ids=lambda case: name(case.config)
)
def test_frames_of_a_memory_are_attended_to_like_frames(case: Case):
    core, (query, key, value) = build(case.config), draw(10, 3, 1, HEADS, FRAMES, DIM)
    with torch.no_grad():
        whole = core(*all_seen(query, key, value))
        for past in (1, 5, 10):
            part = core(*all_seen(query[:, :, past:], key, value, past))
            torch.testing.assert_close(part, whole[:, :, past:], atol=1e-9, rtol=0)


@pytest.mark.parametrize(
    "case", [case for case in CAUSAL if CORES[case.config.kind].state], ids=lambda case: name(case.config)
)
@pytest.mark.parametrize("sizes", [(11,), (1, 3, 7), (4, 1, 1, 5)])
def test_chunks_give_what_the_whole_gives(case: Case, sizes: tuple[int, ...]):
    core = build(case.config)
    assert isinstance(core, RecurrentCore)
    query, key, value = draw(11, 3, 2, HEADS, FRAMES, DIM).unbind()
    with torch.no_grad():
        whole = core(query, key, value, Context(VALID))
        state, chunks = core.init_state(query[:, :, :0]), []
        for x, y, z, valid in zip(
            *(t.split(sizes, 2) for t in (query, key, value)), VALID.split(sizes, 1), strict=True
        ):
            chunk, state = core.step(x, y, z, Context(valid), state)
            chunks.append(chunk)
    real = VALID[:, None, :, None].expand_as(whole)
    torch.testing.assert_close(torch.cat(chunks, dim=2)[real], whole[real], atol=1e-9, rtol=0)


@pytest.mark.parametrize(
    "case", [case for case in CAUSAL if CORES[case.config.kind].state], ids=lambda case: name(case.config)
)
def test_streams_side_by_side_may_be_at_different_places(case: Case):
    """For states of the same shapes, which a pool of sessions batches."""
    core = build(case.config)
    assert isinstance(core, RecurrentCore)
    past, (query, key, value) = draw(15, 3, 1, HEADS, 12, DIM), draw(16, 3, 2, HEADS, 3, DIM).unbind()
    alike = defaultdict(list)
    with torch.no_grad():
        for frames in range(1, 13):
            state = core.init_state(past[0, :, :, :0])
            state = core.step(*all_seen(*past[:, :, :, :frames].unbind()), state)[1]
            alike[shapes(state)].append(state)
        pairs = [(states[0], states[-1]) for states in alike.values() if len(states) > 1]
        assert bool(pairs) == (case.config.kind not in ("combiner_fixed", "combiner_hierarchical"))
        for pair in pairs:
            together, after = core.step(*all_seen(query, key, value), side_by_side(pair))
            for index, alone in enumerate(pair):
                part = [x[index : index + 1] for x in (query, key, value)]
                expected, own = core.step(*all_seen(*part), alone)
                torch.testing.assert_close(together[index : index + 1], expected, atol=1e-9, rtol=0)
                following = core.step(*all_seen(*part), row(after, index))[0]
                torch.testing.assert_close(following, core.step(*all_seen(*part), own)[0], atol=1e-9, rtol=0)


GROWING = {"combiner_fixed": 1 / 2, "combiner_hierarchical": 0.2, "fixed": 1 / 4}
"""Numbers that a state gains with each frame, relative to its key and value: one of each block, in a Combiner with its
query, or a logarithm."""


@pytest.mark.parametrize(
    "case", [case for case in CAUSAL if CORES[case.config.kind].state], ids=lambda case: name(case.config)
)
def test_a_state_stays_as_small_as_it_promises(case: Case):
    core, sizes = build(case.config), []
    assert isinstance(core, RecurrentCore)
    state = core.init_state(draw(14, 1, HEADS, 0, DIM))
    with torch.no_grad():
        for _ in range(2):
            for part in draw(14, 8, 3, 1, HEADS, 3, DIM):
                state = core.step(*all_seen(*part.unbind()), state)[1]
            sizes.append(sum(map(prod, shapes(state))))
    gained = (sizes[1] - sizes[0]) / 24 / (2 * HEADS * DIM)
    assert gained <= GROWING.get(case.config.kind, 0.0) + 0.05


@pytest.mark.parametrize(
    "case",
    [case for case in CASES if isinstance(build(case.config), PatternAttention)],
    ids=lambda case: name(case.config),
)
def test_tiles_lose_no_pair(case: Case):
    core, frames = build(case.config), TILE_FRAMES + 9
    assert isinstance(core, PatternAttention)
    query, key, value = draw(12, 3, 1, HEADS, frames, DIM).unbind()
    at = torch.arange(frames)
    allowed = core.pattern.allowed(at[:, None], at) & ((at <= at[:, None]) | (not core.causal))
    with torch.no_grad():
        expected = attend(query, key, value, allowed, None, None)
        torch.testing.assert_close(core(*all_seen(query, key, value)), expected, atol=1e-9, rtol=0)
        if core.causal and isinstance(core, RecurrentCore):
            streamed, _ = core.step(*all_seen(query, key, value), core.init_state(query))
            torch.testing.assert_close(streamed, expected, atol=1e-9, rtol=0)


@every_combiner
def test_a_long_recording_in_tiles_of_rows_is_what_it_is_at_once(case: Case, monkeypatch: pytest.MonkeyPatch):
    core, given = build(case.config), (*draw(26, 3, 2, HEADS, FRAMES, DIM), Context(VALID))
    at_once = core(*given)
    monkeypatch.setattr(combiner_fixed, "_TILE_BLOCKS", 2)
    monkeypatch.setattr(combiner_axial, "_TILE_FRAMES", 8)
    torch.testing.assert_close(core(*given), at_once, atol=1e-12, rtol=0)


@pytest.mark.parametrize("c", [False, True])
def test_routing_with_one_cluster_that_takes_all_is_full_attention_of_normalised_frames(c: bool):
    core = build(cores.RoutingCore(clusters=1, window_frames=99, causal=c))
    query, key, value = draw(17, 3, 2, HEADS, FRAMES, DIM).unbind()
    normalised = (torch.nn.functional.layer_norm(x, (DIM,)) for x in (query, key))
    full = build_core(cores.FullCore(causal=c), HEADS, DIM)(*normalised, value, Context(VALID))
    real = VALID[:, None, :, None].expand_as(full)
    torch.testing.assert_close(core(query, key, value, Context(VALID))[real], full[real], atol=1e-9, rtol=0)


def test_reformer_with_one_bucket_is_full_attention_of_shared_queries():
    """A frame attends to itself only if it can attend to no other."""
    core = build(cores.ReformerCore(buckets=1, rounds=1, chunk_frames=99))
    query, _, value = draw(18, 3, 1, HEADS, FRAMES, DIM)
    scores = query @ torch.nn.functional.normalize(query, dim=-1).transpose(-1, -2) * DIM**-0.5
    weights = scores.masked_fill(torch.eye(FRAMES, dtype=torch.bool), -torch.inf).softmax(dim=-1)
    torch.testing.assert_close(core(*all_seen(query, query, value)), weights @ value, atol=1e-9, rtol=0)


@pytest.mark.parametrize("c", [False, True])
def test_sinkhorn_with_one_full_block_is_full_attention(c: bool):
    """A single block is sorted to its own place; frames missing from a block would count as silence."""
    query, key, value = draw(23, 3, 2, HEADS, FRAMES, DIM).unbind()
    configs = cores.SinkhornCore(block_frames=FRAMES, causal=c), cores.FullCore(causal=c)
    found, expected = (build(config)(*all_seen(query, key, value)) for config in configs)
    torch.testing.assert_close(found, expected, atol=1e-9, rtol=0)


@pytest.mark.parametrize("c", [False, True])
def test_a_mixture_of_identical_plans_is_the_plan(c: bool):
    plan = build(combiners.CombinerAxialCore(row_frames=4, pool="deepsets_mean", causal=c))
    assert isinstance(plan, CombinerAxial)
    query, key, value = draw(19, 3, 2, HEADS, FRAMES, DIM).unbind()
    with torch.no_grad():
        mixed, alone = (core(query, key, value, Context(VALID)) for core in (CombinerMixture([plan, plan]), plan))
    torch.testing.assert_close(mixed, alone, atol=1e-12, rtol=0)


def weights_of_pairs(core: Core, query: Tensor, key: Tensor) -> Tensor:
    """Return the weight of each key for each query, (T, S), by values that are one at one frame each."""
    with torch.no_grad():
        columns = []
        for j in range(key.shape[2]):
            value = torch.zeros_like(key)
            value[:, :, j] = 1.0
            columns.append(core(*all_seen(query, key, value))[0, 0, :, 0])
    return torch.stack(columns, dim=1)


@every_combiner
def test_a_combiner_attends_to_every_frame(case: Case):
    core, (query, key) = build(case.config), draw(20, 2, 1, HEADS, FRAMES, DIM)
    found = weights_of_pairs(core, query, key)
    every = torch.ones(FRAMES, FRAMES, dtype=torch.bool)
    seen = every.tril() if causal(case.config) else every
    assert (found[seen] > 0).all()
    assert (found[~seen] == 0).all()


@pytest.mark.parametrize("c", [False, True])
def test_what_a_block_hears_of_another_has_rank_one(c: bool):
    core, (query, key) = build(combiners.CombinerFixedCore(block_frames=3, causal=c)), draw(21, 2, 1, HEADS, 12, DIM)
    found = weights_of_pairs(core, query, key)
    for rows, columns in itertools.permutations(range(0, 12, 3), 2):
        part = found[rows : rows + 3, columns : columns + 3]
        assert torch.linalg.matrix_rank(part, atol=1e-9) == (1 if columns < rows or not c else 0)
    assert torch.linalg.matrix_rank(found[3:6, 3:6]) == 3


@every_case
@halves
@pytest.mark.parametrize("valid", [VALID, torch.zeros_like(VALID)], ids=["padded", "empty"])
def test_half_precision_stays_finite_and_so_do_its_gradients(case: Case, dtype: torch.dtype, valid: Tensor):
    core, given = build(case.config).to(dtype), draw(22, 3, 2, HEADS, FRAMES, DIM).to(dtype).requires_grad_()
    out = core(*given.unbind(), Context(valid))
    assert out.dtype is dtype
    assert torch.isfinite(out).all()
    assert out.abs().max() < 100
    out.sum().backward()
    for grad in (given.grad, *(parameter.grad for parameter in core.parameters())):
        assert grad is not None
        assert torch.isfinite(grad).all()


@pytest.mark.parametrize(("c", "dtype"), [(False, torch.float16), (True, torch.bfloat16)])
@pytest.mark.parametrize("kind", [cores.FavorCore, cores.RandomFeatureCore, cores.LinearCore])
def test_sums_of_an_hour_in_half_precision_still_hear_every_frame(kind, c, dtype):
    core, (query, key, value) = build(kind(causal=c)), draw(23, 3, 1, 1, 45_000, DIM).to(dtype).unbind()
    with torch.no_grad():
        exact = core(*all_seen(query.float(), key.float(), value.float() + 1))[:, :, -100:]
        found = core.to(dtype)(*all_seen(query, key, value + 1))[:, :, -100:].float()
    assert (found - exact).norm() < 0.01 * exact.norm()


@halves
@pytest.mark.parametrize("c", [False, True])
@pytest.mark.parametrize("kind", [cores.FavorCore, cores.RandomFeatureCore, cores.LinearCore])
def test_features_of_large_queries_and_keys_do_not_vanish_in_half_precision(kind, c, dtype):
    core, given = build(kind(causal=c)).to(dtype), (5 * draw(24, 3, 1, HEADS, FRAMES, DIM) - 5).to(dtype)
    with torch.no_grad():
        found, exact = core(*all_seen(*given.unbind())), core.float()(*all_seen(*given.float().unbind()))
    torch.testing.assert_close(found.float(), exact, atol=0.0, rtol=torch.finfo(dtype).eps)


def test_linformer_learns_from_the_means_of_the_parts_of_a_chunk():
    """If all chunks are full, all three projections start equal."""
    query, key, value = draw(13, 3, 1, HEADS, 12, DIM).unbind()
    configs = [cores.LinformerCore(ratio=3, projection=kind, chunk_frames=6) for kind in ("mean", "conv", "learned")]
    with torch.no_grad():
        outs = [build_core(config, HEADS, DIM).double()(*all_seen(query, key, value)) for config in configs]
    torch.testing.assert_close(outs[1], outs[0], atol=1e-6, rtol=0)
    torch.testing.assert_close(outs[2], outs[0], atol=1e-6, rtol=0)
