"""The multipart form of a diarization request: its schema, and its validation."""

import asyncio
import reprlib
from collections.abc import AsyncGenerator, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ValidationError, WithJsonSchema
from starlette.datastructures import FormData, Headers, UploadFile
from starlette.formparsers import MultiPartParser

from sortformer.config.channel import EACH, Channel
from sortformer.errors import InputError
from sortformer.formats import transcript
from sortformer.formats.folders import AUDIO_SUFFIXES
from sortformer.formats.kinds import FORMATS, WORDY
from sortformer.formats.names import check_person, without_white_space
from sortformer.formats.source import decoded
from sortformer.serve.refusals import given_once
from sortformer.words import check_words

__all__ = ["MOST_FILES", "NO_FILE", "REQUEST_BODY", "Asked", "Named", "Options", "WholeForm", "asked"]

MOST_FILES = 50
NO_FILE = "there is no recording: send it as the form field 'file' (curl -F file=@talk.wav)"
_CUT = "the end of the form is missing, as when a file grows while it is sent: choose and send it again"

_WANTED = {"int": "a whole number", "bool": "true or false", "string": "text", "literal": "{expected}"}
"""What a value must be, by the prefix of pydantic's error type."""

# A form cannot express null: None means that the field is absent. The Diarizer refuses values below 1.
_COUNT = {"type": "integer", "minimum": 1}
_Count = Annotated[int | None, WithJsonSchema(_COUNT)]


class Options(BaseModel, extra="forbid"):
    """The fields beside the files: arguments of a call of the ``Diarizer``, and the format of the response."""

    num_speakers: _Count = None
    min_speakers: _Count = None
    max_speakers: _Count = None
    exclusive: bool = False
    channel: Annotated[Channel | None, WithJsonSchema({"anyOf": [_COUNT, {"type": "string", "const": EACH}]})] = None
    preset: Annotated[str | None, WithJsonSchema({"type": "string"})] = None
    response_format: Literal[tuple(FORMATS)] = "json"  # pyright: ignore[reportInvalidTypeForm] (pydantic reads it)


_SCHEMA = Options.model_json_schema()
_FORM = _SCHEMA | {
    "properties": {
        "file": {"type": "string", "format": "binary", "description": "The recording."},
        "words": {
            "type": "string",
            "format": "binary",
            "description": "Its transcript: JSON, as text or as a file, or a .ctm, .srt or .vtt file.",
        },
        "enroll": {
            "type": "array",
            "items": {"type": "string", "format": "binary"},
            "maxItems": MOST_FILES - 2,
            "description": "Clips of known speakers, up to a minute each, named after the speaker, such as Ada.wav.",
        },
        **_SCHEMA["properties"],
    },
    "required": ["file"],
}
REQUEST_BODY = {"required": True, "content": {"multipart/form-data": {"schema": _FORM}}}
"""The request body, for OpenAPI."""


class WholeForm(MultiPartParser):
    """Starlette's parser, but it refuses a form that is cut: fields would be missing, and options not be followed.

    ``parse`` raises InputError for that, and Starlette's MultiPartException for what is no form.
    """

    _ended = False

    def __init__(self, headers: Headers, stream: AsyncGenerator[bytes], **limits: int) -> None:
        super().__init__(headers, self._to_the_end(stream), **limits)

    def on_end(self) -> None:
        self._ended = True

    async def _to_the_end(self, stream: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
        async for chunk in stream:
            yield chunk
        if not self._ended:
            raise InputError(_CUT)  # here, because the parser then closes the files


class Named:
    """The file of an upload under the client's file name, for use in messages and results."""

    def __init__(self, upload: UploadFile) -> None:
        self.name = upload.filename or "audio"
        self._file = upload.file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


class Asked(NamedTuple):
    """A parsed request: the recording, its words (or None), enrolment clips by name, and the options."""

    recording: Named
    words: Any
    clips: dict[str, Named]
    options: Options


async def asked(form: FormData) -> Asked:
    """Parse and validate a form.

    Raises:
        InputError: when it has no recording, or a field is given twice or is invalid.
    """
    clips = _clips(form.getlist("enroll"))
    given = given_once(item for item in form.multi_items() if item[0] != "enroll")
    upload, words = given.pop("file", None), given.pop("words", None)
    if not isinstance(upload, UploadFile):
        raise InputError(NO_FILE)
    options, recording = _checked(given), Named(upload)
    return Asked(recording, await _said(words, recording, options.response_format), clips, options)


def _clips(sent: Iterable[UploadFile | str]) -> dict[str, Named]:
    """Return the enrolment clips by speaker: the file name without an audio suffix."""
    found: dict[str, Named] = {}
    for clip in sent:
        if not isinstance(clip, UploadFile):
            raise InputError("'enroll' must be a file, named after the speaker (curl -F enroll=@Ada.wav)")
        path = Path(clip.filename or "")
        name = path.stem if path.suffix.lower() in AUDIO_SUFFIXES else path.name  # Dr. Ada
        check_person(name, found)
        found[name] = Named(clip)
    return found


def _checked(given: Mapping[str, Any]) -> Options:
    try:
        return Options.model_validate(given)
    except ValidationError as error:
        first, *others = error.errors()
        name = str(first["loc"][0])
        if name not in Options.model_fields:
            raise InputError(f"there is no option {name!r}; known: {', '.join(_FORM['properties'])}") from error
        kinds = [first, *(each for each in others if each["loc"][0] == name)]  # one error for each type of a union
        wanted = " or ".join(_WANTED[each["type"].split("_")[0]].format(**each.get("ctx", {})) for each in kinds)
        raise InputError(f"{name} cannot be {reprlib.repr(first['input'])}: it must be {wanted}") from error


async def _said(words: UploadFile | str | None, recording: Named, kind: str) -> Any:
    """Return the transcript sent by the client: a file, whose name determines the format, or JSON as text."""
    if words is None:
        if FORMATS[kind].turns is None:
            raise InputError(f"{kind} needs words: send a transcript, too (form field 'words')")
        return None
    if FORMATS[kind].words is None:
        raise InputError(f"{kind} cannot store words: choose one of {WORDY}")
    content = words if isinstance(words, str) else await words.read()
    name = "words" if isinstance(words, str) else words.filename or "words"

    def read() -> Any:
        text = content if isinstance(content, str) else decoded(content, name, transcript.TORN)
        said = transcript.parse(text, name, [without_white_space(Path(recording.name).stem)])
        check_words(said, name)
        return said

    return await asyncio.to_thread(read)
