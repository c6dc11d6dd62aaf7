"""Which pages in browsers may use the server."""

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
    """Refuse what browsers never send as the origin of a page (RFC 6454, section 6.2).

    Raises:
        InputError: unless it is a scheme, a host and, but for the scheme's own, a port; ``null``, as pages that were
            opened from the disk have it; or ``*``.
    """
    if origin not in (_ANY, "null") and not _ORIGIN.fullmatch(origin):
        raise InputError(
            f"{origin!r} is no origin of pages: it is as in http://localhost:3000, in lower case and without a path; "
            "'null', for pages opened from the disk; or '*', for all"
        )


class OwnPages:
    """Answers 403 to pages of other origins than the server's own, but for those that are let in.

    Browsers let any page open a WebSocket to any address that they reach, and send forms there: also to a server that
    listens to its own machine only. They say whose page it was; what is no page says nothing, and is let in.

    Args:
        app: what answers all the others.
        allowed: origins, as :func:`check_origin` has them.
    """

    def __init__(self, app: ASGIApp, allowed: Collection[str]) -> None:
        self._app, self._allowed = app, allowed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        foreign = self._foreign(Headers(scope=scope)) if scope["type"] in ("http", "websocket") else None
        if foreign is None:
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await WebSocket(scope, receive, send).close()  # before it was accepted: a 403, of which pages see no more
        else:
            sentence = f"pages of {foreign} may not use this server: --allow-origin {foreign} lets them"
            await JSONResponse({"error": sentence}, 403)(scope, receive, send)

    def _foreign(self, headers: Headers) -> str | None:
        """The origin of the page that asks, if there is one and it may not."""
        origin = headers.get("origin")
        if origin is None or _ANY in self._allowed or origin in self._allowed:
            return None
        known = _ORIGIN.fullmatch(origin)
        # Not the scheme: whoever serves this by https does so in front of it.
        return None if known and known[1] == headers.get("host") else origin
