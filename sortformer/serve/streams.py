"""``/v1/stream``: samples in, turns out, by WebSocket."""

import asyncio
import contextlib
import json
import math
from collections.abc import Callable
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

from fastapi import WebSocket, WebSocketDisconnect

from sortformer.audio.samples import Samples
from sortformer.config.stream import StreamConfig
from sortformer.diarizer import Diarizer
from sortformer.errors import InputError, SortformerError, counted
from sortformer.formats.names import check_person
from sortformer.serve.batch import Batch
from sortformer.serve.refusals import STOPPING, check_clip, given_once
from sortformer.streaming import Session, SessionPool
from sortformer.streaming.messages import done_message, update_message

__all__ = ["WRONG", "Streams", "refuse"]

_START, _END = {"type": "start"}, {"type": "end"}
_ANOTHER = (
    'a stream accepts samples, as binary messages, and the text {"type": "end"}, or, before its samples, "enroll" and '
    '"start"; got another text'
)
_OPTIONS = ("preset", "max_speakers", "rate", "encoding", "uri")
# Close codes of WebSocket (RFC 6455 and IANA's registry), and the most bytes of a reason.
_DONE, _STOPPING, WRONG, _FAILED, _LATER = 1000, 1001, 1008, 1011, 1013
_REASON_BYTES = 123
_PATIENCE_S = 5.0  # on shutdown, for what clients have sent already, which may be a lot
_NOTICE_S = 0.5  # then, for a client to be told that it gets no result


class Streams:
    """All live streams, at most ``most`` at once; those of one preset and ``max_speakers`` form a batch."""

    def __init__(self, diarizer: Diarizer, most: int) -> None:
        self.diarizer = diarizer
        self.most = most
        self._tasks = set[asyncio.Task[Any]]()
        # Each only while it has streams: it has threads, and clients may ask for more than a hundred configurations.
        self._batches = WeakValueDictionary[StreamConfig, Batch]()
        self._stopping = asyncio.Event()
        self._until = math.inf

    @property
    def open(self) -> int:
        """Number of open streams."""
        return len(self._tasks)

    async def answer(self, websocket: WebSocket) -> None:
        """Serve one client until its stream ends or it disconnects."""
        await websocket.accept()
        if self._stopping.is_set():
            await refuse(websocket, _LATER, STOPPING)
            return
        if self.open >= self.most:
            await refuse(websocket, _LATER, f"all {counted(self.most, 'stream')} are in use: try again later")
            return
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._hear(websocket)
        except WebSocketDisconnect:
            pass
        except asyncio.CancelledError:
            if not self._stopping.is_set():
                raise
            task.uncancel()  # else, in early versions of Python 3.11, a timeout ends as this cancellation
            with contextlib.suppress(TimeoutError):  # the client may not read
                async with asyncio.timeout(_NOTICE_S):
                    await refuse(websocket, _LATER, STOPPING)
        except SortformerError as error:
            await refuse(websocket, WRONG, str(error))
        except Exception:
            await refuse(
                websocket, _FAILED, "unexpected error in this stream: see the server's own output for the details"
            )
            raise
        finally:
            self._tasks.discard(task)

    def stop(self) -> None:
        """End all streams as if by their clients, after processing what they have sent, for a few seconds at most."""
        self._until = asyncio.get_running_loop().time() + _PATIENCE_S
        self._stopping.set()

    async def cancel(self) -> None:
        """End all streams without their results, and tell their clients."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=2 * _NOTICE_S)

    async def _hear(self, websocket: WebSocket) -> None:
        asked = given_once(websocket.query_params.multi_items())
        if unknown := [name for name in asked if name not in _OPTIONS]:
            raise InputError(f"a stream has no option {unknown[0]!r}; known: {', '.join(_OPTIONS)}")
        sound = partial(Samples, **{name: asked[name] for name in ("encoding", "rate") if name in asked})
        samples = sound()
        pool = self._pool(asked.get("preset"), asked.get("max_speakers"))
        batch, session = self._batches.setdefault(pool.config, Batch(pool)), pool.open(asked.get("uri") or "audio")
        message, ended = await self._enrolled(websocket, batch, session, sound), False
        while not ended:
            if not (isinstance(message, bytes) or message == _END):
                raise InputError(_ANOTHER)
            ended = message == _END
            samples.add(b"" if ended else message, last=ended)
            while len(samples) >= (chunk := session.missing_samples):
                update = await batch.push(session, samples.take(chunk))
                await websocket.send_json(update_message(session, update))
            message = message if ended else await self._next(websocket)
        last = await batch.end(session, samples.take(len(samples)))
        await websocket.send_json(done_message(session, *last))
        await websocket.close(_STOPPING if self._stopping.is_set() else _DONE)

    async def _enrolled(
        self, websocket: WebSocket, batch: Batch, session: Session, sound: Callable[[], Samples]
    ) -> bytes | Any:
        """Enroll the voices that are sent before the audio, and return the first message after them."""
        message = await self._next(websocket)
        while (name := _person(message)) is not None:
            clip = sound()
            while isinstance(message := await self._next(websocket), bytes):
                clip.add(message)
                check_clip(name, len(clip))
            if self._stopping.is_set():
                return _END
            if message == _END:
                raise InputError(
                    f'send {{"type": "start"}} after the clip of {name!r}, before the samples of the stream'
                )
            clip.add(b"", last=True)
            warnings = await batch.enroll(session, name, clip.take(len(clip)))
            await websocket.send_json({"type": "enrolled", "name": name, "warnings": warnings})
        return await self._next(websocket) if message == _START else message

    async def _next(self, websocket: WebSocket) -> bytes | Any:
        """Return the client's next message, samples or parsed JSON; or the end if the server is stopping.

        Waiting on a task lets other clients run, even if thousands of messages have already arrived.

        Raises:
            WebSocketDisconnect: when the client has disconnected.
            InputError: when a text is not JSON.
        """
        coming, stopping = asyncio.ensure_future(websocket.receive()), asyncio.ensure_future(self._stopping.wait())
        await asyncio.wait({coming, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if not coming.done() or asyncio.get_running_loop().time() >= self._until:
            coming.cancel()
            return _END
        message = coming.result()
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(message["code"])
        if (text := message.get("text")) is None:
            return message.get("bytes") or b""
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise InputError(_ANOTHER) from None

    def _pool(self, preset: str | None, most: str | None) -> SessionPool:
        """Return the pool that opens streams of a preset, with so many speakers at most; None: the defaults."""
        number: Any = most
        with contextlib.suppress(TypeError, ValueError):  # the diarizer refuses invalid numbers
            number = int(number)
        return self.diarizer.pool(preset or None, max_speakers=number)


def _person(message: bytes | Any) -> str | None:
    """Return the name whose enrolment clip follows, or None if the message is another one."""
    if not (isinstance(message, dict) and message.get("type") == "enroll"):
        return None
    name = message.get("name")
    if not isinstance(name, str):
        raise InputError('enrolment needs a name, as in {"type": "enroll", "name": "Ada"}')
    check_person(name)
    return name


async def refuse(websocket: WebSocket, code: int, sentence: str) -> None:
    """Send an error to a client, and close its connection."""
    with contextlib.suppress(WebSocketDisconnect, RuntimeError):  # already disconnected
        await websocket.send_json({"type": "error", "error": sentence})
        await websocket.close(code, sentence.encode()[:_REASON_BYTES].decode(errors="ignore"))
