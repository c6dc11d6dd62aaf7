"""Atomic writes: a file is first written as a draft in the same folder, which then replaces it."""

import errno
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["drafted", "naming"]


@contextmanager
def drafted(path: Path, *, overwrite: bool = True) -> Iterator[Path]:
    """Yield a draft's path, in the folder of ``path``; at the end it replaces ``path``, and on an error it is deleted.

    Without ``overwrite`` no file is replaced, not even one that was created in the meantime; pipes and devices never
    are. Symbolic links are followed. A file that is replaced passes on its mode, and its draft is private.

    Raises:
        FileExistsError: when ``path`` exists and ``overwrite`` is not set.
        OSError: when the file cannot be written; it names ``path``.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "it is not a regular file, and is not replaced", str(path))
    draft = path.with_name(f".{uuid.uuid4().hex}.part")
    try:
        with naming(path, instead=draft):
            if path.exists():
                draft.touch(0o600)  # what was private stays so meanwhile
            yield draft
            with draft.open("r+b") as file:
                os.fsync(file.fileno())
            if overwrite:
                with suppress(OSError):  # nothing is replaced, or its file system refuses to change modes
                    shutil.copymode(path, draft)
                os.replace(draft, path)
            else:
                _place(draft, path)
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def naming(path: Path, instead: Path | None = None) -> Iterator[None]:
    """Make errors of the file system that name no file (a full disk), or ``instead``, name ``path``."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename not in (None, str(instead)):
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error  # errno selects the same class


def _place(draft: Path, path: Path) -> None:
    try:
        os.link(draft, path)
    except FileExistsError:
        raise
    except OSError as error:  # a file system without hard links
        if path.exists():
            raise FileExistsError(path) from error
        os.replace(draft, path)
