"""The command ``sortformer``, and ``python -m sortformer``."""

import contextlib
import io
import os
import signal
import sys
from types import FrameType

__all__ = ["main", "spin_briefly"]


def main() -> None:
    """Run the command line; Ctrl-C while it is still being imported is a line and exit code 130, as it is later."""
    _open_streams()
    spin_briefly()
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.SIG_IGN:  # scripts start what runs in the background so, and it shall go on
        signal.signal(signal.SIGINT, _leave)
    from sortformer.cli import main as run

    signal.signal(signal.SIGINT, before)
    run()


def _open_streams() -> None:
    """Let what was closed by who started this be empty or go nowhere, and no character end the work."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def spin_briefly() -> None:
    """Let torch's threads, if GNU's OpenMP is theirs, wait for each other asleep; to be called before torch is loaded.

    They wait thousands of times in a minute of audio, and left alone they spin for milliseconds before they sleep. On
    processors that others use as well, a second ``sortformer`` for one, nearly all of the time can go into that
    (``recipes/benchmark/diarize.md``). Who has set how threads wait has decided otherwise.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "1000")


def _leave(_signal: int, _frame: FrameType | None) -> None:
    # At once: an exception that comes out of half an import may be swallowed, or change the exit code.
    with contextlib.suppress(OSError):  # nobody may be there to read it
        os.write(2, b"interrupted: nothing was written\n")
    os._exit(130)


if __name__ == "__main__":
    main()
