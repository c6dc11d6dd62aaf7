"""Reading the arrays of a teacher from an ``.npz``."""

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from zipfile import BadZipFile

from sortformer.errors import InputError, refusal

__all__ = ["reading"]

# An array instead of an archive has no `with` (TypeError), an empty file no data (EOFError), other weights have other
# shapes (RuntimeError, IndexError), of which torch says several lines.
_BROKEN = (ValueError, TypeError, EOFError, RuntimeError, IndexError, BadZipFile, zlib.error)


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Let whatever goes wrong with a file, or with what is in it, be an InputError about ``what``."""
    try:
        yield
    except OSError as error:
        raise InputError(f"cannot read {what}: {refusal(error)}") from error
    except KeyError as error:
        raise InputError(f"cannot read {what}: it lacks {error}") from error
    except _BROKEN as error:
        raise InputError(f"cannot read {what}: {' '.join(str(error).split())}") from error
