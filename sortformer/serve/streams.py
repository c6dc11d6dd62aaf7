"""``/v1/stream``: samples in, turns out, by WebSocket."""

import asyncio
import contextlib
import json
import math

from fastapi import WebSocket, WebSocketDisconnect
from starlette.types import Message

from sortformer.config.presets import nearest_preset
from sortformer.diarizer import LIVE_S, Diarizer
from sortformer.errors import InputError, SortformerError, counted
from sortformer.serve.batch import Batch
from sortformer.serve.options import given_once
from sortformer.serve.samples import Samples
from sortformer.streaming.messages import done_message, update_message

__all__ = ["Streams"]

_END = {"type": "end"}
_OPTIONS = ("preset", "rate", "encoding", "uri")
# Codes with which a connection is closed (RFC 6455 and IANA's registry), and the most bytes of a reason.
_DONE, _STOPPING, _WRONG, _FAILED, _LATER = 1000, 1001, 1008, 1011, 1013
_REASON_BYTES = 123
_PATIENCE_S = 5.0  # of a server that stops, with what its clients have sent already; they may send faster than it works


class Streams:
    """All live streams, ``most`` at once; those of one preset advance together."""

    def __init__(self, diarizer: Diarizer, most: int) -> None:
        self.diarizer = diarizer
        self.most = most
        self.open = 0
        self._batches: dict[str, Batch] = {}
        self._stopping = asyncio.Event()
        self._until = math.inf

    async def answer(self, websocket: WebSocket) -> None:
        """Hear one client until it ends or goes away, and tell it what is new."""
        await websocket.accept()
        if self.open >= self.most:
            await _refuse(websocket, _LATER, f"all {counted(self.most, 'stream')} are taken: try again later")
            return
        self.open += 1
        try:
            await self._hear(websocket)
        except WebSocketDisconnect:
            pass
        except SortformerError as error:
            await _refuse(websocket, _WRONG, str(error))
        except Exception:
            await _refuse(websocket, _FAILED, "the server could not go on with this stream: see what it says itself")
            raise
        finally:
            self.open -= 1

    def stop(self) -> None:
        """End all streams as if their clients had: after what has been sent, or the first seconds of it."""
        self._until = asyncio.get_running_loop().time() + _PATIENCE_S
        self._stopping.set()

    async def _hear(self, websocket: WebSocket) -> None:
        asked = given_once(websocket.query_params.multi_items())
        if unknown := [name for name in asked if name not in _OPTIONS]:
            raise InputError(f"a stream has no option {unknown[0]!r}; known: {', '.join(_OPTIONS)}")
        samples = Samples(**{name: asked[name] for name in ("encoding", "rate") if name in asked})
        batch = self._batch(asked.get("preset"))
        session = batch.pool.open(asked.get("uri") or "audio")
        ended = False
        while not ended:
            message = await self._next(websocket)
            if message["type"] == "websocket.disconnect":
                return
            ended = _ends(message)
            samples.add(message.get("bytes") or b"", last=ended)
            while len(samples) >= (chunk := session.missing_samples):
                update = await batch.push(session, samples.take(chunk))
                await websocket.send_json(update_message(session, update))
            await asyncio.sleep(0)  # who sends thousands of messages at once shall not stop the others
        update, result, warnings = await batch.end(session, samples.take(len(samples)))
        last = done_message(session, update, result)
        last["result"]["warnings"] = warnings
        await websocket.send_json(last)
        await websocket.close(_STOPPING if self._stopping.is_set() else _DONE)

    async def _next(self, websocket: WebSocket) -> Message:
        """The client's next message, or the last one where the server stops."""
        coming, stopping = asyncio.ensure_future(websocket.receive()), asyncio.ensure_future(self._stopping.wait())
        await asyncio.wait({coming, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if coming.done() and asyncio.get_running_loop().time() < self._until:
            return coming.result()
        coming.cancel()
        return {"type": "websocket.receive", "text": json.dumps(_END)}

    def _batch(self, preset: str | None) -> Batch:
        """The batch of a preset; None: of that which live streams have where they ask for none."""
        name = preset or nearest_preset(self.diarizer.model.config, LIVE_S)
        if name not in self._batches:
            self._batches[name] = Batch(self.diarizer.pool(name))
        return self._batches[name]


def _ends(message: Message) -> bool:
    """Whether a message is the one that ends a stream; the others hold samples."""
    if (text := message.get("text")) is None:
        return False
    with contextlib.suppress(ValueError, RecursionError):
        if json.loads(text) == _END:
            return True
    raise InputError('a stream takes samples, as binary messages, and the text {"type": "end"}, got another text')


async def _refuse(websocket: WebSocket, code: int, sentence: str) -> None:
    with contextlib.suppress(WebSocketDisconnect, RuntimeError):  # nobody is there any more
        await websocket.send_json({"type": "error", "error": sentence})
        await websocket.close(code, sentence.encode()[:_REASON_BYTES].decode(errors="ignore"))
