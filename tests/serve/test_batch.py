"""Chunks of many clients are batched in one step, and a bad one does not affect the others."""

import asyncio
import threading
import time

import numpy as np
import pytest

from sortformer.errors import InputError
from sortformer.serve.batch import Batch
from sortformer.streaming import Session, SessionPool
from tests.marks import MAXIMUM_MAY_BE_REACHED
from tests.streaming.tiny import CONFIG, noise, tiny_model

pytestmark = MAXIMUM_MAY_BE_REACHED

MODEL = tiny_model(gain=5.0)
WAVE = noise(30_000)


def test_what_comes_while_a_step_is_computed_makes_the_next_one(monkeypatch: pytest.MonkeyPatch):
    pool, go_on, steps, push = SessionPool(MODEL, CONFIG), threading.Event(), [], SessionPool.push
    monkeypatch.setattr(
        SessionPool, "push", lambda self, blocks: (go_on.wait(60), steps.append(len(blocks)), push(self, blocks))[2]
    )

    async def calls() -> None:
        batch, sessions = Batch(pool), [pool.open() for _ in range(5)]
        first = asyncio.ensure_future(batch.push(sessions[0], WAVE))
        await asyncio.sleep(0.05)
        rest = []
        for session in sessions[1:]:
            rest.append(asyncio.ensure_future(batch.push(session, WAVE)))
            await asyncio.sleep(0.02)
        rest[0].cancel()  # its client has disconnected: the others are not affected
        assert not first.done()
        go_on.set()
        updates = await asyncio.gather(first, *rest[1:])
        assert len({len(update.probs) for update in updates}) == 1
        await batch.push(sessions[0], WAVE)

    asyncio.run(calls())
    assert steps == [1, 4, 1]


def test_chunks_do_not_wait_for_a_clip(monkeypatch: pytest.MonkeyPatch):
    go_on = threading.Event()
    monkeypatch.setattr(Session, "enroll", lambda *_: go_on.wait(60))

    async def calls() -> None:
        batch = Batch(SessionPool(MODEL, CONFIG))
        known = asyncio.ensure_future(batch.enroll(batch.pool.open(), "Ada", WAVE))
        await asyncio.wait_for(batch.push(batch.pool.open(), WAVE), 30)
        assert not known.done()
        go_on.set()
        await known

    asyncio.run(calls())


def test_clips_have_one_thread_and_steps_another(monkeypatch: pytest.MonkeyPatch):
    """More threads would take the cores from the live audio; one for both would stop it."""
    threads = dict[str, list[int]](enroll=[], push=[], finish=[])

    def noted(name: str, *_: object) -> None:
        threads[name].append(threading.get_ident())
        time.sleep(0.02)  # so that the calls overlap

    monkeypatch.setattr(Session, "enroll", lambda *_: noted("enroll"))
    monkeypatch.setattr(SessionPool, "push", lambda _, blocks: noted("push") or dict.fromkeys(blocks))
    monkeypatch.setattr(Session, "push", lambda *_: None)
    monkeypatch.setattr(Session, "flush", lambda *_: None)
    monkeypatch.setattr(Session, "finish", lambda *_: noted("finish"))

    async def calls() -> None:
        batch = Batch(SessionPool(MODEL, CONFIG))
        sessions = [batch.pool.open() for _ in range(3)]
        clips = [batch.enroll(each, "Ada", WAVE) for each in sessions]
        await asyncio.gather(*clips, *(batch.push(each, WAVE) for each in sessions))
        await asyncio.gather(*(batch.end(each, WAVE) for each in sessions))

    asyncio.run(calls())
    ((clip,), (step,)) = set(threads["enroll"]), {*threads["push"], *threads["finish"]}
    assert clip != step
    assert threading.get_ident() not in (clip, step)
    assert len(threads["enroll"]) == len(threads["finish"]) == 3


def test_a_block_that_is_refused_hurts_nobody_else():
    pool, alone = SessionPool(MODEL, CONFIG), Session(MODEL, CONFIG)

    async def calls() -> None:
        batch, (good, bad, late) = Batch(pool), (pool.open() for _ in range(3))
        late.finish()
        blocks = [(good, WAVE), (bad, np.full(10, np.nan, np.float32)), (late, WAVE)]
        said = await asyncio.gather(*(batch.push(*each) for each in blocks), return_exceptions=True)
        assert [type(each) for each in said[1:]] == [InputError, InputError]
        assert "NaN" in str(said[1])
        assert "has ended" in str(said[2])
        np.testing.assert_array_equal(said[0].probs, alone.push(WAVE).probs)  # pyright: ignore
        update, result = await batch.end(good, WAVE[:100])
        alone.push(WAVE[:100])
        np.testing.assert_array_equal(update.probs, alone.flush().probs)
        assert result == alone.finish()

    asyncio.run(calls())
