"""The listening socket, and the server process until its shutdown."""

import socket
import sys
from collections.abc import Callable

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from sortformer.errors import InputError, refusal

__all__ = ["Server", "bound"]

_MESSAGE_BYTES = 1 << 20  # half a minute of samples at 16 kHz
# A client that does not answer pings is gone; but the pong of one that sends ahead comes after all its samples.
_PING_S, _PONG_S = 20.0, 300.0


def bound(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 is any free one.

    Raises:
        InputError: when the host is not one of this machine, or the port is taken.
    """
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind)
        try:
            if sys.platform != "win32":  # there it would allow a second server on the same port
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen()
        except OSError:
            listener.close()
            raise
    except OSError as error:
        raise InputError(
            f"the server cannot listen on {host}, port {port} ({refusal(error)}): choose others (--host, --port)"
        ) from error
    return listener


class _WebSocket(WebSocketsSansIOProtocol):
    """uvicorn's, which would wait without end for a client that reads nothing to read what was sent before."""

    def keepalive_timeout(self) -> None:
        super().keepalive_timeout()
        if self.transport.get_write_buffer_size():
            self.transport.abort()


class Server(uvicorn.Server):
    """A server of an :func:`application`, run by ``run(sockets=[...])`` until SIGINT, SIGTERM or ``ended``.

    On shutdown, requests and streams end before their connections are closed.
    """

    def __init__(self, app: FastAPI, ended: Callable[[], bool] = lambda: False) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                log_level="warning",
                access_log=False,
                server_header=False,
                ws=_WebSocket,
                ws_max_size=_MESSAGE_BYTES,
                ws_ping_interval=_PING_S,
                ws_ping_timeout=_PONG_S,
                ws_per_message_deflate=False,  # audio samples hardly compress
                timeout_graceful_shutdown=1,
                # At the limit of open files, asyncio logs so many errors at once, and as many again for each of them.
                backlog=1,
            )
        )
        self._stop, self._ended = app.state.stop, ended

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept clients; as many as a :func:`bound` socket holds may wait for that."""
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen()

    async def on_tick(self, counter: int) -> bool:
        """Run uvicorn's periodic check (ten times a second); return whether to shut down."""
        if not await super().on_tick(counter) and not self._ended():
            return False
        await self._stop()
        return True
