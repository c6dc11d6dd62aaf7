"""Put a finished file in its place: whole or not at all, and never over another one unless asked to."""

import os
import uuid
from pathlib import Path

from sortformer.errors import InputError

__all__ = ["write_bytes", "write_text"]


def write_text(path: str | os.PathLike[str], text: str, *, overwrite: bool = False) -> None:
    """Write UTF-8 text as :func:`write_bytes` does, with line ends as they are."""
    write_bytes(path, text.encode("utf-8"), overwrite=overwrite)


def write_bytes(path: str | os.PathLike[str], content: bytes, *, overwrite: bool = False) -> None:
    """Write a file whole or not at all: under another name beside it first, then renamed. Folders are made.

    Raises:
        InputError: when the file exists and ``overwrite`` is not set, or it cannot be written.
    """
    target = Path(path)
    part = target.with_name(f".{uuid.uuid4().hex}.part")
    try:
        if not overwrite and target.exists():
            raise InputError(f"{target} exists already; ask for overwriting, or write elsewhere")
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with part.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"cannot write {target}: {error.strerror or error}") from error
