"""Atomic writing of files, which replaces existing files only on request."""

import os
import uuid
from pathlib import Path

from sortformer.config.checks import switch
from sortformer.draft import drafted
from sortformer.errors import InputError, refusal

__all__ = ["check_folder", "ignores_case", "write_bytes", "write_text"]


def check_folder(folder: str | os.PathLike[str]) -> None:
    """Check that a folder can be written to, before the work whose results it is for; create it if needed.

    Raises:
        InputError: when it cannot be created or written to.
    """
    place = Path(folder)
    trial = place / f".{uuid.uuid4().hex}.part"
    try:
        there = next(each for each in (place, *place.parents) if each.exists())
        if not there.is_dir():
            raise InputError(f"{there} is a file, but a folder is needed there: choose another name")
        place.mkdir(parents=True, exist_ok=True)
        trial.touch()
        trial.unlink()
    except OSError as error:
        raise InputError(f"cannot write to the folder {place}: {refusal(error)}") from error


def ignores_case(folder: Path) -> bool:
    """Return whether names that differ in case only are one file there, as by default on Windows and macOS."""
    trial = folder / f".{uuid.uuid4().hex}.part"
    trial.touch()
    try:
        return trial.with_suffix(".PART").exists()
    finally:
        trial.unlink()


def write_text(path: str | os.PathLike[str], text: str, *, overwrite: bool = False) -> None:
    """Write UTF-8 text like :func:`write_bytes`, with line ends unchanged.

    Raises:
        InputError: as there, or when a name in it has a lone surrogate, as undecodable file names have in Python.
    """
    try:
        content = text.encode("utf-8")
    except UnicodeEncodeError as error:
        half = ascii(error.object[error.start : error.end])
        raise InputError(f"cannot write {Path(path)}: a name in it has {half}, which is not a character") from error
    write_bytes(path, content, overwrite=overwrite)


def write_bytes(path: str | os.PathLike[str], content: bytes, *, overwrite: bool = False) -> None:
    """Write a file atomically: under another name in its folder first, then renamed. Missing folders are created.

    Raises:
        InputError: when the file exists and ``overwrite`` is not set, or is neither True nor False, or it cannot be
            written.
    """
    target, overwrite = Path(path), switch("overwrite", overwrite)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with drafted(target, overwrite=overwrite) as draft:
                draft.write_bytes(content)
        except FileExistsError as error:
            raise InputError(f"{target} exists already; allow overwriting, or choose another path") from error
    except OSError as error:
        raise InputError(f"cannot write {target}: {refusal(error)}") from error
