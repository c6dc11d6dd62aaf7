"""Where the server listens, and what runs it until its end."""

import socket
from collections.abc import Callable

import uvicorn
from fastapi import FastAPI

from sortformer.errors import InputError, refusal

__all__ = ["Server", "bound"]

_MESSAGE_BYTES = 1 << 20  # half a minute of samples at 16 kHz
# A client that answers no ping has gone; but the answer of one that sends ahead comes after what it has sent.
_PING_S, _PONG_S = 20.0, 300.0


def bound(host: str, port: int) -> socket.socket:
    """Return a socket that listens; port 0 is any that is free.

    Raises:
        InputError: when there is no such host here, or the port is taken.
    """
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind)
        try:
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


class Server(uvicorn.Server):
    """Serves an :func:`application`, by ``run(sockets=[...])``, until SIGINT, SIGTERM or ``ended``.

    What it serves comes to an end before the connections do.
    """

    def __init__(self, app: FastAPI, ended: Callable[[], bool] = lambda: False) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                log_level="warning",
                access_log=False,
                server_header=False,
                ws="websockets-sansio",
                ws_max_size=_MESSAGE_BYTES,
                ws_ping_interval=_PING_S,
                ws_ping_timeout=_PONG_S,
                ws_per_message_deflate=False,  # samples do not get smaller by it
                timeout_graceful_shutdown=1,
            )
        )
        self._stop, self._ended = app.state.stop, ended

    async def on_tick(self, counter: int) -> bool:
        """Do what uvicorn does ten times a second; return whether to close."""
        if not await super().on_tick(counter) and not self._ended():
            return False
        await self._stop()
        return True
