"""Freed memory is kept by the process: a second window needs no new pages."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from sortformer.cli import allocator
from tests.cli.conftest import Cli

ASK_AGAIN = """
import resource, sys
import numpy as np
from sortformer.cli.allocator import keep_freed_memory

print(keep_freed_memory() if sys.argv[1] == "keep" else None)
np.ones(12_000_000)  # 96 MB: what is kept, and more than glibc ever keeps by itself
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    np.ones(12_000_000)
print((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) * resource.getpagesize() / 960e6)
"""
ON_GLIBC = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is not glibc")


def ask(how: str, **variables: str) -> list[str]:
    """Return whether memory is kept, and the share of the second request that had to be paged in."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    command = [sys.executable, "-c", ASK_AGAIN, how]
    found = subprocess.run(command, env=environment | variables, capture_output=True, text=True, check=True)
    return found.stdout.split()


@ON_GLIBC
def test_kept_memory_is_not_paged_in_again():
    kept, share = ask("keep")
    assert kept == "True"
    assert float(share) < 0.1
    _, share = ask("as it is")
    assert float(share) > 0.001  # with huge pages a fault maps 2 MiB


def test_diarize_keeps_it(cli: Cli, model: Path, wav: Path, monkeypatch: pytest.MonkeyPatch):
    asked = list[bool]()
    monkeypatch.setattr("sortformer.cli.diarize.keep_freed_memory", lambda: asked.append(True))
    assert cli("diarize", wav, "--model", model).code == 0
    assert asked == [True]


@ON_GLIBC
def test_who_has_set_glibcs_own_variables_is_obeyed():
    assert ask("keep", MALLOC_ARENA_MAX="2")[0] == "False"


@pytest.mark.parametrize("error", [AttributeError, OSError, TypeError])
def test_another_c_library_is_left_alone(error, monkeypatch: pytest.MonkeyPatch):
    for name in [name for name in os.environ if name.startswith("MALLOC_")]:
        monkeypatch.delenv(name)

    def absent(_name: None) -> None:
        raise error

    monkeypatch.setattr(allocator.ctypes, "CDLL", absent)
    assert not allocator.keep_freed_memory()
