"""Opening of paths and file objects with the right decoder, and their names in messages."""

import contextlib
import os
import re
import tempfile
from collections.abc import Coroutine, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, cast

from sortformer.audio.decoder import Decoder, NotDecodable
from sortformer.audio.ffmpeg import FfmpegDecoder
from sortformer.audio.libsndfile import LibsndfileDecoder
from sortformer.errors import InputError, refusal
from sortformer.formats.names import composed, in_unicode

__all__ = ["can_be_read_again", "decoder", "file_in", "is_file", "name_of", "uri_of"]

_RAW = {  # extensions of raw samples without a header, and the options that they usually need
    **dict.fromkeys((".pcm", ".raw", ".s16", ".sw"), "--rate 16000"),
    **dict.fromkeys((".mulaw", ".pcmu", ".ul", ".ulaw"), "--rate 8000 --encoding mulaw"),
    **dict.fromkeys((".al", ".alaw", ".pcma"), "--rate 8000 --encoding alaw"),
}
_LISTS = (".csv", ".jsonl.gz", ".list", ".lst", ".scp", ".tsv", ".txt")
_URL = re.compile(r"(https?|ftp|s3|gs):/+", re.IGNORECASE)
SPOOLED_BYTES = 64 << 20  # a pipe is buffered in memory up to this size, then on disk


def is_file(source: Any) -> bool:
    """Return whether the source is a path or a file object."""
    return _is_path(source) or hasattr(source, "read")


def file_in(source: Mapping[str, Any]) -> Any:
    """Return the file of a mapping, ``audio`` or ``path``; None if it has neither."""
    return next((each for each in (source.get("audio"), source.get("path")) if is_file(each)), None)


def can_be_read_again(source: Any) -> bool:
    """Return whether the source can be read more than once; a pipe cannot."""
    if isinstance(source, Mapping):
        return can_be_read_again(file_in(source))
    if _is_path(source):
        return not os.path.exists(source) or os.path.isfile(source)
    return not is_file(source) or _can_seek(source)


def name_of(source: Any) -> str:
    """Return the name of a source for messages to the user."""
    if isinstance(source, Mapping):
        return str(source.get("uri") or name_of(file_in(source)))
    return _path_in(source) or ("the file object" if is_file(source) else "the array")


def uri_of(source: Any) -> str:
    """Return the id of a recording: the ``uri`` of a mapping, or its file's name without extension, or ``audio``."""
    if isinstance(source, Mapping):
        return str(source.get("uri") or uri_of(file_in(source)))
    return composed(in_unicode(Path(_path_in(source) or "").stem)) or "audio"


@contextlib.contextmanager
def decoder(source: Any) -> Iterator[Decoder]:
    """Open a path, or a binary file object from its beginning, with the first decoder that understands it.

    Raises:
        InputError: if the file is missing, a directory, empty, not readable (permissions, disk errors), not opened as
            binary, or not audio.
    """
    name = name_of(source)
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(_opened(source, name)) if _is_path(source) else source
        try:
            found = _understood(_seekable(file, name, stack), name)
        except OSError as error:
            raise InputError(f"{name} cannot be read: {refusal(error)}") from error
        stack.callback(found.close)
        yield found


def _can_seek(file: Any) -> bool:
    return hasattr(file, "seekable") and file.seekable()


def _is_path(source: Any) -> bool:
    return isinstance(source, str | os.PathLike)


def _path_in(source: Any) -> str | None:
    """Return a source that is a path, or the name of a file object if it is a path (a descriptor's is a number)."""
    if _is_path(source):
        return os.fsdecode(source)
    name = getattr(source, "name", None) if is_file(source) else None
    return name if isinstance(name, str) else None


def _opened(source: str | os.PathLike[str], name: str) -> BinaryIO:
    if not os.fspath(source):
        raise InputError("the path of a recording is empty: give one")
    if os.path.isdir(source):  # Path.is_dir raises if the name is too long
        raise InputError(f"{name} is a directory: pass the recordings in it")
    try:
        return Path(source).open("rb")
    except FileNotFoundError:
        if _URL.match(name):
            url = _URL.sub(r"\1://", name)  # a Path has lost one of the slashes
            raise InputError(f"{url} is a URL, which is not supported: download the file first") from None
        hint = ", and write it in full: ~ and file:// are not supported" if name.startswith(("~", "file:")) else ""
        raise InputError(f"{name} does not exist: check the path{hint}") from None
    except OSError as error:
        raise InputError(f"{name} cannot be opened: {refusal(error)}") from error
    except ValueError as error:
        raise InputError(f"{name} cannot be opened: {error}") from error


def _seekable(file: BinaryIO, name: str, stack: contextlib.ExitStack) -> BinaryIO:
    """Return the file itself or, if it cannot seek (a pipe), a copy that can."""
    if getattr(file, "closed", False):
        raise InputError(f"{name} is closed: read it before it is, or wrap its bytes in io.BytesIO")
    nothing = file.read(0)
    if isinstance(nothing, str):
        raise InputError(f'{name} is open in text mode: open it with mode "rb"')
    if not isinstance(nothing, bytes):  # an array (of a soundfile.SoundFile) or a coroutine (of an async file)
        if isinstance(nothing, Coroutine):
            nothing.close()
        raise InputError(
            f"a {type(file).__name__} returns {type(nothing).__name__}, not bytes: pass a path or a binary file "
            "object, such as the one that it wraps"
        )
    if _can_seek(file):
        return file
    copy = stack.enter_context(tempfile.SpooledTemporaryFile(SPOOLED_BYTES))  # noqa: SIM115
    while content := file.read(1 << 16):
        try:
            copy.write(content)
            copy.flush()
        except OSError as error:
            raise InputError(
                f"a copy of {name}, which comes through a pipe, cannot be written to the folder of temporary files "
                f"({error.strerror or error}): set TMPDIR to a folder with room for it"
            ) from error
    return cast(BinaryIO, copy)


def _understood(file: BinaryIO, name: str) -> Decoder:
    file.seek(0)
    head = file.read(3)
    if not head:
        raise InputError(f"{name} is empty (0 bytes): record or copy it again")
    kinds = (LibsndfileDecoder, FfmpegDecoder)
    if head == b"ID3" or head[0] == 0xFF:  # MP3: libsndfile's decoder writes complaints to the terminal
        kinds = (FfmpegDecoder,)
    reason = ""
    for kind in kinds:
        file.seek(0)
        try:
            return kind(file)
        except NotDecodable as error:
            reason = str(error)
    remedy = "check that it is a complete recording, or convert it to WAV"
    if name.lower().endswith(_LISTS):
        remedy = (
            "give recordings, their folder or a manifest of them (.jsonl): `sortformer manifest kaldi` makes one from "
            "a folder with wav.scp, `sortformer manifest lhotse` from lhotse's .jsonl or .jsonl.gz"
        )
    if options := _RAW.get(Path(name).suffix.lower()):
        rate = f"give their sample rate: sortformer stream - {options} < {name}"
        remedy = f"if these are raw samples, convert them to WAV, or {rate}"
    raise InputError(f"{name} cannot be read as audio ({reason}): {remedy}")
