"""Sessions in several threads: a call waits for the one before, as in asyncio, where a cancelled await does not."""

import asyncio
import copy
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from sortformer.config.stream import StreamConfig
from sortformer.streaming import Session, SessionPool
from tests.streaming.tiny import noise, tiny_model

MODEL, CONFIG, WAVE = tiny_model(), StreamConfig(5, 2, max_speakers=3), noise(40_000, seed=3)


def _diarized():
    session = Session(MODEL, CONFIG)
    session.push(WAVE)
    return session.finish()


ALONE = _diarized()


@pytest.fixture
def held(monkeypatch):
    """Return a session, an event that its first step sets, and one that all steps wait for."""
    session, begun, go = Session(MODEL, CONFIG), threading.Event(), threading.Event()
    memory = type(session._memory)
    step = memory.step

    def waiting(*given):
        begun.set()
        assert go.wait(30)
        return step(*given)

    monkeypatch.setattr(memory, "step", waiting)
    return session, begun, go


def _let(go):
    """Let the steps run after a moment, in which the other thread comes as far as it can."""
    threading.Timer(0.2, go.set).start()


@pytest.mark.parametrize("push", [Session.push, lambda session, wave: SessionPool(MODEL, CONFIG).push({session: wave})])
def test_a_call_waits_for_the_one_of_another_thread(held, push):
    session, begun, go = held
    with ThreadPoolExecutor(1) as other:
        other.submit(push, session, WAVE[:20_000])
        assert begun.wait(30)
        _let(go)
        push(session, WAVE[20_000:])
    assert session.finish() == ALONE


def test_a_cancelled_task_can_finish_its_stream(held):
    session, begun, go = held

    async def bot():
        try:
            await asyncio.to_thread(session.push, WAVE)
        finally:
            _let(go)
            ended.append(session.finish())

    async def call():
        task = asyncio.create_task(bot())
        await asyncio.to_thread(begun.wait, 30)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    ended = []
    asyncio.run(call())
    assert ended == [ALONE]


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda session: pickle.loads(pickle.dumps(session))])
def test_a_copy_goes_on_by_itself(copied):
    session = Session(MODEL, CONFIG)
    session.push(WAVE[:20_000])
    other = copied(session)
    for each in (session, other):
        each.push(WAVE[20_000:])
        assert each.finish() == ALONE
