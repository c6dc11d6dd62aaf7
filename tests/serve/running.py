"""A server in a thread of the test process, and independent clients."""

import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
from fastapi import FastAPI
from websockets.sync.client import ClientConnection, connect

from sortformer.serve import Server, bound

__all__ = ["Running", "message", "news", "running", "sent"]

START, END = json.dumps({"type": "start"}), json.dumps({"type": "end"})


class Running:
    """Where a server listens, and the server itself."""

    def __init__(self, port: int, serving: Server) -> None:
        self.address = f"127.0.0.1:{port}"
        self.serving = serving

    def state(self) -> dict[str, Any]:
        """Return the server's state."""
        return httpx.get(f"http://{self.address}/healthz", timeout=60).json()

    def post(self, name: str = "meeting.wav", content: Any = b"", **options: Any) -> httpx.Response:
        """Send a recording."""
        url = f"http://{self.address}/v1/diarize"
        words, clips = options.pop("words", None), options.pop("enroll", [])  # files' names and contents
        files = [("file", (name, content)), *(("enroll", clip) for clip in clips)]
        files += [] if words is None else [("words", words)]
        return httpx.post(url, files=files, data=options, timeout=120)

    def stream(self, **options: Any) -> ClientConnection:
        """Open a stream."""
        asked = "&".join(f"{name}={value}" for name, value in options.items())
        return connect(f"ws://{self.address}/v1/stream?{asked}", ping_interval=None, open_timeout=60)


@contextlib.contextmanager
def running(app: FastAPI, listener: socket.socket | None = None) -> Iterator[Running]:
    """Serve an application until the end of the block, on any free port unless a bound socket is given."""
    with listener or bound("127.0.0.1", 0) as listener:
        serving = Server(app)
        thread = threading.Thread(target=serving.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield Running(listener.getsockname()[1], serving)
        finally:
            serving.should_exit = True
            thread.join(60)
            assert not thread.is_alive()


def message(wave: np.ndarray) -> bytes:
    """Encode a wave (N,) in the server's default format."""
    return (wave * 32_768).clip(-32_768, 32_767).astype("<i2").tobytes()


def sent(stream: ClientConnection, content: bytes, cut: int) -> list[dict[str, Any]]:
    """Send everything in messages of ``cut`` bytes, then the end; return all responses."""

    def send() -> None:
        for start in range(0, len(content), cut):
            stream.send(content[start : start + cut])
        stream.send(END)

    sending = threading.Thread(target=send)
    sending.start()
    said = [json.loads(text) for text in stream]
    sending.join()
    return said


def news(said: dict[str, Any]) -> tuple[Any, ...]:
    """Return an update without the confidence of its turns, which depends on rounding."""
    found = ([(turn["start"], turn["end"], turn["speaker"]) for turn in said[kind]] for kind in ("final", "tentative"))
    return said["type"], said["time_s"], *found, said["speaking"]
