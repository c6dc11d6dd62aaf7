"""A server that was ended can be started again at once, and a client that is gone does not keep its place."""

import socket
import struct
import sys

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
