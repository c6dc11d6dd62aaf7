"""Reading the arrays of a teacher from an ``.npz``."""

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from zipfile import BadZipFile

from sortformer.errors import InputError, refusal

__all__ = ["reading"]

# TypeError: an array, which is no context manager, instead of an archive. EOFError: an empty file. RuntimeError and
# IndexError: weights of other shapes, for which torch's messages have several lines.
_BROKEN = (ValueError, TypeError, EOFError, RuntimeError, IndexError, BadZipFile, zlib.error)


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Turn any error from a file or its contents into an InputError about ``what``."""
    try:
        yield
    except OSError as error:
        raise InputError(f"cannot read {what}: {refusal(error)}") from error
    except KeyError as error:
        raise InputError(f"cannot read {what}: it lacks {error}") from error
    except _BROKEN as error:
        raise InputError(f"cannot read {what}: {' '.join(str(error).split())}") from error
