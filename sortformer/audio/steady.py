"""Files for decoders in C, which report their errors afterwards."""

import errno
import io
from collections.abc import Callable
from typing import Any, BinaryIO

from sortformer.audio.decoder import Damaged
from sortformer.errors import refusal

__all__ = ["Steady"]


class Steady:
    """A file whose methods raise nothing, for C libraries, which would print exceptions and lose them.

    A seek to an invalid position, as from a broken header, returns -1, as in C, and does not move. An error of the disk
    ends the file, as does any exception of a file object, for example one that is closed meanwhile, or an interruption;
    ``check`` raises it afterwards.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._fault: BaseException | None = None
        self.seekable = file.seekable

    def read(self, count: int) -> bytes:
        """Return up to ``count`` bytes; none at the end or after an error."""
        return self._attempt(b"", self._file.read, count)

    def tell(self) -> int:
        """Return the position, or -1 after an error."""
        return self._attempt(-1, self._file.tell)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Seek to a position and return it, or -1 if it is invalid or after an error."""
        return self._attempt(-1, self._sought, offset, whence)

    def check(self) -> None:
        """Raise ``Damaged`` if the disk failed, or what else the file raised."""
        if isinstance(self._fault, OSError):
            raise Damaged(refusal(self._fault)) from self._fault
        if self._fault is not None:
            raise self._fault

    def _sought(self, offset: int, whence: int) -> int:
        try:
            return self._file.seek(offset, whence)
        except ValueError:
            return -1
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            return -1

    def _attempt(self, failed: int | bytes, call: Callable[..., Any], *args: int) -> Any:
        """Return what a call returns, or ``failed``, and keep its error."""
        try:
            return call(*args)
        except BaseException as error:
            self._fault = error
            return failed
