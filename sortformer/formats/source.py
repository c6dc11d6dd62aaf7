"""Reading of text files, and error messages with line numbers."""

import codecs
import io
import math
import os
import reprlib
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from sortformer.errors import InputError, refusal
from sortformer.formats.folders import AUDIO_SUFFIXES
from sortformer.grid import LONGEST_S

__all__ = ["MD_EVAL", "SCLITE", "Line", "decoded", "lines", "quoted", "read_bytes", "read_text"]

MD_EVAL, SCLITE = (";", "#"), (";;",)
"""The marks of comments in RTTM and UEM, as in md-eval, and in CTM and STM, as in sclite."""

_SHORT = reprlib.Repr()
_SHORT.maxstring = 80


def read_text(path: str | os.PathLike[str], torn: bytes | None = None) -> str:
    """Return the text of a file in UTF-8, or in UTF-16 if it has its byte-order mark; the mark is dropped.

    If a file contains ``torn``, it may contain partial characters: their bytes become surrogates, as in file names.

    Raises:
        InputError: when the file is missing, cannot be read or is not text; or the argument is not a path.
    """
    return decoded(read_bytes(path), os.fspath(path), torn)


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a file; errors as for :func:`read_text`."""
    if not isinstance(path, str | os.PathLike):
        raise InputError(
            f"the path of a file is required, got {type(path).__name__}: for text, use a format's `parse` "
            "(sortformer.formats)"
        )
    try:
        return Path(path).read_bytes()
    except OSError as error:
        if isinstance(path, str) and "\n" in path:
            raise InputError(
                "the path of a file is required, got text: use a format's `parse` for that (sortformer.formats)"
            ) from error
        if isinstance(error, FileNotFoundError):
            raise InputError(f"{path} does not exist") from error
        raise InputError(f"cannot read {path}: {refusal(error)}") from error
    except ValueError as error:  # a null byte, or half a character
        raise InputError(f"cannot read {os.fspath(path)!r}: {error}") from error


def decoded(content: bytes, source: str, torn: bytes | None = None) -> str:
    """Return the text of a file's content, as :func:`read_text` does.

    Raises:
        InputError: when it is not text.
    """
    encoding = "utf-16" if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    errors = "surrogateescape" if torn and torn in content else "strict"
    try:
        return io.StringIO(content.decode(encoding, errors), newline=None).read()
    except UnicodeDecodeError as error:
        if Path(source).suffix.lower() in AUDIO_SUFFIXES:
            raise InputError(f"{source} is a recording, but a text file is needed") from error
        name = "UTF-16" if error.encoding.startswith("utf-16") else "UTF-8"
        raise InputError(
            f"{source} is not a text file in {name} (byte {error.start} is not valid); if it is text, save it as UTF-8"
        ) from error


def quoted(text: str) -> str:
    """Return text from a file in quotes; of long text (such as JSON in one line) only its two ends."""
    return _SHORT.repr(text)


class Line(NamedTuple):
    """One line of data, split at white space."""

    source: str
    number: int
    fields: list[str]

    def error(self, what: str) -> InputError:
        """Return an error with the source and the line number."""
        return InputError(f"{self.source}, line {self.number}: {what}")

    def check_count(self, what: str, *counts: int) -> None:
        """Check that the line has one of these numbers of fields; ``what`` names the line in the message.

        Raises:
            InputError: with source and line number, when it does not.
        """
        found = len(self.fields)
        if found not in counts:
            hint = "; write white space in names as _" if found > max(counts) else ""
            raise self.error(f"{what} has {' or '.join(map(str, counts))} fields, this one has {found}{hint}")

    def seconds(self, index: int, name: str) -> float:
        """Return a field as a time in seconds, between 0 and the longest duration of a recording.

        Raises:
            InputError: with source and line number, when it is not.
        """
        try:
            value = float(self.fields[index])
        except ValueError:
            value = math.nan
        if not 0 <= value <= LONGEST_S:
            hint = ": write a decimal point, not a comma" if "," in self.fields[index] else ""
            raise self.error(f"the {name} must be in [0, {LONGEST_S:g}] s, got {quoted(self.fields[index])}{hint}")
        return value


def lines(text: str, source: str, comments: tuple[str, ...] = MD_EVAL) -> Iterator[Line]:
    """Yield the lines of a NIST file that are neither blank nor comments, in Unicode's NFC."""
    for number, line in enumerate(unicodedata.normalize("NFC", text).split("\n"), start=1):
        fields = line.split()
        if fields and not fields[0].startswith(comments):
            yield Line(source, number, fields)
