"""``/v1/diarize``: a recording in, its turns out, by HTTP."""

import asyncio
import json
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

from fastapi import HTTPException, Request, Response
from pydantic import BaseModel, ValidationError
from starlette.datastructures import UploadFile
from starlette.types import Message, Receive

from sortformer.annotation import Diarization
from sortformer.config.channel import Channel
from sortformer.diarizer import Diarizer
from sortformer.errors import Cancelled, InputError
from sortformer.formats import transcript
from sortformer.formats.json import document
from sortformer.formats.kinds import FORMATS, WORDY
from sortformer.formats.names import without_white_space
from sortformer.formats.source import decoded
from sortformer.serve.options import given_once
from sortformer.serve.warned import warned
from sortformer.words import Word, assign_speakers, check_words

__all__ = ["REQUEST_BODY", "RESPONSES", "Recordings"]

_MOST = 8  # that are sent, wait or are worked on at once
_RETRY_S = 10
_SILENCE_S = 60.0  # after which nobody waits for the rest of an upload
_NO_FILE = "there is no recording: send it as the file of a form (curl -F file=@talk.wav)"


class _Options(BaseModel, extra="forbid"):
    """What may be sent beside the file: arguments of a call of the ``Diarizer``, and the format of the answer."""

    num_speakers: int | None = None
    min_speakers: int | None = None
    max_speakers: int | None = None
    exclusive: bool = False
    channel: Channel | None = None
    preset: str | None = None
    response_format: Literal["json", "rttm", "txt", "html", "seglst", "textgrid", "audacity", "srt", "vtt"] = "json"


_SCHEMA = _Options.model_json_schema()
_FORM = _SCHEMA | {
    "properties": {
        "file": {"type": "string", "format": "binary", "description": "The recording."},
        "words": {
            "type": "string",
            "format": "binary",
            "description": "Its transcript: JSON, as text or as a file, or a file that ends in .ctm, .srt or .vtt.",
        },
        **_SCHEMA["properties"],
    },
    "required": ["file"],
}
REQUEST_BODY = {"required": True, "content": {"multipart/form-data": {"schema": _FORM}}}
"""What a request has to hold, for OpenAPI."""

_ERROR = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}
RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Who spoke when, in the format that was asked for.",
        "content": {each.media: {} for each in FORMATS.values()},
    },
    **{
        status: {"description": reason, "content": {"application/json": {"schema": _ERROR}}}
        for status, reason in (
            (400, "The file is no sound, or an option cannot be met."),
            (408, "Nothing more came of the upload."),
            (413, "The upload is too large."),
            (500, "Nobody foresaw it."),
            (503, "Too many recordings are here already, or the server stops."),
        )
    },
}
"""What may come back, for OpenAPI."""


class _Named:
    """The file that holds an upload, by the name that its sender gave it, so that messages and results have that."""

    def __init__(self, upload: UploadFile) -> None:
        self.name = upload.filename or "audio"
        self._file = upload.file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


