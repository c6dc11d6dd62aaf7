"""A server that was ended can be started again at once, and clients who are gone or too many do no harm."""

import contextlib
import errno
import socket
import struct
import sys
from typing import Any

import pytest

from sortformer.config.postprocess import PostprocessConfig
from sortformer.diarizer import Diarizer
from sortformer.errors import InputError
from sortformer.serve import application, bound, listening, streams
from tests.processes import eventually
from tests.serve.running import running
from tests.streaming.tiny import tiny_model

HANDSHAKE = (
    b"GET /v1/stream HTTP/1.1\r\nHost: here\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)


def test_a_port_is_free_again_once_its_server_has_ended():
    with bound("127.0.0.1", 0) as listener:
        address = listener.getsockname()
        with socket.create_connection(address) as client:
            listener.accept()[0].close()  # whoever ends a connection first is where it lingers
            assert client.recv(1) == b""
    with bound(*address) as again:
        assert again.getsockname() == address


@pytest.mark.parametrize(("platform", "reused"), [("linux", True), ("darwin", True), ("win32", False)])
def test_a_port_is_not_shared_with_a_second_server(platform: str, reused: bool, monkeypatch: pytest.MonkeyPatch):
    """On Windows, the option that frees a port at once would let two servers listen on it."""
    monkeypatch.setattr(sys, "platform", platform)
    with bound("127.0.0.1", 0) as listener:
        assert bool(listener.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR)) == reused
        with pytest.raises(InputError, match="Address already in use"):
            bound(*listener.getsockname())


def test_who_answers_no_ping_is_told_so_by_a_code_and_leaves_the_place(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(listening, "_PING_S", 0.1)
    monkeypatch.setattr(listening, "_PONG_S", 0.2)
    app = application(Diarizer(tiny_model(), PostprocessConfig(), "tiny"), max_streams=1, max_upload_mb=1)
    with running(app) as server, socket.socket() as client:
        client.settimeout(60)
        host, port = server.address.split(":")
        client.connect((host, int(port)))
        client.sendall(HANDSHAKE)
        said = b"".join(iter(lambda: client.recv(1_000), b""))
        assert (1011).to_bytes(2, "big") + b"keepalive ping timeout" in said
        eventually(lambda: server.state()["streams"] == 0)


def test_who_reads_nothing_leaves_the_place(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(listening, "_PING_S", 0.1)
    monkeypatch.setattr(listening, "_PONG_S", 1.0)
    monkeypatch.setattr(streams, "update_message", lambda *_: "a" * (1 << 24))  # more than a connection holds
    app = application(Diarizer(tiny_model(), PostprocessConfig(), "tiny"), max_streams=1, max_upload_mb=1)
    with running(app) as server, socket.socket() as client:
        host, port = server.address.split(":")
        client.connect((host, int(port)))
        client.sendall(HANDSHAKE)
        client.recv(1_000)
        samples = bytes(100_000)
        client.sendall(b"\x82\xff" + struct.pack(">Q", len(samples)) + bytes(4) + samples)  # a masked binary message
        eventually(lambda: server.state()["streams"] == 0)


class Exhausted(socket.socket):
    """A listening socket of a process that may open no more files, until it is told otherwise."""

    refused, full = 0, True

    def accept(self) -> Any:
        if self.full:
            self.refused += 1
            raise OSError(errno.EMFILE, "Too many open files")
        return super().accept()


def test_at_the_limit_of_open_files_clients_wait_and_errors_are_few():
    app = application(Diarizer(tiny_model(), PostprocessConfig(), "tiny"), max_streams=1, max_upload_mb=1)
    listener = Exhausted()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    with running(app, listener) as server, contextlib.ExitStack() as waiting:
        eventually(lambda: server.serving.started)
        for _ in range(20):
            waiting.enter_context(socket.create_connection(listener.getsockname(), timeout=10))
        eventually(lambda: listener.refused > 0)
        listener.full = False
        assert server.state()["status"] == "ok"
    assert listener.refused < 20
