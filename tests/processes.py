"""Separate processes without the seconds of importing torch: forks of the test process."""

import os
import runpy
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable

import torch

from sortformer.__main__ import main

__all__ = ["eventually", "script", "started"]


def started(*arguments: object, fresh: bool = False, **options: object) -> subprocess.Popen[str]:
    """Start the command line; ``fresh`` starts a new Python, for tests of its start or end."""
    return _fork(None if fresh else main, ["-m", "sortformer", *map(str, arguments)], options)


def script(*arguments: object, **options: object) -> subprocess.Popen[str]:
    """Start a script in Python."""
    path, *_ = given = [*map(str, arguments)]

    def run() -> None:
        sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
        runpy.run_path(path, run_name="__main__")

    return _fork(run, given, options)


def _fork(run: Callable[[], object] | None, given: list[str], options: dict[str, object]) -> subprocess.Popen[str]:
    own = {"OMP_NUM_THREADS": "1", "TERM": "xterm"}

    def hear() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # as on a terminal, also if nohup started the tests
        signal.signal(signal.SIGHUP, signal.SIG_DFL)

    def begin() -> None:
        os.closerange(3, 1024)  # files open in this process, and the pipe on which Popen waits for exec
        os.environ.update(own)
        hear()
        sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w", 1)  # line buffered
        sys.argv = given[1:] if given[0] == "-m" else given
        torch.set_num_threads(1)  # threads do not survive a fork
        code = 1
        try:
            run()  # pyright: ignore[reportOptionalCall]
            code = 0
        except SystemExit as left:
            code = left.code or 0
        except BaseException:
            traceback.print_exc()
        finally:
            if isinstance(code, str):
                print(code, file=sys.stderr)
            sys.stdout.flush()
            os._exit(code if isinstance(code, int) else 1)

    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": os.environ | own} | options
    return subprocess.Popen([sys.executable, *given], preexec_fn=begin if run else hear, **options)  # pyright: ignore


def eventually(true: Callable[[], bool]) -> None:
    """Wait until a condition is true."""
    due = time.monotonic() + 60
    while not true():
        assert time.monotonic() < due
        time.sleep(0.02)
