"""Streaming with a state in the layers: as the whole recording, restored, beside other rows, and bounded."""

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sortformer.config.carrying import memory_chunk_frames
from sortformer.config.postprocess import PostprocessConfig
from sortformer.config.presets import model_presets
from sortformer.config.stream import StreamConfig
from sortformer.streaming import Session, SessionPool, stream_probabilities
from sortformer.streaming.rows import shapes
from tests.strategies import spread
from tests.streaming.tiny import REMEMBERING, noise, remembering_model

MODELS = {kind: remembering_model(kind) for kind in REMEMBERING}
POSTPROCESS = PostprocessConfig(0.5, 0.4, pad_on_s=0.06, pad_off_s=0.02, min_on_s=0.1, min_off_s=0.2)
kinds = st.sampled_from(sorted(REMEMBERING))
waves = st.builds(noise, samples=spread(160, 30_000), seed=st.integers(0, 99))
few = settings(max_examples=5, deadline=None)


def _config(kind: str, chunk_frames: int) -> StreamConfig:
    """Chunks of the memories' length, or of any length where it does not matter."""
    return StreamConfig.by_memory(memory_chunk_frames(REMEMBERING[kind]) or chunk_frames)


@given(kind=kinds, wave=waves, chunk_frames=st.integers(1, 9))
@few
def test_a_stream_is_the_whole_recording(kind, wave, chunk_frames):
    with torch.no_grad():
        whole = MODELS[kind](torch.from_numpy(wave)[None]).probs[0].numpy()
    session = Session(MODELS[kind], _config(kind, chunk_frames))
    np.testing.assert_allclose(stream_probabilities(session, [wave]), whole, atol=2e-4)


@pytest.mark.parametrize("kind", sorted(REMEMBERING))
def test_every_kind_of_memory_is_restored_whatever_it_has_grown_to(kind):
    session, restored = Session(MODELS[kind], StreamConfig.by_memory(4)), []
    for part in np.split(noise(80_000), [100, 20_000, 60_000]):
        probs = session.push(part).probs
        for each in restored:
            np.testing.assert_array_equal(each.push(part).probs, probs)
        restored.append(Session.restore(MODELS[kind], session.snapshot()))
    rest = session.flush().probs
    for each in restored:
        np.testing.assert_array_equal(each.flush().probs, rest)


@given(kind=kinds, chunk_frames=st.integers(2, 9), ahead=spread(0, 40_000), seed=st.integers(0, 99))
@few
def test_sessions_of_a_pool_get_what_they_would_get_alone_wherever_they_are(kind, chunk_frames, ahead, seed):
    pool = SessionPool(MODELS[kind], StreamConfig.by_memory(chunk_frames))
    one, other = pool.open(), pool.open()
    first, second = noise(ahead + 20_000, seed), noise(20_000, seed + 1)
    found = {one: [pool.push({one: first[:ahead]})[one].probs], other: []}
    for start in range(0, 20_000, 5_000):
        blocks = {one: first[ahead + start :][:5_000], other: second[start : start + 5_000]}
        for session, update in pool.push(blocks).items():
            found[session].append(update.probs)
    for session, wave in ((one, first), (other, second)):
        alone = stream_probabilities(Session(MODELS[kind], pool.config), [wave])
        np.testing.assert_allclose(np.concatenate([*found[session], session.flush().probs]), alone, atol=2e-4)


@pytest.mark.parametrize("kind", ["xl", "compressive", "knn", "sums"])
def test_memory_does_not_grow_with_the_stream(kind):
    session = Session(MODELS[kind], StreamConfig.by_memory(4))  # a multiple of the compression's groups
    session.push(noise(60_000))
    full = shapes(session._position.memory)
    session.push(noise(60_000, seed=1))
    assert shapes(session._position.memory) == full


def test_an_idle_session_keeps_its_bits():
    pool = SessionPool(MODELS["compressive"], StreamConfig.by_memory(5))
    busy, idle = pool.open(), pool.open()
    pool.push({busy: noise(20_000), idle: noise(20_000, seed=1)})
    before = idle._position
    updates = pool.push({busy: noise(20_000, seed=2), idle: []})
    assert len(updates[idle].probs) == 0 < len(updates[busy].probs)
    assert idle._position is before


def test_slots_past_the_limit_stay_silent():
    config = dataclasses.replace(StreamConfig.by_memory(5), max_speakers=2)
    probs = stream_probabilities(Session(MODELS["sums"], config), [noise(60_000)])
    assert not probs[:, 2:].any()
    assert (probs[:, :2] > 0.5).any()


@pytest.mark.parametrize("kind", sorted(REMEMBERING))
def test_every_preset_of_such_a_model_is_its_whole_recording(kind):
    wave = noise(48_000, seed=5)
    with torch.no_grad():
        whole = MODELS[kind](torch.from_numpy(wave)[None]).probs[0].numpy()
    presets = model_presets(REMEMBERING[kind])
    assert presets
    for config in presets.values():
        np.testing.assert_allclose(stream_probabilities(Session(MODELS[kind], config), [wave]), whole, atol=2e-4)
