"""Label memory: equal to a loop, its limit cases, and independent rows."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sortformer.config.labels import LabelConfig
from sortformer.errors import ConfigError
from sortformer.memory import LabelMemory, interpolate
from tests.draws import draw
from tests.oracles.label_loops import label_shares

DIM, LABELS = 5, 3

configs = st.builds(
    LabelConfig,
    neighbours=st.integers(1, 12),
    temperature=st.floats(0.1, 5.0),
    stranger=st.one_of(st.just(math.inf), st.floats(0.1, 4.0)),
)
seeds = st.integers(0, 2**20)


def filled(config: LabelConfig, seed: int = 0, counts: tuple[int, ...] = (4, 2, 3)) -> LabelMemory:
    memory = LabelMemory(config)
    for label, count in enumerate(counts):
        memory = memory.add(draw(seed + 1 + label, count, DIM), label)
    return memory


@given(config=configs, seed=seeds)
def test_it_reads_what_the_loop_reads(config: LabelConfig, seed: int):
    memory, frames = filled(config, seed), draw(seed + 9, 4, DIM)
    stored = [(key.numpy(), int(label)) for key, label in zip(memory.key, memory.label, strict=True)]
    expected = [
        label_shares(stored, frame, LABELS, config.neighbours, config.temperature, config.stranger)
        for frame in frames.numpy()
    ]
    np.testing.assert_allclose(memory.read(frames, LABELS).numpy(), expected, atol=1e-9)


@given(config=configs, seed=seeds, scale=st.floats(0.01, 100.0))
def test_shares_are_probabilities_and_loudness_is_nothing(config: LabelConfig, seed: int, scale: float):
    memory, frames = filled(config, seed), draw(seed + 9, 6, DIM)
    found = memory.read(frames, LABELS)
    assert (found >= 0).all()
    assert (found.sum(dim=1) <= 1 + 1e-9).all()
    if config.stranger == math.inf:
        torch.testing.assert_close(found.sum(dim=1), torch.ones(6, dtype=torch.float64))
    torch.testing.assert_close(memory.read(scale * frames, LABELS), found)


@given(config=configs, seed=seeds, order=st.permutations(range(9)))
def test_the_order_of_what_is_stored_is_nothing_and_names_only_permute(config, seed, order):
    memory, frames = filled(config, seed), draw(seed + 9, 4, DIM)
    shuffled = LabelMemory(config, (memory.key[list(order)],), (memory.label[list(order)],))
    torch.testing.assert_close(shuffled.read(frames, LABELS), memory.read(frames, LABELS))
    swapped = replace(memory, labels=tuple((label + 1) % LABELS for label in memory.labels))
    torch.testing.assert_close(swapped.read(frames, LABELS), memory.read(frames, LABELS).roll(1, dims=1))


def test_what_is_stored_is_not_copied_to_add_to_it_and_does_not_change():
    memory = filled(LabelConfig())
    before = memory.key.clone()
    more = memory.add(draw(7, 2, DIM), 1)
    assert all(kept is old for kept, old in zip(more.keys[:-1], memory.keys, strict=True))
    assert torch.equal(memory.key, before)
    assert (len(memory.label), more.label.tolist()) == (9, [*memory.label.tolist(), 1, 1])


def test_what_is_stored_keeps_nothing_of_the_model_that_made_it():
    assert not LabelMemory().add(draw(0, 2, DIM).requires_grad_(), 0).key.requires_grad


def test_frames_do_not_know_each_other_however_many_there_are():
    memory = filled(LabelConfig(neighbours=3))
    frames = draw(7, 2_100, DIM)  # more than a tile
    found = memory.read(frames, LABELS)
    for row in (0, 1_023, 1_024, 2_099):
        torch.testing.assert_close(found[row : row + 1], memory.read(frames[row : row + 1], LABELS))


def test_all_neighbours_at_a_great_temperature_are_the_frequencies_of_labels():
    memory = filled(LabelConfig(neighbours=100, temperature=1e9, stranger=math.inf))
    expected = torch.tensor([[4 / 9, 2 / 9, 3 / 9]] * 5, dtype=torch.float64)
    torch.testing.assert_close(memory.read(draw(7, 5, DIM), LABELS), expected, atol=1e-8, rtol=0)


def test_a_small_temperature_leaves_the_nearest():
    memory, frames = filled(LabelConfig(neighbours=9, temperature=1e-6, stranger=math.inf)), draw(7, 5, DIM)
    unit = frames / frames.norm(dim=1, keepdim=True)
    nearest = memory.label[(unit[:, None] - memory.key).square().sum(dim=2).argmin(dim=1)]
    torch.testing.assert_close(memory.read(frames, LABELS), torch.eye(LABELS, dtype=torch.float64)[nearest])


def test_one_voice_is_everybody_unless_there_are_strangers():
    frames = draw(7, 5, DIM)
    trusting = filled(LabelConfig(stranger=math.inf), counts=(4,))
    torch.testing.assert_close(trusting.read(frames, 1), torch.ones(5, 1, dtype=torch.float64))
    one = LabelMemory(LabelConfig(temperature=0.5, stranger=2.0)).add(torch.eye(DIM, dtype=torch.float64)[:1], 0)
    at_right_angle = torch.eye(DIM, dtype=torch.float64)[1:2]  # the distance is 2
    assert one.read(at_right_angle, 1).item() == pytest.approx(0.5)
    assert one.read(one.key, 1).item() == pytest.approx(1 / (1 + math.exp(-4)))
    assert one.read(-one.key, 1).item() == pytest.approx(1 / (1 + math.exp(4)))


def test_who_stored_nothing_knows_nobody():
    assert LabelMemory().read(torch.randn(3, DIM, generator=torch.Generator()), 2).tolist() == [[0.0, 0.0]] * 3


@given(seed=seeds, lam=st.floats(0, 1))
def test_interpolation_lies_between_and_ends_at_both(seed: int, lam: float):
    one, other = draw(seed, 4).sigmoid(), draw(seed + 1, 4).sigmoid()
    mixed = interpolate(one, other, lam)
    assert (mixed >= torch.minimum(one, other) - 1e-12).all()
    assert (mixed <= torch.maximum(one, other) + 1e-12).all()
    assert torch.equal(interpolate(one, other, 0.0), other)
    assert torch.equal(interpolate(one, other, 1.0), one)


@pytest.mark.parametrize(
    "wrong", [{"neighbours": 0}, {"temperature": 0.0}, {"temperature": math.inf}, {"stranger": 0.0}]
)
def test_a_config_that_cannot_be_is_refused(wrong):
    with pytest.raises(ConfigError, match=r"neighbour|temperature|stranger"):
        LabelConfig(**wrong)


def test_it_reads_under_autocast_in_the_type_of_its_frames():
    frames = torch.randn(9, 4, generator=torch.Generator().manual_seed(0))
    memory = LabelMemory().add(frames[:5], 0).add(frames[5:], 1)
    with torch.autocast("cpu", torch.bfloat16):
        found = memory.read(frames, 2)
    torch.testing.assert_close(found, memory.read(frames, 2), atol=0.1, rtol=0.0)
