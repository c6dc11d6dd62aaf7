"""Reliable handling of Ctrl-C, SIGTERM (services), SIGHUP (closed terminals) and SIGBREAK (Ctrl-Break on Windows).

Python raises KeyboardInterrupt wherever it happens to be. During decoding, that may be inside a callback of a C
library, which cannot propagate exceptions: it would be printed and lost, and the work would continue.
"""

import contextlib
import math
import os
import signal
from collections.abc import Iterator
from time import monotonic
from types import FrameType

__all__ = ["INTERRUPTED", "Interrupt", "interrupts", "unwrapped"]

INTERRUPTED = 130
"""Exit code of an interrupted command, as in shells: 128 + SIGINT."""

_AGAIN_S = 1.0


class Interrupt:
    """The state of interrupts: whether one has been requested, and whether it is deferred."""

    def __init__(self) -> None:
        self._held = False
        self._note: bytes | None = None
        self._since = -math.inf
        self.pressed = False

    def hold(self, held: bool) -> None:
        """Defer interrupts until the next call, or let them stop at once.

        Raises:
            KeyboardInterrupt: when one is pending.
        """
        self._held = held
        if self.pressed:
            raise KeyboardInterrupt

    def heed(self, note: str) -> None:
        """From now on let the first interrupt only set ``pressed`` and print a note, if any; a second stops at once.

        Interrupts within a second count as one: a terminal and a launcher may both send a signal.
        """
        self._note = f"\r{note}\n".encode() if note else b""

    def _press(self, number: int, _frame: FrameType | None) -> None:
        if self._note is not None:
            if not self.pressed:
                self.pressed, self._since = True, monotonic()
                with contextlib.suppress(OSError):  # after SIGHUP the terminal is gone
                    os.write(2, self._note)  # sys.stderr may be in use, and is not reentrant
            elif monotonic() - self._since > _AGAIN_S:
                raise KeyboardInterrupt
            return
        # Services and terminals may send several signals for one stop: only a second Ctrl-C is another interrupt.
        again, self.pressed = self.pressed and number != signal.SIGINT, True
        if not self._held and not again:
            raise KeyboardInterrupt


@contextlib.contextmanager
def interrupts() -> Iterator[Interrupt]:
    """Handle these signals, which raise KeyboardInterrupt at once unless they are deferred."""
    interrupt = Interrupt()
    numbers = [signal.SIGINT, signal.SIGTERM]
    # On Windows a program can end another cleanly only by SIGBREAK: SIGTERM kills.
    also = [getattr(signal, name) for name in ("SIGHUP", "SIGBREAK") if hasattr(signal, name)]
    numbers += [number for number in also if signal.getsignal(number) is not signal.SIG_IGN]  # ignored under nohup
    before = {number: signal.signal(number, interrupt._press) for number in numbers}
    try:
        yield interrupt
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def unwrapped() -> Iterator[None]:
    """Let a KeyboardInterrupt out of the error in which Python before 3.12 wraps it, if it comes as a class is created.

    Imports create hundreds of classes.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error.__cause__, KeyboardInterrupt):
            raise KeyboardInterrupt from error
        raise