class Recordings:
    """Works on one recording at a time, off the event loop, because torch has all cores for one already."""

    def __init__(self, diarizer: Diarizer, most_bytes: int) -> None:
        self.diarizer = diarizer
        self.most_bytes = most_bytes
        self._tasks = set[asyncio.Task[Any] | None]()
        self._worker = ThreadPoolExecutor(1)

    @property
    def here(self) -> int:
        """How many are sent, wait or are worked on."""
        return len(self._tasks)

    async def answer(self, request: Request) -> Response:
        """Take in an upload, wait for its turn, and return who spoke when.

        Raises:
            HTTPException: when there are too many, this one is too large, too slow or no form, or the server stops.
            InputError: when its options or its sound cannot be used.
            ConfigError: when there is no such preset.
            Cancelled: when who asked for it has gone.
            ClientDisconnect: when that was before the upload was whole.
        """
        if self.here >= _MOST:
            sentence = f"{_MOST} recordings are here already: try again later"
            raise HTTPException(503, sentence, {"Retry-After": str(_RETRY_S)})
        if request.query_params:
            raise InputError("options are fields of the form, beside the file, and do not belong in the address")
        if not request.headers.get("content-type", "").startswith("multipart/form-data"):
            raise InputError(_NO_FILE)
        self._tasks.add(task := asyncio.current_task())
        try:
            async with Request(request.scope, self._bounded(request)).form(
                max_files=3, max_fields=20, max_part_size=self.most_bytes
            ) as form:
                given = given_once(form.multi_items())
                upload, words = given.pop("file", None), given.pop("words", None)
                if not isinstance(upload, UploadFile):
                    raise InputError(_NO_FILE)
                options = _checked(given)
                named = _Named(upload)
                said = await _said(words, named, options.response_format)
                answer = await self._heard(request, named, options, said)
        except asyncio.CancelledError:
            raise HTTPException(503, "the server is stopping: try again later") from None
        finally:
            self._tasks.discard(task)
        return answer

    def stop(self) -> None:
        """End what is here."""
        for task in self._tasks:
            assert task is not None
            task.cancel()

    async def _heard(self, request: Request, upload: _Named, options: _Options, said: Any) -> Response:
        """Work on a recording, and on its words where there are any, unless who sent it goes away."""
        stop = threading.Event()
        wanted = options.model_dump(exclude={"response_format"})

        def hear() -> Response:
            with warned() as warnings:
                result = self.diarizer(upload, progress=lambda *_: not stop.is_set(), **wanted)
                words = None if said is None else assign_speakers(said, result)
            return _written(result, words, warnings, options.response_format)

        work = self._worker.submit(hear)
        done, gone = asyncio.wrap_future(work), asyncio.ensure_future(request.receive())  # only an end can still come
        try:
            await asyncio.wait({done, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
            if not work.cancel():
                stop.set()
            # Until then the upload has to stay open.
            (result,) = await asyncio.gather(done, return_exceptions=True)
        if isinstance(result, asyncio.CancelledError):
            raise Cancelled("who asked for it has gone")
        if isinstance(result, BaseException):
            raise result
        return result

    def _bounded(self, request: Request) -> Receive:
        """What brings an upload, as far as it is not too large."""
        length = request.headers.get("content-length", "")
        left = self.most_bytes
        if length.isdecimal() and int(length) > left:
            raise self._too_large()

        async def receive() -> Message:
            nonlocal left
            try:
                async with asyncio.timeout(_SILENCE_S):
                    message = await request.receive()
            except TimeoutError:
                raise HTTPException(408, f"nothing more came of the upload for {_SILENCE_S:g} s") from None
            left -= len(message.get("body", b""))
            if left < 0:
                raise self._too_large()
            return message

        return receive

    def _too_large(self) -> HTTPException:
        return HTTPException(413, f"the upload is larger than {self.most_bytes >> 20} MiB, the most that is taken")


def _checked(given: Mapping[str, Any]) -> _Options:
    try:
        return _Options.model_validate(given)
    except ValidationError as error:
        first, *others = error.errors()
        name = str(first["loc"][0])
        if name not in _Options.model_fields:
            raise InputError(f"there is no option {name!r}; known: {', '.join(_FORM['properties'])}") from error
        kinds = [first, *(each for each in others if each["loc"][0] == name)]  # of values that it may have
        reasons = ", or ".join(each["msg"] for each in kinds)
        raise InputError(f"{name} cannot be {first['input']!r}: {reasons}") from error


async def _said(words: UploadFile | str | None, recording: _Named, kind: str) -> Any:
    """The words of a recording, as a client sent them: a file, whose name says which kind it is, or JSON as text."""
    if words is None:
        if FORMATS[kind].turns is None:
            raise InputError(f"{kind} needs the words: send a transcript, too (curl -F words=@talk.json)")
        return None
    if FORMATS[kind].words is None:
        raise InputError(f"{kind} has no place for words: choose one of {WORDY}")
    content = words if isinstance(words, str) else await words.read()
    name = "words" if isinstance(words, str) else words.filename or "words"

    def read() -> Any:
        text = content if isinstance(content, str) else decoded(content, name)
        said = transcript.parse(text, name, [without_white_space(Path(recording.name).stem)])
        check_words(said, name)
        return said

    return await asyncio.to_thread(read)


def _written(result: Diarization, words: list[Word] | None, warnings: list[str], kind: str) -> Response:
    """The answer; what there is to warn of is in a header, as JSON, and in a JSON result, too."""
    headers = {"X-Warnings": json.dumps(warnings)} if warnings else None
    if kind == "json":
        text = json.dumps(document(result, words=words) | {"warnings": warnings}, ensure_ascii=False, indent=1) + "\n"
    else:
        text = FORMATS[kind].text(result, words)
    return Response(text, media_type=FORMATS[kind].media, headers=headers)
