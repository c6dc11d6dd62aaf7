"""Reading the arrays of a teacher from an ``.npz``."""

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from sortformer.errors import InputError, refusal

__all__ = ["reading"]

# TypeError: an array, which is no context manager, instead of an archive. EOFError: an empty file. RuntimeError and
# IndexError: weights of other shapes, for which torch's messages have several lines.
_BROKEN = (ValueError, TypeError, EOFError, RuntimeError, IndexError, BadZipFile, zlib.error)


@contextmanager
def reading(what: str, path: str | Path) -> Iterator[dict[str, np.ndarray]]:
    """Give the arrays of ``what``, and turn any error from the file or what is done with them into an InputError."""
    try:
        with open(path, "rb") as file, np.load(file) as archive:
            yield dict(archive)
    except OSError as error:
        raise InputError(f"cannot read {what} {path}: {refusal(error)}") from error
    except KeyError as error:
        raise InputError(f"cannot read {what} {path}: it lacks {error}") from error
    except _BROKEN as error:
        raise InputError(f"cannot read {what} {path}: {' '.join(str(error).split())}") from error
