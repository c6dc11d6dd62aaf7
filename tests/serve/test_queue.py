"""Recordings are worked on one at a time; nothing is done for who goes away, or when the server is stopped."""

import asyncio
import os
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import numpy as np
import pytest
from fastapi import HTTPException, Request

from sortformer.annotation import Diarization, Turn
from sortformer.errors import Cancelled
from sortformer.serve import application, recordings
from tests.processes import eventually
from tests.serve.running import Running, running


class Slow:
    """A substitute for a diarizer that works until it is told to succeed or fail."""

    name, presets = "slow", ()

    def __init__(self) -> None:
        self.begun = self.cancelled = 0
        self.end = threading.Event()
        self.error: Exception | None = None

    def __call__(self, audio: Any, *, progress: Any, **_: Any) -> Diarization:
        self.begun += 1
        while not self.end.wait(0.01):
            if progress("model", 0, None) is False:
                self.cancelled += 1
                raise Cancelled("cancelled")
        if self.error is not None:
            raise self.error
        return Diarization((Turn(0, 1, "a"),), 2, str(len(audio.read())))


@pytest.fixture
def slow() -> Slow:
    return Slow()


@pytest.fixture
def busy(slow: Slow) -> Iterator[Running]:
    with running(application(slow, max_streams=1, max_upload_mb=4)) as found:  # pyright: ignore[reportArgumentType]
        yield found


def test_one_is_worked_on_at_a_time_others_wait_and_too_many_are_turned_away(slow: Slow, busy: Running):
    with ThreadPoolExecutor(8) as clients:
        answers = [clients.submit(busy.post, content=bytes(count)) for count in range(8)]
        eventually(lambda: busy.state()["recordings"] == 8 and slow.begun == 1)
        late = busy.post(content=b"late")
        assert (late.status_code, late.headers["Retry-After"]) == (503, "10")
        assert late.json() == {"error": "the limit of 8 recordings at once is reached: try again later"}
        slow.end.set()
        assert sorted(answer.result().json()["uri"] for answer in answers) == list("01234567")
    assert busy.state()["recordings"] == 0


def begin(server: Running, missing: int = 0) -> socket.socket:
    """Send an upload, except its last bytes, over a connection that can be cut."""
    head = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n'
    body = head + bytes(3 << 20) + b"\r\n--x--\r\n"
    host, port = server.address.split(":")
    found = socket.create_connection((host, int(port)))
    lines = f"Host: {host}\r\nContent-Type: multipart/form-data; boundary=x\r\nContent-Length: {len(body)}\r\n\r\n"
    found.sendall(b"POST /v1/diarize HTTP/1.1\r\n" + lines.encode() + body[: len(body) - missing])
    return found


def held(folder: Path) -> list[str]:
    """Return the files of a folder that this process has open, including deleted ones."""
    found = []
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            found.append(os.readlink(descriptor))
        except FileNotFoundError:
            continue
    return [name for name in found if name.startswith(str(folder))]


@pytest.mark.skipif(sys.platform != "linux", reason="/proc says which files are open")
def test_who_goes_away_is_not_worked_for_and_leaves_no_file(
    slow: Slow, busy: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    worked_on = begin(busy)
    eventually(lambda: slow.begun == 1)
    waiting, sending = begin(busy), begin(busy, missing=1_000)
    eventually(lambda: busy.state()["recordings"] == 3 and len(held(tmp_path)) == 3)
    assert not list(tmp_path.iterdir())  # a killed server would not leave one either
    for count, gone in ((2, waiting), (1, sending), (0, worked_on)):
        gone.close()
        eventually(lambda count=count: busy.state()["recordings"] == count == len(held(tmp_path)))
    assert (slow.begun, slow.cancelled) == (1, 1)
    assert not caplog.records


def test_who_goes_away_while_clips_are_read_leaves_the_queue(
    slow: Slow, busy: Running, monkeypatch: pytest.MonkeyPatch
):
    read, told = list[str](), threading.Event()

    class Stop(threading.Event):
        def set(self) -> None:
            super().set()
            told.set()

    def reading(name: str, *_: object, **__: object) -> np.ndarray:
        read.append(name)
        told.wait(60)
        return np.zeros(16_000, np.float32)

    monkeypatch.setattr(recordings, "threading", SimpleNamespace(Event=Stop))
    monkeypatch.setattr(recordings, "read_clip", reading)
    clips = [("enroll", (f"{name}.wav", b"clip")) for name in ("Ada", "Bob")]
    request = httpx.Request("POST", f"http://{busy.address}", files=[("file", ("a.wav", b"talk")), *clips])
    head = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
    with socket.create_connection((request.url.host, request.url.port)) as client:
        client.sendall(f"POST /v1/diarize HTTP/1.1\r\n{head}\r\n".encode() + request.read())
        eventually(lambda: read == ["Ada"])
    eventually(lambda: busy.state()["recordings"] == 0)
    assert (read, slow.begun) == (["Ada"], 0)


def test_what_is_queued_does_not_begin_when_a_server_is_stopped(slow: Slow, monkeypatch: pytest.MonkeyPatch):
    class Delaying(threading.Event):
        """Setting it gives the worker time to take the next recording."""

        def set(self) -> None:
            super().set()
            time.sleep(0.2)

    monkeypatch.setattr(recordings, "threading", SimpleNamespace(Event=Delaying))
    app = application(slow, max_streams=1, max_upload_mb=4)  # pyright: ignore[reportArgumentType]
    with running(app) as server, ThreadPoolExecutor(6) as clients:
        answers = [clients.submit(server.post) for _ in range(6)]
        eventually(lambda: server.state()["recordings"] == 6 and slow.begun == 1)
        server.serving.should_exit = True
        assert [answer.result().status_code for answer in answers] == [503] * 6
    assert slow.begun == 1


def test_who_comes_when_a_server_is_stopped_is_turned_away(slow: Slow):
    found = recordings.Recordings(slow, 2 << 20)  # pyright: ignore[reportArgumentType]
    found.stop()
    with pytest.raises(HTTPException, match="503: the server is stopping: try again later"):
        asyncio.run(found.answer(Request({"type": "http"})))


def test_a_server_that_is_stopped_answers_all_who_wait(slow: Slow, caplog: pytest.LogCaptureFixture, capfd):
    app = application(slow, max_streams=1, max_upload_mb=4)  # pyright: ignore[reportArgumentType]
    with running(app) as server, ThreadPoolExecutor(2) as clients:
        answers = [clients.submit(server.post) for _ in range(2)]
        unfinished = begin(server, missing=1_000)
        eventually(lambda: server.state()["recordings"] == 3 and slow.begun == 1)
        server.serving.should_exit = True
        assert [answer.result().status_code for answer in answers] == [503, 503]
        assert b" 503 " in unfinished.recv(1_000)
        unfinished.close()
    assert (slow.begun, slow.cancelled) == (1, 1)
    assert not caplog.records
    assert capfd.readouterr().err == ""


def test_who_stops_in_the_middle_of_an_upload_is_not_waited_for(busy: Running, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sortformer.serve.recordings._SILENCE_S", 0.2)
    with begin(busy, missing=1_000) as unfinished:
        assert b" 408 " in unfinished.recv(1_000)
    assert busy.state()["recordings"] == 0


def test_what_is_not_foreseen_is_told_without_the_server_s_affairs(slow: Slow, busy: Running):
    slow.error = RuntimeError("/secret/place")
    slow.end.set()
    answer = busy.post()
    assert answer.status_code == 500
    assert "RuntimeError" in answer.json()["error"]
    assert "secret" not in answer.text
    assert busy.state()["status"] == "ok"
