"""``sortformer serve``: a server of recordings by HTTP and live streams by WebSocket."""

from typing import Annotated

import typer

from sortformer.cli.interrupt import interrupts
from sortformer.cli.options import Device, Model
from sortformer.extras import require_extra

__all__ = ["serve"]


def serve(
    host: Annotated[
        str, typer.Option(help="Address to listen on. There is no authentication: anyone who reaches it may use it.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0: any free one.")] = 8000,
    model: Model = None,
    device: Device = "auto",
    max_streams: Annotated[int, typer.Option(min=1, help="Maximum number of simultaneous live streams.")] = 16,
    max_upload_mb: Annotated[int, typer.Option(min=1, metavar="MIB", help="Maximum size of a request.")] = 500,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(metavar="ORIGIN", help="Also allow browser pages of this origin; repeatable."),
    ] = None,
) -> None:
    """Run a server that diarizes recordings and live streams.

    A page for browsers at /, POST /v1/diarize, WebSocket /v1/stream, GET /healthz: see docs/serving.md. Ctrl-C or
    SIGTERM stops it.
    """
    require_extra("a server", "serve", "fastapi", "uvicorn", "websockets", "python_multipart")
    with interrupts() as interrupt:
        from sortformer.diarizer import Diarizer
        from sortformer.serve import Server, application, bound

        with bound(host, port) as listener:
            app = application(
                Diarizer.load(model, device),
                max_streams=max_streams,
                max_upload_mb=max_upload_mb,
                allowed_origins=allow_origin or (),
            )
            shown = f"[{host}]" if ":" in host else host
            typer.echo(f"listening on http://{shown}:{listener.getsockname()[1]}")
            interrupt.hold(True)
            Server(app, lambda: interrupt.pressed).run(sockets=[listener])
