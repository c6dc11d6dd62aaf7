"""The ASGI application: routes, error handlers and middleware."""

import asyncio
import contextlib
from collections.abc import Collection
from typing import Any

from fastapi import FastAPI, Request, Response, WebSocket
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

import sortformer
from sortformer.diarizer import Diarizer
from sortformer.errors import Cancelled, SortformerError
from sortformer.serve.form import REQUEST_BODY
from sortformer.serve.origins import OwnPages, check_origin
from sortformer.serve.recordings import RESPONSES, Recordings
from sortformer.serve.refusals import STOPPING, later
from sortformer.serve.streams import WRONG, Streams, refuse
from sortformer.serve.upload import page

__all__ = ["application"]

_CLIENT_GONE = 499  # nginx's code for a client that has disconnected, so that nobody reads the response
_GRACE_S = 10.0  # for streams to send their last turns, and for the work on a recording to stop
_UPGRADE = (
    "this is the address of a WebSocket, and the request is not one: open it with ws://, and let a proxy in between "
    "pass on the headers Upgrade and Connection"
)


class Health(BaseModel):
    """Version, model and current load of the server."""

    status: str
    version: str
    model: str
    presets: list[str]
    streams: int
    recordings: int


def application(
    diarizer: Diarizer, *, max_streams: int, max_upload_mb: int, allowed_origins: Collection[str] = ()
) -> FastAPI:
    """Return a diarizer's server as an ASGI application; ``await state.stop()`` ends its requests and streams.

    Args:
        diarizer: may be used elsewhere at the same time.
        max_streams: the greatest number of concurrent live streams.
        max_upload_mb: the greatest size of a request, in MiB.
        allowed_origins: origins of web pages that may use it, beside its own: ``http://localhost:3000``, or ``*``.

    Raises:
        InputError: when one of these is not an origin.
    """
    for origin in allowed_origins:
        check_origin(origin)
    recordings, streams = Recordings(diarizer, max_upload_mb << 20), Streams(diarizer, max_streams)

    async def stop() -> None:
        recordings.stop()
        streams.stop()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_GRACE_S):
                while recordings.here or streams.open:
                    await asyncio.sleep(0.05)
        await streams.cancel()

    # FastAPI's documentation pages would load scripts from other hosts; /openapi.json stays. Redirections from paths
    # with a slash at the end would lack the prefix that a proxy has removed.
    app = FastAPI(
        title="sortformer", version=sortformer.__version__, docs_url=None, redoc_url=None, redirect_slashes=False
    )
    app.state.stop = stop
    app.add_middleware(
        CORSMiddleware,
        allow_origins=allowed_origins,
        allow_methods=["GET", "POST"],
        allow_headers=["*"],  # such as those of a proxy that authenticates, or of a page's library for uploads
        expose_headers=["X-Warnings", "Retry-After"],
    )
    app.add_middleware(OwnPages, allowed=allowed_origins)
    app.add_exception_handler(SortformerError, lambda _, error: _sentence(400, str(error)))
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(Exception, _failed)
    for end in (Cancelled, ClientDisconnect):
        app.add_exception_handler(end, lambda *_: Response(status_code=_CLIENT_GONE))

    @app.head("/", include_in_schema=False)  # HTTP requires HEAD wherever there is GET
    @app.get("/", include_in_schema=False)
    async def upload() -> Response:
        return page(recordings.most_bytes)

    @app.post("/v1/diarize", openapi_extra={"requestBody": REQUEST_BODY}, responses=RESPONSES, response_class=Response)
    async def diarize(request: Request) -> Response:
        """Find who speaks when in a recording."""
        return await recordings.answer(request)

    @app.websocket("/v1/stream")
    async def stream(websocket: WebSocket) -> None:
        await streams.answer(websocket)

    @app.get("/v1/stream", include_in_schema=False)
    async def no_stream() -> Response:
        return _sentence(426, _UPGRADE, {"Upgrade": "websocket", "Connection": "Upgrade"})

    # A rejected handshake would be 403, as for a page that is not allowed, and pages cannot read its body.
    @app.websocket("/{path:path}")
    async def no_path(websocket: WebSocket) -> None:
        await websocket.accept()
        await refuse(websocket, WRONG, "there is no stream at this path: streams are at /v1/stream")

    @app.head("/healthz", include_in_schema=False)
    @app.get("/healthz", responses={503: {"description": "The server is stopping."}})
    async def healthz() -> Health:
        """Return the version, model and current load of the server."""
        if recordings.stopping:
            raise later(STOPPING)
        return Health(
            status="ok",
            version=sortformer.__version__,
            model=diarizer.name,
            presets=list(diarizer.presets),
            streams=streams.open,
            recordings=recordings.here,
        )

    return app


def _sentence(status: int, sentence: str, headers: Any = None) -> Response:
    return JSONResponse({"error": sentence}, status, headers)


def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    sentence = error.detail
    if error.status_code in (404, 405):  # the path as it arrives here: proxies may change it
        sentence = (
            f"there is no {request.method} {request.url.path}: the page for browsers is at /, recordings are for POST "
            "/v1/diarize, streams for the WebSocket /v1/stream, and GET /healthz tells the server's state"
        )
    return _sentence(error.status_code, sentence, error.headers)


def _failed(request: Request, error: Exception) -> Response:
    # Starlette calls this outside CORSMiddleware. Pages that are not allowed have been refused before.
    origin = request.headers.get("origin")
    readable = origin and {"Access-Control-Allow-Origin": origin, "Vary": "Origin"}
    sentence = f"unexpected error in the server ({type(error).__name__}): see its own output for the details"
    return _sentence(500, sentence, readable)
