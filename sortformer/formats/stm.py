"""STM, segments of speech with speaker and words: the reference format of NIST's sclite, also read by meeteval.

One line per segment: recording, channel, speaker, start, end, an optional label such as ``<o,f0,male>``, and the words
(NIST, "STM file format" of the SCTK; times in seconds, here in whole milliseconds). For turns alone, there are no
words.
"""

import os
from collections.abc import Iterable

from sortformer.annotation import Diarization, Turn
from sortformer.errors import InputError
from sortformer.formats.names import renamed, without_white_space
from sortformer.formats.passages import Said
from sortformer.formats.segments import segments
from sortformer.formats.source import SCLITE, lines, quoted, read_text
from sortformer.formats.write import write_text

__all__ = ["format", "parse", "read", "write"]

_NOBODY = "inter_segment_gap"
_NOT_SCORED = "ignore_time_segment_in_scoring"


def parse(text: str, source: str = "STM") -> dict[str, tuple[Turn, ...]]:
    """Return the turns of all channels of each recording, sorted, by its id in order of first mention.

    Segments without length are ignored, and so are gaps (``inter_segment_gap``) and segments that are not to be scored
    (``IGNORE_TIME_SEGMENT_IN_SCORING``); to exclude the latter in ``score``, give it a UEM.

    Raises:
        InputError: with source and line number, when a line is not such a segment.
    """
    found: dict[str, list[Turn]] = {}
    for line in lines(text, source, SCLITE):
        if len(line.fields) < 5 or line.fields[0] == "SPEAKER":
            raise line.error(
                "an STM segment needs recording, channel, speaker, start, end and words, "
                f"got {quoted(' '.join(line.fields))}"
            )
        uri, speaker, words = line.fields[0], line.fields[2], line.fields[5:]
        start, end = line.seconds(3, "start"), line.seconds(4, "end")
        if end < start:
            raise line.error(f"the end, {end:g} s, is before the start, {start:g} s")
        turns = found.setdefault(uri, [])
        if start < end and speaker != _NOBODY and _NOT_SCORED not in map(str.lower, words):
            turns.append(Turn(start, end, speaker))
    return {uri: tuple(sorted(turns)) for uri, turns in found.items()}


def read(path: str | os.PathLike[str]) -> dict[str, tuple[Turn, ...]]:
    """Read an STM file (see :func:`parse`)."""
    return parse(read_text(path), os.fspath(path))


def format(recording: Diarization, words: Iterable[Said] | None = None) -> str:
    """Return STM of a recording: its :func:`~sortformer.formats.segments.segments`, turns or words, in order of time.

    White space in an id or a speaker's name becomes ``_``, because it separates the fields of STM.

    Raises:
        InputError: when two speakers then have the same name, or one that of a gap, the id begins like a comment, or an
            item is not a word in the form of ``assign_speakers``.
    """
    recording = renamed(recording, without_white_space, "STM")
    if _NOBODY in recording.speakers:
        raise InputError(f"a speaker of {recording.uri} is called {_NOBODY}, which is nobody in STM: rename that one")
    uri = without_white_space(recording.uri)
    if uri.startswith(SCLITE):
        raise InputError(f"an STM line that begins with {uri!r} would be a comment: give the recording another id")
    return "".join(
        f"{uri} 1 {without_white_space(speaker)} {start:.3f} {end:.3f} {said}".rstrip() + "\n"
        for start, end, speaker, said in segments(recording, words)
    )


def write(
    path: str | os.PathLike[str],
    recording: Diarization,
    words: Iterable[Said] | None = None,
    *,
    overwrite: bool = False,
) -> None:
    """Write an STM file atomically (see :func:`format`)."""
    write_text(path, format(recording, words), overwrite=overwrite)
