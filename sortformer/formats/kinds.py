"""The output formats of results, by the names that users choose them by."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from sortformer.annotation import Diarization
from sortformer.errors import InputError
from sortformer.formats import audacity, csv, eaf, html, json, openai, rttm, seglst, stm, subtitles, text, textgrid
from sortformer.formats.passages import Said

__all__ = ["FORMATS", "WORDY", "Format", "formats_named"]


@dataclass(frozen=True, slots=True)
class Format:
    """An output format.

    Args:
        extension: the file extension, without the leading dot.
        turns: formats a diarization; None if the format needs words.
        words: formats a diarization with its words; None if the format cannot hold words.
        between: the separator between recordings on stdout; None if the format allows only one.
        header: the first line of each file, written once on stdout.
        printed: formats for stdout, if that differs from a file; takes a diarization, whether there are several,
            whether to write only ASCII, and the words or None.
        media: the media type (RFC 2046).
    """

    extension: str
    turns: Callable[[Diarization], str] | None = None
    words: Callable[[Diarization, Sequence[Said]], str] | None = None
    between: str | None = None
    header: str = ""
    printed: Callable[[Diarization, bool, bool, Sequence[Said] | None], str] | None = None
    media: str = "text/plain"

    def text(self, result: Diarization, words: Sequence[Said] | None) -> str:
        """Return the content of a file, with the words if they are given and the format can hold them."""
        if self.words is not None and words is not None:
            return self.words(result, words)
        assert self.turns is not None  # formats that need words are refused earlier if there are none
        return self.turns(result)


def _printed_json(result: Diarization, one_line: bool, ascii_only: bool, words: Sequence[Said] | None) -> str:
    return json.format(result, words, one_line=one_line, ascii_only=ascii_only)


def _subtitles(kind: Literal["srt", "vtt"], _: Diarization, words: Sequence[Said]) -> str:
    return subtitles.format(words, kind)


FORMATS = {
    "rttm": Format("rttm", rttm.format, between=""),
    "json": Format("json", json.format, json.format, between="", printed=_printed_json, media="application/json"),
    "txt": Format("txt", text.format, text.format, between="\n"),
    "html": Format("html", html.format, html.format, media="text/html"),
    "seglst": Format("seglst.json", seglst.format, seglst.format, media="application/json"),
    "stm": Format("stm", stm.format, stm.format),
    "textgrid": Format("TextGrid", textgrid.format),
    "eaf": Format("eaf", eaf.format, eaf.format, media="application/xml"),
    "audacity": Format("labels.txt", audacity.format),
    "csv": Format("csv", csv.format, csv.format, between="", header=csv.HEADER, media="text/csv"),
    "srt": Format("srt", words=partial(_subtitles, "srt")),
    "vtt": Format("vtt", words=partial(_subtitles, "vtt"), media="text/vtt"),
    "diarized_json": Format("diarized.json", words=openai.format, media="application/json"),
}

WORDY = ", ".join(name for name, each in FORMATS.items() if each.words)
"""The formats that can hold words, as a list for messages."""


def formats_named(names: str) -> tuple[str, ...]:
    """Return the formats in a list like ``rttm,json``, without repeats.

    Raises:
        InputError: when one is unknown.
    """
    chosen = tuple(dict.fromkeys(name.strip().lower() for name in names.split(",")))
    for name in chosen:
        if name not in FORMATS:
            raise InputError(f"there is no format {name!r}; choose from {', '.join(FORMATS)}")
    return chosen
