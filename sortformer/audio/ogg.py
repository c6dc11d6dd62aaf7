"""Chained Ogg files, which hold several streams one after the other, as recordings of broadcasts do."""

import io
from typing import BinaryIO

__all__ = ["is_chain"]


def is_chain(file: BinaryIO) -> bool:
    """Return whether an Ogg file is chained: a stream begins after pages of another (RFC 3533, section 4).

    Only the page headers are read; the file is at its start before and after.
    """
    found, within = False, False
    while not found and len(header := file.read(27)) == 27 and header.startswith(b"OggS"):
        begins = bool(header[5] & 2)
        found, within = begins and within, not begins
        file.seek(sum(file.read(header[26])), io.SEEK_CUR)
    file.seek(0)
    return found
