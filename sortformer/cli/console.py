"""Terminal output besides results: messages, warnings and progress bars, all on stderr."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TextIO

import typer

from sortformer.errors import SortformerError, refusal
from sortformer.formats.names import composed, in_unicode

if TYPE_CHECKING:
    from rich.progress import Progress

__all__ = [
    "TRACEBACK",
    "about",
    "bar",
    "discard",
    "discard_unsaid",
    "named",
    "say",
    "sentence",
    "show_warning",
    "unforeseen",
    "usage_errors",
]

TRACEBACK = "SORTFORMER_TRACEBACK"
"""Environment variable that enables the traceback of unexpected errors."""


_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def say(message: str) -> None:
    """Print one line to stderr, unless that is closed.

    Line breaks and control characters are escaped: names may contain them, and those sent to a server are untrusted.
    """
    with contextlib.suppress(OSError):
        print(_CONTROLS.sub(lambda found: ascii(found[0])[1:-1], message), file=sys.stderr, flush=True)


def discard(stream: TextIO) -> None:
    """Let a stream that cannot be written discard its buffer and all that follows, without another error at exit."""
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), stream.fileno())


def discard_unsaid() -> None:
    """Discard what stderr has not taken: else Python tries again at exit, fails, and replaces the exit code by 120."""
    try:
        sys.stderr.flush()
    except OSError:
        discard(sys.stderr)


def sentence(error: SortformerError | OSError) -> str:
    """Return the message of an error for users, without Python's error number and brackets."""
    if not isinstance(error, OSError):
        return str(error)
    return f"{error.filename}: {refusal(error)}" if error.filename else refusal(error)


def show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print user warnings as one line and drop deprecations; a replacement for ``warnings.showwarning``."""
    if issubclass(category, UserWarning):
        say(f"warning: {message}")
    elif not issubclass(category, DeprecationWarning | PendingDeprecationWarning):
        print(warnings.formatwarning(message, category, filename, lineno, line), file=file or sys.stderr, end="")


def named(message: str, name: str) -> str:
    """Return a message with the recording's name in front, unless it contains the name."""
    return message if composed(in_unicode(name)) in composed(in_unicode(message)) else f"{name}: {message}"


@contextlib.contextmanager
def about(name: str, before: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Prefix warnings with the recording's name unless they contain it, and show each only once, after ``before()``."""
    given = list[str]()  # reading each channel in turn repeats the same warnings

    def show(message: Warning | str, category: type[Warning], filename: str, lineno: int, *rest: Any) -> None:
        said = named(str(message), name)
        if said not in given:
            before()
            show_warning(said, category, filename, lineno, *rest)
            given.append(said)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


# PyTorch has an exception class for this on some devices, but not on the CPU.
_OUT_OF_MEMORY = ("DefaultCPUAllocator: ", "out of memory", "bad_alloc")


def unforeseen(error: Exception) -> str:
    """Return the message for an unexpected error; print its traceback if that is enabled."""
    if os.environ.get(TRACEBACK):
        traceback.print_exception(error)
    if isinstance(error, MemoryError) or any(part in str(error) for part in _OUT_OF_MEMORY):
        return (
            "out of memory: free some, process less at once (a shorter part of the recording, smaller batches), or "
            "stream the recording with --preset, if the model supports it"
        )
    return (
        f"unexpected error in sortformer ({type(error).__name__}: {error}); "
        f"please report it, with the traceback that {TRACEBACK}=1 shows"
    )


@contextlib.contextmanager
def usage_errors() -> Iterator[None]:
    """Turn errors about the values of options into usage errors (exit code 2)."""
    try:
        yield
    except SortformerError as error:
        raise typer.BadParameter(str(error)) from error


def bar(quiet: bool, *columns: str) -> Progress:
    """Return a progress bar on stderr, with additional columns; hidden if stderr is not a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True, soft_wrap=True)  # do not wrap messages above the bar, which would split paths
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        *(TextColumn(column, markup=False) for column in columns),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        redirect_stdout=False,  # results go to stdout unchanged, even while a bar is shown
        disable=quiet or not console.is_terminal,
    )
