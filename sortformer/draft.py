"""A file is written whole or not at all: as a draft beside its place first, which then takes the place."""

import errno
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["drafted", "naming"]


@contextmanager
def drafted(path: Path, *, overwrite: bool = True) -> Iterator[Path]:
    """Name a file beside ``path`` to write to; at the end it takes the place of ``path``, and on an error it goes.

    Without ``overwrite`` it never takes the place of another file, not even of one that came in the meantime; and never
    that of a pipe or a device. Of a link, it is the file that the link leads to.

    Raises:
        FileExistsError: when there is one.
        OSError: when the file system does not let it be written; it names ``path``.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "it is no file, and is not replaced", str(path))
    draft = path.with_name(f".{uuid.uuid4().hex}.part")
    try:
        with naming(path, instead=draft):
            yield draft
            with draft.open("r+b") as file:
                os.fsync(file.fileno())
            if overwrite:
                os.replace(draft, path)
            else:
                _place(draft, path)
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def naming(path: Path, instead: Path | None = None) -> Iterator[None]:
    """Let errors of the file system that name no file (a full disk), or another one, name ``path``."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename not in (None, str(instead)):
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error  # of the same class, by its number


def _place(draft: Path, path: Path) -> None:
    try:
        os.link(draft, path)
    except FileExistsError:
        raise
    except OSError as error:  # a file system without links
        if path.exists():
            raise FileExistsError(path) from error
        os.replace(draft, path)
