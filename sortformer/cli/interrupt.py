"""Ctrl-C, and the SIGTERM of those who stop services, that are never lost.

Python raises KeyboardInterrupt wherever it happens to be. While a recording is decoded, that may be inside a function
that the C library calls, out of which no exception comes: it is printed and forgotten, and the work goes on.
"""

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType

__all__ = ["INTERRUPTED", "Interrupt", "interrupts"]

INTERRUPTED = 130
"""Exit code of what was stopped before its end, as shells have it: 128 + SIGINT."""


class Interrupt:
    """Whether Ctrl-C was pressed, or SIGTERM sent, and whether that has to wait."""

    def __init__(self) -> None:
        self._held = False
        self._pressed = False

    def hold(self, held: bool) -> None:
        """Let an interrupt wait for the next call, or stop at once.

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
def interrupts() -> Iterator[Interrupt]:
    """Watch Ctrl-C and SIGTERM; both raise KeyboardInterrupt, and stop at once until they are held."""
    interrupt = Interrupt()
    before = {number: signal.signal(number, interrupt._press) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interrupt
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
