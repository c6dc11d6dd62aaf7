"""``/v1/diarize``: diarization of a recording by HTTP."""

import asyncio
import contextlib
import json
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from fastapi import HTTPException, Request, Response
from starlette.datastructures import FormData
from starlette.formparsers import MultiPartException
from starlette.types import Message, Receive

from sortformer.annotation import Diarization
from sortformer.diarizer import Diarizer
from sortformer.enrolled import read_clip
from sortformer.errors import Cancelled, InputError
from sortformer.formats.kinds import FORMATS
from sortformer.heard import report
from sortformer.serve.form import MOST_FILES, NO_FILE, Asked, WholeForm, asked
from sortformer.serve.refusals import LONGEST_CLIP_S, STOPPING, check_clip, later, too_large
from sortformer.warned import warned
from sortformer.words import Word, assign_speakers

__all__ = ["RESPONSES", "Recordings"]

_MOST = 8  # requests at once: uploading, queued or being processed
_SILENCE_S = 60.0  # timeout of an upload without new data
_NO_BOUNDARY = "the form's Content-Type has no boundary: leave that header to the HTTP client, which adds one"

_WARNED = {"X-Warnings": {"description": "Warnings, as JSON.", "schema": {"type": "string"}}}
_RETRY = {"Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer"}}}
_ERROR = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}
RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Who spoke when, in the requested format.",
        "content": {each.media: {} for each in FORMATS.values()},
        "headers": _WARNED,
    },
    **{
        status: {"description": reason, "content": {"application/json": {"schema": _ERROR}}, "headers": headers}
        for status, reason, headers in (
            (400, "The file is not audio, or an option is invalid.", {}),
            (403, "Browser pages of this origin are not allowed.", {}),
            (408, "The upload stalled.", {}),
            (413, "The upload is too large.", {}),
            (500, "Unexpected error.", {}),
            (503, "Too many recordings at once, or no space for them, or the server is stopping.", _RETRY),
        )
    },
}
"""The responses, for OpenAPI."""


class Recordings:
    """Requests, processed one at a time in a worker thread, because torch uses all cores for one already."""

    def __init__(self, diarizer: Diarizer, most_bytes: int) -> None:
        self.diarizer = diarizer
        self.most_bytes = most_bytes
        self._tasks = set[asyncio.Task[Any] | None]()
        self.stopping = False
        self._worker = ThreadPoolExecutor(1)

    @property
    def here(self) -> int:
        """Number of requests being uploaded, queued or processed."""
        return len(self._tasks)

    async def answer(self, request: Request) -> Response:
        """Receive an upload, wait in the queue, and return the response with who spoke when.

        Raises:
            HTTPException: when there are too many requests, the upload is too large, stalls or cannot be parsed or
                stored, or the server is stopping.
            InputError: when it is not a form, or its options or audio cannot be used.
            ConfigError: when there is no such preset.
            Cancelled: when the client has disconnected.
            ClientDisconnect: when it did so before the upload was complete.
        """
        if self.stopping:
            raise later(STOPPING)
        if self.here >= _MOST:
            raise later(f"the limit of {_MOST} recordings at once is reached: try again later")
        if request.query_params:
            raise InputError("options must be form fields, like the file, not query parameters")
        kind = request.headers.get("content-type", "").lower()
        if not kind.startswith("multipart/form-data"):
            raise InputError(NO_FILE)
        if "boundary=" not in kind:
            raise InputError(_NO_BOUNDARY)
        self._tasks.add(task := asyncio.current_task())
        try:
            async with self._form(request) as form:
                return await self._heard(request, await asked(form))
        except asyncio.CancelledError:
            raise later(STOPPING) from None
        finally:
            self._tasks.discard(task)

    def stop(self) -> None:
        """Cancel all requests."""
        self.stopping = True  # before the worker is free, or it would begin the next in the queue
        for task in self._tasks:
            assert task is not None
            task.cancel()

    async def _heard(self, request: Request, wish: Asked) -> Response:
        """Diarize a recording, and attribute its words, if any, unless the client disconnects."""
        stop = threading.Event()
        kind, wanted = wish.options.response_format, wish.options.model_dump(exclude={"response_format"})

        def going_on(*_: Any) -> bool:
            return not stop.is_set()

        def hear() -> Response:
            if self.stopping:
                raise Cancelled(STOPPING)
            with warned(shown=False) as warnings:
                voices = dict[str, np.ndarray]()
                for name, clip in wish.clips.items():
                    report(going_on, "read", 0.0, None)  # ends the work if nobody waits for it any more
                    voices[name] = read_clip(name, clip, longest_s=LONGEST_CLIP_S)
                    check_clip(name, len(voices[name]))
                result = self.diarizer(wish.recording, enroll=voices, progress=going_on, **wanted)
                words = None if wish.words is None else assign_speakers(wish.words, result)
            return _written(result.warned(warnings), words, kind)

        work = self._worker.submit(hear)
        done, gone = asyncio.wrap_future(work), asyncio.ensure_future(request.receive())  # only a disconnect can follow
        try:
            await asyncio.wait({done, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
            if not work.cancel():
                stop.set()
            # The upload must stay open until the worker is done.
            (result,) = await asyncio.gather(done, return_exceptions=True)
        if isinstance(result, asyncio.CancelledError):
            raise Cancelled("the client has disconnected")
        if isinstance(result, BaseException):
            raise result
        return result

    @contextlib.asynccontextmanager
    async def _form(self, request: Request) -> AsyncIterator[FormData]:
        """Parse an upload; its files are closed at the end."""
        limits = {"max_files": MOST_FILES, "max_fields": 20, "max_part_size": self.most_bytes}
        try:
            async with contextlib.aclosing(Request(request.scope, self._bounded(request)).stream()) as stream:
                form = await WholeForm(request.headers, stream, **limits).parse()
        except MultiPartException as error:
            raise InputError(error.message) from error
        except UnicodeError as error:  # of codecs such as "punycode"; Starlette handles others
            raise InputError("the form cannot be decoded with the charset that it names: leave that out") from error
        except OSError as error:  # of its temporary files
            reason = error.strerror or error
            sentence = f"the server cannot store the upload ({reason}): try again later, or ask who runs it"
            raise later(sentence) from error
        try:
            yield form
        finally:
            await form.close()

    def _bounded(self, request: Request) -> Receive:
        """Return a receiver of the upload that enforces its greatest size and a timeout."""
        length = request.headers.get("content-length", "")
        left = self.most_bytes
        if length.isdecimal() and int(length) > left:
            raise too_large(self.most_bytes)

        async def receive() -> Message:
            nonlocal left
            try:
                async with asyncio.timeout(_SILENCE_S):
                    message = await request.receive()
            except TimeoutError:
                raise HTTPException(408, f"the upload stalled: no data for {_SILENCE_S:g} s") from None
            left -= len(message.get("body", b""))
            if left < 0:
                raise too_large(self.most_bytes)
            return message

        return receive


def _written(result: Diarization, words: list[Word] | None, kind: str) -> Response:
    """Return the response; warnings are in a header, as JSON, and also in a JSON result."""
    warnings = result.origin and result.origin.warnings
    headers = {"X-Warnings": json.dumps(warnings)} if warnings else None
    return Response(FORMATS[kind].text(result, words), media_type=FORMATS[kind].media, headers=headers)
