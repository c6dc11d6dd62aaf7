"""UEM, the NIST format for the scored regions of recordings: file, channel, start, end."""

import math
import os
from collections.abc import Iterable, Mapping

from sortformer.errors import InputError
from sortformer.formats.names import check_name
from sortformer.formats.source import MD_EVAL, lines, read_text
from sortformer.formats.write import write_text
from sortformer.intervals import Regions

__all__ = ["format", "parse", "read", "write"]


def parse(text: str, source: str = "UEM") -> dict[str, Regions]:
    """Return the regions (start, end) of each recording in seconds, sorted.

    Raises:
        InputError: with source and line number, on a line that is not UEM or a region that ends before it starts.
    """
    found: dict[str, list[tuple[float, float]]] = {}
    for line in lines(text, source):
        line.check_count("a UEM line (file channel start end)", 4)
        start, end = line.seconds(2, "start"), line.seconds(3, "end")
        if end < start:
            raise line.error(f"the region ends at {end} s, before it starts at {start} s")
        found.setdefault(line.fields[0], []).append((start, end))
    return {uri: tuple(sorted(regions)) for uri, regions in found.items()}


def read(path: str | os.PathLike[str]) -> dict[str, Regions]:
    """Read a UEM file (see :func:`parse`)."""
    return parse(read_text(path), os.fspath(path))


def format(regions: Mapping[str, Iterable[tuple[float, float]]]) -> str:
    """Return UEM, sorted by file and start, with times in seconds to the millisecond.

    Raises:
        InputError: when an id is empty, contains white space or begins like a comment, or a region is invalid.
    """
    return "".join(_line(uri, start, end) for uri in sorted(regions) for start, end in sorted(regions[uri]))


def _line(uri: str, start: float, end: float) -> str:
    if check_name(uri, "file id").startswith(MD_EVAL):
        raise InputError(f"a UEM line that begins with {uri!r} would be a comment: give the recording another id")
    if not 0 <= start <= end < math.inf:
        raise InputError(f"a region of {uri} needs 0 <= start <= end in seconds, got {start} to {end}")
    return f"{uri} 1 {start:.3f} {end:.3f}\n"


def write(
    path: str | os.PathLike[str], regions: Mapping[str, Iterable[tuple[float, float]]], *, overwrite: bool = False
) -> None:
    """Write a UEM file atomically (see :func:`format`)."""
    write_text(path, format(regions), overwrite=overwrite)
