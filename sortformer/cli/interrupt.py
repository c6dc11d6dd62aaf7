"""Ctrl-C, the SIGTERM of those who stop services and the SIGHUP of a terminal that closes: none is lost.

Python raises KeyboardInterrupt wherever it happens to be. While a recording is decoded, that may be inside a function
that the C library calls, out of which no exception comes: it is printed and forgotten, and the work goes on.
"""

import contextlib
import math
import os
import signal
from collections.abc import Iterator
from time import monotonic
from types import FrameType

__all__ = ["INTERRUPTED", "Interrupt", "interrupts"]

INTERRUPTED = 130
"""Exit code of what was stopped before its end, as shells have it: 128 + SIGINT."""

_AGAIN_S = 1.0


class Interrupt:
    """Whether Ctrl-C was pressed, or a signal sent, and whether that has to wait."""

    def __init__(self) -> None:
        self._held = False
        self._note: bytes | None = None
        self._since = -math.inf
        self.pressed = False

    def hold(self, held: bool) -> None:
        """Let an interrupt wait for the next call, or stop at once.

        Raises:
            KeyboardInterrupt: when it has been waiting.
        """
        self._held = held
        if self.pressed:
            raise KeyboardInterrupt

    def heed(self, note: str) -> None:
        """From now on let the first interrupt only set ``pressed`` and say a note, if any; a second stops at once.

        What follows within a second is of the first: a terminal and a launcher may both send their own.
        """
        self._note = f"\r{note}\n".encode() if note else b""

    def _press(self, number: int, _frame: FrameType | None) -> None:
        if self._note is not None:
            if not self.pressed:
                self.pressed, self._since = True, monotonic()
                with contextlib.suppress(OSError):  # the terminal may have gone, which is what SIGHUP says
                    os.write(2, self._note)  # sys.stderr may be in the middle of a line, and takes no other then
            elif monotonic() - self._since > _AGAIN_S:
                raise KeyboardInterrupt
            return
        # A service or a terminal may send its signals twice, or one after the other: they mean the same end.
        again, self.pressed = self.pressed and number != signal.SIGINT, True
        if not self._held and not again:
            raise KeyboardInterrupt


@contextlib.contextmanager
def interrupts() -> Iterator[Interrupt]:
    """Watch Ctrl-C, SIGTERM and SIGHUP; each raises KeyboardInterrupt, and stops at once until they are held."""
    interrupt = Interrupt()
    numbers = [signal.SIGINT, signal.SIGTERM]
    hang_up = getattr(signal, "SIGHUP", None)  # which Windows has not
    if hang_up is not None and signal.getsignal(hang_up) is not signal.SIG_IGN:  # as nohup asks for
        numbers.append(hang_up)
    before = {number: signal.signal(number, interrupt._press) for number in numbers}
    try:
        yield interrupt
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
