"""Many sessions in one batch: each gives the same result as alone."""

import dataclasses

import numpy as np
import pytest
import torch

from sortformer.annotation import Origin
from sortformer.config.clustering import ClusteringConfig
from sortformer.config.stream import StreamConfig
from sortformer.errors import InputError
from sortformer.streaming import Session, SessionPool, stream_probabilities
from tests.marks import MAXIMUM_MAY_BE_REACHED
from tests.streaming.tiny import CONFIG, noise, remembering_model, tiny_model

pytestmark = MAXIMUM_MAY_BE_REACHED

MODEL = tiny_model(gain=5.0)
WAVES = [noise(count, seed=count) for count in (60_000, 25_000, 47_111)]


def _alone(wave, config=CONFIG):
    session = Session(MODEL, config)
    return stream_probabilities(session, [wave]), session.finish()


@pytest.mark.parametrize("clustering", [None, ClusteringConfig(0.4)])
def test_rows_that_come_and_go_get_what_they_would_get_alone(clustering):
    config = dataclasses.replace(CONFIG, clustering=clustering)
    pool = SessionPool(MODEL, config)
    sessions, found, begin = [], [], [0, 9_000, 21_000]  # when each begins, in samples
    for now in range(0, 70_000, 3_000):
        while len(sessions) < len(WAVES) and begin[len(sessions)] <= now:
            sessions.append(pool.open())
            found.append([])
        places = [now - first for first in begin]
        blocks = {
            session: wave[max(0, place) : place + 3_000]
            for session, wave, place in zip(sessions, WAVES, places, strict=False)
            if place < len(wave)
        }
        for session, update in pool.push(blocks).items():
            found[sessions.index(session)].append(update.probs)
    for session, parts, wave in zip(sessions, found, WAVES, strict=True):
        probs, diarization = _alone(wave, config)
        np.testing.assert_allclose(np.concatenate([*parts, session.flush().probs]), probs, atol=1e-5)
        assert [(turn.start, turn.end, turn.speaker) for turn in session.finish()] == [
            (turn.start, turn.end, turn.speaker) for turn in diarization
        ]


def test_a_pool_of_one_is_a_session_to_the_bit():
    pool = SessionPool(MODEL, CONFIG)
    session = pool.open()
    probs = [pool.push({session: part})[session].probs for part in np.array_split(WAVES[0], 7)]
    np.testing.assert_array_equal(np.concatenate([*probs, session.flush().probs]), _alone(WAVES[0])[0])


def test_an_idle_row_keeps_its_bits():
    pool = SessionPool(MODEL, CONFIG)
    busy, idle = pool.open(), pool.open()
    pool.push({busy: WAVES[0][:20_000], idle: WAVES[1][:20_000]})
    before = idle._position.memory
    updates = pool.push({busy: WAVES[0][20_000:], idle: []})
    assert len(updates[idle].probs) == 0 < len(updates[busy].probs)
    after = idle._position.memory
    torch.testing.assert_close(dataclasses.asdict(after), dataclasses.asdict(before), rtol=0, atol=0)


def test_a_row_keeps_nothing_of_the_others_alive():
    pool = SessionPool(MODEL, CONFIG)
    sessions = [pool.open() for _ in range(3)]
    pool.push(dict.fromkeys(sessions, WAVES[0]))
    memory = sessions[0]._position.memory
    assert memory.cache.emb.untyped_storage().nbytes() == memory.cache.emb.numel() * 4


def test_a_block_that_is_refused_is_named_and_can_be_left_out():
    pool = SessionPool(MODEL, CONFIG)
    one, other, gone = (pool.open(uri) for uri in ("one", "other", "gone"))
    gone.finish()
    for bad, block, reason in (
        (other, np.full(10, np.nan), r"pushed to other at 0\.00 s is .*NaN"),
        (gone, [], "has ended"),
    ):
        with pytest.raises(InputError, match=reason):
            pool.push({one: WAVES[0], bad: block})
        assert (one.duration_s, other.duration_s) == (0.0, 0.0)
    probs = [pool.push({one: WAVES[0]})[one].probs, one.flush().probs]
    np.testing.assert_array_equal(np.concatenate(probs), _alone(WAVES[0])[0])


def test_a_session_of_another_configuration_is_refused():
    pool = SessionPool(MODEL, CONFIG)
    for stranger in (Session(MODEL, StreamConfig(5)), Session(tiny_model(), CONFIG)):
        with pytest.raises(InputError, match="its own model and configuration"):
            pool.push({stranger: WAVES[0]})
    for no_mapping in ([WAVES[0]], {"its name": WAVES[0]}, None):
        with pytest.raises(InputError, match="a mapping of its sessions to their blocks"):
            pool.push(no_mapping)  # pyright: ignore[reportArgumentType]


def test_a_restored_session_goes_on_in_the_pool():
    pool = SessionPool(MODEL, CONFIG)
    session = pool.open()
    early = pool.push({session: WAVES[0][:20_000]})[session].probs
    restored = Session.restore(MODEL, session.snapshot())
    late = pool.push({restored: WAVES[0][20_000:]})[restored].probs
    np.testing.assert_array_equal(np.concatenate([early, late, restored.flush().probs]), _alone(WAVES[0])[0])


def test_results_say_what_made_them_also_after_a_restart():
    session = SessionPool(MODEL, CONFIG, origin=Origin("tiny", "1.0", {"preset": "1s"})).open()
    session.push(WAVES[0])
    for each in (session, Session.restore(MODEL, session.snapshot())):
        origin = each.finish().origin
        assert origin is not None
        assert (origin.model, origin.version, origin.settings) == ("tiny", "1.0", {"preset": "1s"})


def test_memories_of_different_lengths_are_no_obstacle():
    pool = SessionPool(remembering_model("xl"), StreamConfig.by_memory(5))
    ahead, late = pool.open(), pool.open()
    pool.push({ahead: WAVES[0][:10_000]})
    found = pool.push({ahead: WAVES[0][10_000:20_000], late: WAVES[1][:10_000]})[late].probs
    alone = Session(pool.model, pool.config).push(WAVES[1][:10_000]).probs
    assert len(alone) == 5
    np.testing.assert_allclose(found, alone, atol=1e-5)
