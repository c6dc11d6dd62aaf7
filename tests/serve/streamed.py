"""A diarizer for the server's streams, what they have to answer, and clients who leave or are refused."""

import json
import socket
from typing import Any

import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection

from sortformer.annotation import Diarization
from sortformer.config.postprocess import PostprocessConfig
from sortformer.diarizer import Diarizer
from sortformer.formats.json import turns
from sortformer.streaming import Session, Update
from sortformer.warned import warned
from tests.serve.running import message
from tests.streaming.tiny import noise, tiny_model

__all__ = ["DIARIZER", "MOST", "WAVES", "enrolling", "expected", "refused", "vanish"]

DIARIZER = Diarizer(tiny_model(gain=5.0), PostprocessConfig(), "tiny")
MOST = 3
WAVES = [np.frombuffer(message(noise(count, seed=count)), "<i2") / 32_768 for count in (75_003, 60_000)]


def expected(wave: np.ndarray, preset: str | None, uri: str = "audio") -> list[dict[str, Any]]:
    """Return the results of a session with 10 ms at a time."""
    session = DIARIZER.stream(preset, uri=uri)
    updates = [session.push(wave[start : start + 160]) for start in range(0, len(wave), 160)]
    said = [_said("update", session, update) for update in updates if len(update.probs)]
    last = _said("done", session, session.flush()) | {"speaking": []}
    with warned(shown=False) as warnings:
        result = session.finish()
    return [*said, last | {"result": json.loads(result.warned(warnings).to_json())}]


def _said(kind: str, session: Session, update: Update) -> dict[str, Any]:
    final, tentative = (
        turns(Diarization(found, session.duration_s, session.uri)) for found in (update.turns, update.tentative)
    )
    time_s, speaking = round(update.time_s, 3), list(update.speaking)
    return {"type": kind, "time_s": time_s, "final": final, "tentative": tentative, "speaking": speaking}


def refused(stream: ClientConnection) -> tuple[str, int]:
    """Return the message and the code with which a stream is closed."""
    said = json.loads(stream.recv(timeout=60))
    assert set(said) == {"type", "error"}
    with pytest.raises(ConnectionClosed) as closed:
        stream.recv(timeout=60)
    assert closed.value.rcvd is not None
    assert said["error"].startswith(closed.value.rcvd.reason)
    return said["error"], closed.value.rcvd.code


def vanish(stream: ClientConnection) -> None:
    """Drop a connection without closing it."""
    stream.socket.shutdown(socket.SHUT_RDWR)


def enrolling(name: Any) -> str:
    return json.dumps({"type": "enroll", "name": name})
