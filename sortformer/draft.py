"""A file is written whole or not at all: as a draft beside its place first, which then takes the place."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["drafted"]


@contextmanager
def drafted(path: Path, *, overwrite: bool = True) -> Iterator[Path]:
    """Name a file beside ``path`` to write to; at the end it takes the place of ``path``, and on an error it goes.

    Without ``overwrite`` it never takes the place of another file, not even of one that came in the meantime.

    Raises:
        FileExistsError: when there is one.
        OSError: when the file system does not let it be written.
    """
    draft = path.with_name(f".{uuid.uuid4().hex}.part")
    try:
        yield draft
        with draft.open("r+b") as file:
            os.fsync(file.fileno())
        if overwrite:
            os.replace(draft, path)
        else:
            _place(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def _place(draft: Path, path: Path) -> None:
    try:
        os.link(draft, path)
    except FileExistsError:
        raise
    except OSError as error:  # a file system without links
        if path.exists():
            raise FileExistsError(path) from error
        os.replace(draft, path)
