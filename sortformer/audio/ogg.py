"""Ogg files that hold several streams, one behind the other, as broadcasts are kept."""

import io
from typing import BinaryIO

__all__ = ["is_chain"]


def is_chain(file: BinaryIO) -> bool:
    """Whether an Ogg file has streams behind each other: one that begins after the pages of another (RFC 3533, 4).

    Only the headers of the pages are read; the file is at its beginning before and after.
    """
    found, within = False, False
    while not found and len(header := file.read(27)) == 27 and header.startswith(b"OggS"):
        begins = bool(header[5] & 2)
        found, within = begins and within, not begins
        file.seek(sum(file.read(header[26])), io.SEEK_CUR)
    file.seek(0)
    return found
