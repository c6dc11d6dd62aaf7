"""A server comes to its end when all that it works on has."""

import asyncio
import threading
from typing import Any

import httpx

from sortformer.annotation import Diarization
from sortformer.errors import Cancelled
from sortformer.serve import application


class Stubborn:
    """In place of a diarizer: hears that it shall end only when it is let."""

    name, presets = "stubborn", ()

    def __init__(self) -> None:
        self.begun, self.may_end = threading.Event(), threading.Event()

    def __call__(self, *_: Any, **__: Any) -> Diarization:
        self.begun.set()
        assert self.may_end.wait(60)
        raise Cancelled("cancelled")


def test_the_work_on_a_recording_is_waited_for():
    stubborn = Stubborn()
    app = application(stubborn, max_streams=1, max_upload_mb=1)  # pyright: ignore[reportArgumentType]

    async def talk() -> None:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://here") as client:
            answer = asyncio.create_task(client.post("/v1/diarize", files={"file": b"talk"}))
            await asyncio.to_thread(stubborn.begun.wait, 60)
            stopping = asyncio.create_task(app.state.stop())
            await asyncio.sleep(0.2)
            assert not stopping.done()
            stubborn.may_end.set()
            assert (await answer).status_code == 503
            await stopping

    asyncio.run(talk())
