"""Files for decoders in C, which report their errors afterwards."""

import io
from typing import BinaryIO

from sortformer.audio.decoder import Damaged
from sortformer.errors import refusal

__all__ = ["Steady"]


class Steady:
    """A file whose ``read`` and ``seek`` raise no OSError, for C libraries, which would print exceptions and lose them.

    A seek to an invalid position, as from a broken header, returns -1, as in C, and does not move. A read error ends
    the file, as does any exception of a file object, for example one that is closed meanwhile; ``check`` raises it
    afterwards.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._fault: Exception | None = None
        self.tell, self.seekable = file.tell, file.seekable

    def read(self, count: int) -> bytes:
        """Return up to ``count`` bytes; none at the end or after an error."""
        try:
            return self._file.read(count)
        except Exception as error:
            self._fault = error
            return b""

    def check(self) -> None:
        """Raise ``Damaged`` if a read failed, or what else the file raised."""
        if isinstance(self._fault, OSError):
            raise Damaged(refusal(self._fault)) from self._fault
        if self._fault is not None:
            raise self._fault

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Seek to a position and return it, or -1 if it is invalid."""
        try:
            return self._file.seek(offset, whence)
        except (ValueError, OSError):
            return -1
