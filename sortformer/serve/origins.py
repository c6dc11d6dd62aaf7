"""Access control by the origin of web pages."""

import re
from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket

from sortformer.errors import InputError

__all__ = ["OwnPages", "check_origin"]

_ANY = "*"
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://([^/?#\s@A-Z]+)")


def check_origin(origin: str) -> None:
    """Refuse an origin that no browser sends (RFC 6454, section 6.2).

    Raises:
        InputError: unless it consists of scheme, host and, if not the scheme's default, port; or is ``null``, the
            origin of pages opened from disk, or ``*``.
    """
    if origin not in (_ANY, "null") and not _ORIGIN.fullmatch(origin):
        raise InputError(
            f"{origin!r} is not a valid origin: give one like http://localhost:3000, in lower case and without a path; "
            "'null', for pages opened from disk; or '*', for all"
        )


class OwnPages:
    """Middleware that answers 403 to pages of other origins than the server's own and the allowed ones.

    Browsers let any page open a WebSocket to any address that they can reach, and submit forms to it, even if the
    server listens on localhost only. They send the page's origin; clients that are not browsers send none, and are
    allowed.

    Args:
        app: the application behind it.
        allowed: origins, as for :func:`check_origin`.
    """

    def __init__(self, app: ASGIApp, allowed: Collection[str]) -> None:
        self._app, self._allowed = app, allowed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        foreign = self._foreign(Headers(scope=scope)) if scope["type"] in ("http", "websocket") else None
        if foreign is None:
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await WebSocket(scope, receive, send).close()  # before it is accepted, which is a 403; pages see no reason
        else:
            sentence = f"pages of {foreign} may not use this server: --allow-origin {foreign} allows them"
            await JSONResponse({"error": sentence}, 403)(scope, receive, send)

    def _foreign(self, headers: Headers) -> str | None:
        """Return the request's origin if it is not allowed, else None."""
        origin = headers.get("origin")
        if origin is None or _ANY in self._allowed or origin in self._allowed:
            return None
        known = _ORIGIN.fullmatch(origin)
        # The scheme is not compared: https is terminated by a proxy in front of the server.
        return None if known and known[1] == headers.get("host") else origin
