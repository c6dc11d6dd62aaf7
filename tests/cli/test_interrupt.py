"""Ctrl-C and SIGTERM stop at once, or are deferred, but never lost."""

import contextlib
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sortformer import Diarizer
from sortformer.cli.interrupt import interrupts
from tests.cli.conftest import Cli

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.fixture(autouse=True)
def attached() -> Iterator[None]:
    """Set SIGHUP to its default, as on a terminal, also if nohup started the tests."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("number", SIGNALS)
def test_it_stops_at_once(number: signal.Signals):
    with pytest.raises(KeyboardInterrupt), interrupts():
        signal.raise_signal(number)


@pytest.mark.parametrize("number", SIGNALS)
def test_it_waits_while_held_and_is_not_forgotten(number: signal.Signals):
    with interrupts() as interrupt:
        interrupt.hold(True)
        signal.raise_signal(number)
        for held in (True, False):
            with pytest.raises(KeyboardInterrupt):
                interrupt.hold(held)


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("second", SIGNALS)
def test_what_is_sent_twice_ends_nothing_twice_but_a_second_ctrl_c_does(number: signal.Signals, second: signal.Signals):
    with interrupts():
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
        with pytest.raises(KeyboardInterrupt) if second == signal.SIGINT else contextlib.nullcontext():
            signal.raise_signal(second)


@pytest.mark.parametrize("number", SIGNALS)
def test_where_it_is_heeded_the_first_is_a_wish_and_the_next_but_its_echo_stops(monkeypatch, capfd, number):
    now = 0.0
    monkeypatch.setattr("sortformer.cli.interrupt.monotonic", lambda: now)
    with interrupts() as interrupt:
        interrupt.heed("soon")
        assert not interrupt.pressed
        signal.raise_signal(number)
        assert interrupt.pressed
        now = 0.9
        signal.raise_signal(number)  # as a launcher forwards it
        interrupt.heed("soon")
        now = 1.1
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
    assert capfd.readouterr().err == "\rsoon\n"


@pytest.mark.parametrize("number", SIGNALS)
def test_it_stops_at_once_again_after_the_hold(number: signal.Signals):
    with interrupts() as interrupt:
        interrupt.hold(True)
        interrupt.hold(False)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)


def test_a_terminal_that_closes_is_no_matter_to_what_nohup_started():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with interrupts():
        signal.raise_signal(signal.SIGHUP)


def test_on_windows_ctrl_break_stops_and_no_terminal_hangs_up(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delattr(signal, "SIGHUP")
    monkeypatch.setattr(signal, "SIGBREAK", signal.SIGUSR1, raising=False)
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    with pytest.raises(KeyboardInterrupt), interrupts():
        signal.raise_signal(signal.SIGUSR1)
    signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize("number", SIGNALS)
def test_afterwards_all_is_as_before(number: signal.Signals):
    before = signal.getsignal(number)
    with interrupts():
        assert signal.getsignal(number) is not before
    assert signal.getsignal(number) is before


@pytest.mark.parametrize(
    ("imported", "said"),
    [("typer", "interrupted: nothing was written\n"), ("torch", "interrupted: nothing more was written\n")],
)
def test_it_is_a_line_and_an_exit_code_while_modules_are_imported(imported: str, said: str):
    done = pressed_at("default_int_handler", imported)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", said)


@pytest.mark.parametrize(
    ("arguments", "stage", "said"),
    [
        (("diarize", "-q"), "load", "interrupted: 0 of 1 recording finished\n"),
        (("diarize", "-q"), "__call__", "interrupted: 0 of 1 recording finished\n"),
        (("stream",), "load", "interrupted: nothing more was written\n"),
    ],
)
def test_it_is_none_of_our_errors_as_a_class_is_created(
    cli: Cli, model: Path, wav: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], stage: str, said: str
):
    class Pressing:
        def __set_name__(self, owner: type, name: str) -> None:
            signal.raise_signal(signal.SIGINT)

    def create(*_: object, progress: Callable[..., None] | None = None, **__: object) -> None:
        if progress is not None:
            progress("model", 0.0, 1.0)  # it is deferred during the stage before
        type("Created", (), {"field": Pressing()})

    monkeypatch.setattr(Diarizer, stage, create)
    outcome = cli(*arguments, wav, "--model", model)
    assert (outcome.code, outcome.out, outcome.err) == (130, "", said)


def test_where_it_is_ignored_from_the_start_the_work_goes_on():
    done = pressed_at("SIG_IGN", "typer", "torch")
    assert (done.returncode, done.stderr) == (0, "")
    assert "self-test" in done.stdout


def pressed_at(handler: str, *imported: str) -> subprocess.CompletedProcess[str]:
    """Run ``sortformer doctor`` with Ctrl-C at the first import of each of the modules."""
    program = (
        "import runpy, signal, sys\n"
        f"signal.signal(signal.SIGINT, signal.{handler})\n"  # it may be ignored here, as in background jobs of scripts
        "class Pressing:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name in {imported!r}:\n"
        "            signal.raise_signal(signal.SIGINT)\n"
        "sys.meta_path.insert(0, Pressing())\n"
        "sys.argv = ['sortformer', 'doctor']\n"
        "runpy.run_module('sortformer', run_name='__main__', alter_sys=True)\n"
    )
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)


def test_the_installed_command_begins_where_the_module_does():
    project = tomllib.loads((Path(__file__).resolve().parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["scripts"] == {"sortformer": "sortformer.__main__:main"}
