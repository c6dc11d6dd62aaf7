"""The command ``sortformer``, and ``python -m sortformer``."""

import contextlib
import io
import os
import signal
import sys
from types import FrameType

__all__ = ["main", "spin_briefly"]


def main() -> None:
    """Run the command line; Ctrl-C during the imports prints one line and exits with code 130, as it does later."""
    _open_streams()
    spin_briefly()
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.SIG_IGN:  # ignored for background jobs of scripts; leave it so
        signal.signal(signal.SIGINT, _leave)
    from sortformer.cli import main as run

    signal.signal(signal.SIGINT, before)
    run()


def _open_streams() -> None:
    """Redirect closed standard streams to the null device, and escape characters that stdout cannot encode."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_RDWR)  # left open at the end, as Python leaves its own
            setattr(sys, name, open(null, mode, encoding="utf-8", closefd=False))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def spin_briefly() -> None:
    """Shorten the busy-waiting of torch's threads under GNU OpenMP; call this before torch is imported.

    The threads wait for each other thousands of times per minute of audio, and by default spin for milliseconds before
    they sleep. On shared processors, such as with a second ``sortformer``, that can take nearly all of the time
    (``recipes/benchmark/diarize.md``). Environment variables set by the user take precedence.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "1000")


def _leave(_signal: int, _frame: FrameType | None) -> None:
    # Exit at once: an exception raised during an import may be swallowed, or change the exit code.
    with contextlib.suppress(OSError):  # stderr may be closed
        os.write(2, b"interrupted: nothing was written\n")
    os._exit(130)


if __name__ == "__main__":
    main()
