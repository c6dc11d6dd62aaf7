"""A server that is stopped gives its streams the result of what they have heard."""

import asyncio
import json
import threading
from itertools import chain, repeat
from typing import Any

import pytest

from sortformer.serve import app, application, streams
from sortformer.serve.refusals import STOPPING
from sortformer.streaming import Session, Update
from tests.marks import MAXIMUM_MAY_BE_REACHED
from tests.processes import eventually
from tests.serve.running import message, running
from tests.serve.streamed import DIARIZER, MOST, WAVES, enrolling, expected, refused

pytestmark = MAXIMUM_MAY_BE_REACHED


def test_a_server_that_is_stopped_gives_all_that_was_heard():
    with running(application(DIARIZER, max_streams=MOST, max_upload_mb=1)) as server, server.stream() as stream:
        session = DIARIZER.stream()
        wave = WAVES[0][: session.missing_samples + session.config.chunk_frames * 1_280]  # ends with a chunk
        stream.send(message(wave))
        wanted = expected(wave, None)
        said = [json.loads(stream.recv(timeout=60)) for _ in wanted[:-1]]
        server.serving.should_exit = True
        said += map(json.loads, stream)
    assert said == wanted
    assert stream.close_code == 1001


def test_a_server_that_is_stopped_does_not_wait_for_who_sends_faster_than_it_works(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(streams, "_PATIENCE_S", 0.2)
    app = application(DIARIZER, max_streams=MOST, max_upload_mb=1)
    coming = chain([{"type": "websocket.connect"}], repeat({"type": "websocket.receive", "bytes": message(WAVES[0])}))
    said, tasks = list[dict[str, Any]](), list[asyncio.Task[None]]()

    async def receive() -> dict[str, Any]:
        return next(coming)

    async def send(each: Any) -> None:
        said.append(each)
        if len(said) == 2:  # the stream was accepted, and has sent an update
            tasks.append(asyncio.create_task(app.state.stop()))

    async def talk() -> None:
        async with asyncio.timeout(30):
            scope = {"type": "websocket", "path": "/v1/stream", "query_string": b"", "headers": []}
            await app(scope, receive, send)
            await tasks[0]

    asyncio.run(talk())
    assert json.loads(said[-2]["text"])["type"] == "done"
    assert said[-1]["code"] == 1001


def test_a_stream_that_cannot_end_in_time_is_told_so(monkeypatch: pytest.MonkeyPatch, capfd):
    go = threading.Event()
    flush = Session.flush

    def slow(session: Session) -> Update:
        assert go.wait(60)
        return flush(session)

    monkeypatch.setattr(app, "_GRACE_S", 0.2)
    monkeypatch.setattr(Session, "flush", slow)
    with running(application(DIARIZER, max_streams=MOST, max_upload_mb=1)) as server, server.stream() as stream:
        stream.send(bytes(3_200))
        eventually(lambda: server.state()["streams"] == 1)
        server.serving.should_exit = True
        assert refused(stream) == (STOPPING, 1013)
        go.set()
    assert capfd.readouterr().err == ""


def test_a_client_that_reads_nothing_does_not_hold_a_server_that_is_stopped(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(app, "_GRACE_S", 0.2)
    service = application(DIARIZER, max_streams=MOST, max_upload_mb=1)
    coming = iter([{"type": "websocket.connect"}, {"type": "websocket.receive", "bytes": message(WAVES[0])}])
    sending, never = asyncio.Event(), asyncio.Event()

    async def receive() -> dict[str, Any]:
        return next(coming, None) or {"ever": await never.wait()}

    async def send(each: Any) -> None:
        if each["type"] == "websocket.send":
            sending.set()
            await never.wait()

    async def talk() -> None:
        async with asyncio.timeout(30):
            scope = {"type": "websocket", "path": "/v1/stream", "query_string": b"", "headers": []}
            stream = asyncio.create_task(service(scope, receive, send))
            await sending.wait()
            await service.state.stop()
            assert stream.done()
            await stream

    asyncio.run(talk())


def test_a_server_that_is_stopped_enrolls_nobody_by_a_part_of_a_clip():
    with running(application(DIARIZER, max_streams=MOST, max_upload_mb=1)) as server, server.stream() as stream:
        stream.send(enrolling("Ada"))
        stream.send(bytes(3_200))
        eventually(lambda: server.state()["streams"] == 1)
        server.serving.should_exit = True
        (said,) = map(json.loads, stream)
    assert (said["type"], said["result"]["duration"], stream.close_code) == ("done", 0, 1001)


def test_a_server_that_is_stopped_accepts_no_more_streams():
    app, said = application(DIARIZER, max_streams=MOST, max_upload_mb=1), list[Any]()

    async def receive() -> dict[str, Any]:
        return {"type": "websocket.connect"}

    async def send(each: Any) -> None:
        said.append(each)

    async def come() -> None:
        await app.state.stop()
        await app({"type": "websocket", "path": "/v1/stream", "query_string": b"", "headers": []}, receive, send)

    asyncio.run(come())
    assert json.loads(said[-2]["text"]) == {"type": "error", "error": STOPPING}
    assert said[-1]["code"] == 1013
