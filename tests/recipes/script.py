"""Run a recipe's script unchanged; its Python commands are forked, so that torch is imported only once."""

import contextlib
import io
import os
import subprocess
import sys
import threading
from pathlib import Path

import torch

from sortformer.cli import main
from tests import processes

__all__ = ["run_script"]

_STAND_IN = """#!/bin/sh
case "${0##*/}$1" in python*.py | sortformer*) ;; python*) exec "$PYTHON" "$@" ;; esac
{ pwd; echo "${0##*/}"; printf '%s\\n' "$@"; } > "$SORTFORMER_TALK/ask"
cat "$SORTFORMER_TALK/out"
exit "$(cat "$SORTFORMER_TALK/code")"
"""


def run_script(script: Path, folder: Path, *arguments: object, **variables: object) -> str:
    """Run a bash script in a folder with arguments and environment variables.

    Return its stdout; fail if it fails.
    """
    talk = folder / ".talk"
    talk.mkdir(parents=True)
    for name in ("ask", "out", "code"):
        os.mkfifo(talk / name)
    for name in ("sortformer", "python"):
        (talk / name).write_text(_STAND_IN)
        (talk / name).chmod(0o755)
    path = os.pathsep.join([str(talk), str(Path(sys.executable).parent), os.environ["PATH"]])
    given = {name: str(value) for name, value in variables.items()}
    environment = os.environ | given | {"PATH": path, "PYTHON": sys.executable, "SORTFORMER_TALK": str(talk)}
    ended: list[subprocess.CompletedProcess[str]] = []

    def run() -> None:
        command = ["bash", str(script), *map(str, arguments)]
        ended.append(
            subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=270
            )
        )
        (talk / "ask").write_text("")

    runner = threading.Thread(target=run)
    runner.start()
    said = []
    while question := (talk / "ask").read_text():
        place, name, *asked = question.splitlines()
        code, out, err = _answered(Path(place), asked) if name == "sortformer" else _forked(place, asked)
        said.append(f"{name} {' '.join(asked)}: {code}\n{err}")
        (talk / "out").write_text(out)
        (talk / "code").write_text(str(code))
    runner.join()
    assert ended[0].returncode == 0, ended[0].stderr + "".join(said)
    return ended[0].stdout


def _forked(place: str, arguments: list[str]) -> tuple[object, str, str]:
    """The exit code and the output of a script in Python."""
    with processes.script(*arguments, cwd=place) as process:
        out, err = process.communicate()
    return process.returncode, out, err


def _answered(place: Path, arguments: list[str]) -> tuple[object, str, str]:
    """The exit code and the output of a command."""
    out, err = io.StringIO(), io.StringIO()
    code: object = 1
    with contextlib.chdir(place), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(arguments)
        except SystemExit as left:
            code = left.code or 0
    torch.set_flush_denormal(False)  # a command would change its own process only, here it is the tests'
    return code, out.getvalue(), err.getvalue()
