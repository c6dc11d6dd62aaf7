"""Where a server is asked for what is not there; and it comes to its end when all that it works on has."""

import asyncio
import contextlib
import json
import threading
from collections.abc import Awaitable, Iterator, MutableMapping
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from sortformer.annotation import Diarization
from sortformer.errors import Cancelled
from sortformer.serve import application
from tests.serve.running import Running, running

_STOPPING = 503, "10", "the server is stopping: try again later"


class Stubborn:
    """In place of a diarizer: hears that it shall end only when it is let."""

    name, presets = "stubborn", ()

    def __init__(self) -> None:
        self.begun, self.may_end = threading.Event(), threading.Event()

    def __call__(self, *_: Any, **__: Any) -> Diarization:
        self.begun.set()
        assert self.may_end.wait(60)
        raise Cancelled("cancelled")


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with running(application(Stubborn(), max_streams=1, max_upload_mb=1)) as found:  # pyright: ignore[reportArgumentType]
        yield found


def test_a_stream_that_a_proxy_has_made_a_plain_request_is_told_so(server: Running):
    answer = httpx.get(f"http://{server.address}/v1/stream", timeout=60)
    assert (answer.status_code, answer.headers["upgrade"]) == (426, "websocket")
    assert "Upgrade and Connection" in answer.json()["error"]
    assert server.state()["status"] == "ok"


@pytest.mark.parametrize("path", ["", "stream", "v1/stream/", "healthz", "v1/streams?preset=1s"])
def test_where_no_stream_is_that_is_said(server: Running, path: str, caplog: pytest.LogCaptureFixture):
    with connect(f"ws://{server.address}/{path}", open_timeout=60) as stream:
        assert [json.loads(text)["error"] for text in _until_closed(stream)] == [
            "there is no stream at this path: streams are at /v1/stream"
        ]
    assert stream.close_code == 1008
    assert not caplog.records  # visitors must not fill the log


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/", 405),
        ("GET", "/docs", 404),
        ("GET", "/redoc", 404),
        ("POST", "/v1/diarize/", 404),
        ("POST", "/api/v1/diarize", 404),
        ("GET", "/v1/diarize", 405),
    ],
)
def test_where_nothing_is_that_is_said_with_the_path(server: Running, method: str, path: str, status: int):
    answer = httpx.request(method, f"http://{server.address}{path}", timeout=60)
    assert (answer.status_code, list(answer.json())) == (status, ["error"])
    assert answer.json()["error"].startswith(f"there is no {method} {path}: the page for browsers is at /, ")


def test_the_work_on_a_recording_is_waited_for_and_who_comes_meanwhile_is_told():
    stubborn = Stubborn()
    app = application(stubborn, max_streams=1, max_upload_mb=1)  # pyright: ignore[reportArgumentType]

    async def talk() -> None:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://here") as client:
            answer = asyncio.create_task(client.post("/v1/diarize", files={"file": b"talk"}))
            await asyncio.to_thread(stubborn.begun.wait, 60)
            stopping = asyncio.create_task(app.state.stop())
            await asyncio.sleep(0.2)
            assert not stopping.done()
            assert await _error(client.get("/healthz")) == await _error(client.post("/v1/diarize")) == _STOPPING
            assert await _stream(app) == [_STOPPING[2], 1013]
            stubborn.may_end.set()
            assert await _error(answer) == _STOPPING
            await stopping

    asyncio.run(talk())


async def _error(answer: Awaitable[httpx.Response]) -> tuple[int, str, str]:
    found = await answer
    return found.status_code, found.headers["retry-after"], found.json()["error"]


async def _stream(app: FastAPI) -> list[str | int]:
    """Open a stream, and return the error and the code with which it is closed."""
    said: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "websocket.connect"}

    async def send(each: MutableMapping[str, Any]) -> None:
        said.append(dict(each))

    await app({"type": "websocket", "path": "/v1/stream", "query_string": b"", "headers": []}, receive, send)
    return [json.loads(said[1]["text"])["error"], said[2]["code"]]


def _until_closed(stream: ClientConnection) -> Iterator[str | bytes]:
    with contextlib.suppress(ConnectionClosed):
        while True:
            yield stream.recv()
