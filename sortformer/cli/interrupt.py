"""Ctrl-C that is never lost.

Python raises KeyboardInterrupt wherever it happens to be. While a recording is decoded, that may be inside a function
that the C library calls, out of which no exception comes: it is printed and forgotten, and the work goes on.
"""

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType

__all__ = ["INTERRUPTED", "Interrupt", "ctrl_c"]

INTERRUPTED = 130
"""Exit code of what was stopped before its end, as shells have it: 128 + SIGINT."""


class Interrupt:
    """Whether Ctrl-C was pressed, and whether it has to wait."""

    def __init__(self) -> None:
        self._held = False
        self._pressed = False

    def hold(self, held: bool) -> None:
        """Let Ctrl-C wait for the next call, or stop at once.

        Raises:
            KeyboardInterrupt: when it has been waiting.
        """
        self._held = held
        if self._pressed:
            raise KeyboardInterrupt

    def _press(self, _signal: int, _frame: FrameType | None) -> None:
        self._pressed = True
        if not self._held:
            raise KeyboardInterrupt


@contextlib.contextmanager
def ctrl_c() -> Iterator[Interrupt]:
    """Watch Ctrl-C; it stops at once until it is held."""
    interrupt = Interrupt()
    before = signal.signal(signal.SIGINT, interrupt._press)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, before)
