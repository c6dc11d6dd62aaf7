"""The end of a live stream on the command line: clean in every case, with all results so far."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from sortformer import audio
from sortformer.errors import InputError
from sortformer.formats.json import read
from sortformer.streaming import Session
from tests.audio.makers import chirp
from tests.cli.conftest import Cli
from tests.cli.streams import EXPECTED, raw, turns
from tests.marks import NEEDS_DEV_FULL
from tests.processes import started


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_the_stream_in_good_order(
    cli: Cli, model: Path, wav: Path, pipe: Callable[..., None], tmp_path: Path, number: signal.Signals
):
    pipe(raw(wav), number=number)
    outcome = cli("stream", "-", "--model", model, "-o", tmp_path / "meeting.rttm")
    assert (outcome.code, outcome.err) == (0, "")
    assert turns((tmp_path / "meeting.rttm").read_text()) == turns(outcome.out) == EXPECTED


def test_an_interrupt_while_a_recording_comes_ends_the_stream_in_good_order(
    cli: Cli, model: Path, make: Callable[..., Path], pipe: Callable[..., None], tmp_path: Path
):
    pipe(make("long.wav", chirp(8, 16_000)).read_bytes(), number=signal.SIGINT)
    outcome = cli("stream", "-", "--model", model, "-o", tmp_path / "meeting.rttm")
    assert (outcome.code, outcome.err) == (0, "")
    assert (tmp_path / "meeting.rttm").read_text() == outcome.out
    assert max(end for _, end, _ in turns(outcome.out)) == pytest.approx(8, abs=0.2)


def test_a_service_that_is_stopped_twice_keeps_its_file(cli: Cli, model: Path, wav: Path, pipe, tmp_path, monkeypatch):
    flush = Session.flush
    monkeypatch.setattr(Session, "flush", lambda self: (signal.raise_signal(signal.SIGHUP), flush(self))[1])
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup it would be inherited as ignored
    pipe(raw(wav), number=signal.SIGTERM)
    outcome = cli("stream", "-", "--model", model, "-o", tmp_path / "meeting.rttm")
    signal.signal(signal.SIGHUP, before)
    assert (outcome.code, outcome.err) == (0, "")
    assert turns((tmp_path / "meeting.rttm").read_text()) == EXPECTED


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_before_the_stream_has_begun_is_said(
    cli: Cli, wav: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
):
    monkeypatch.setattr("sortformer.diarizer.Diarizer.load", lambda *_: signal.raise_signal(number))
    outcome = cli("stream", wav, "-o", tmp_path / "meeting.rttm")
    assert (outcome.code, outcome.out, outcome.err) == (130, "", "interrupted: nothing more was written\n")
    assert not (tmp_path / "meeting.rttm").exists()


@pytest.mark.parametrize("content", [b"", b"RIFF", b"fLaC" + bytes(1_000)])
def test_an_interrupt_before_anything_is_heard_is_no_success(
    cli: Cli, model: Path, pipe, tmp_path: Path, content: bytes
):
    pipe(content, number=signal.SIGTERM)
    outcome = cli("stream", "-", "--model", model, "-o", tmp_path / "meeting.rttm")
    assert (outcome.code, outcome.out) == (130, "")
    assert outcome.err == "interrupted before any audio of stdin: nothing was written\n"
    assert not (tmp_path / "meeting.rttm").exists()


def test_what_was_heard_before_an_error_is_kept(cli: Cli, model: Path, wav: Path, tmp_path: Path, monkeypatch):
    def broken(*_: object, **__: object) -> Iterator[np.ndarray]:
        yield audio.read(wav)[:24_000]
        raise InputError("the rest is broken")

    monkeypatch.setattr("sortformer.audio.reading.blocks", broken)
    outcome = cli("stream", wav, "--model", model, "-o", tmp_path / "meeting.rttm")
    assert (outcome.code, outcome.errors) == (1, ["the rest is broken"])
    assert [end for _, end, _ in turns(outcome.out)] == [1.5, 1.5]
    assert turns((tmp_path / "meeting.rttm").read_text()) == turns(outcome.out)


def test_a_terminal_that_closes_loses_no_file(model: Path, wav: Path, tmp_path: Path):
    """Stdout and stderr are a closed terminal, so nothing can be reported."""
    primary, secondary = os.openpty()
    options = {"stdin": subprocess.PIPE, "stdout": secondary, "stderr": secondary}
    with started("stream", "-", "--model", model, "-o", tmp_path / "meeting.rttm", **options) as running:
        assert running.stdin is not None
        running.stdin.buffer.write(raw(wav))  # pyright: ignore[reportAttributeAccessIssue]
        running.stdin.flush()
        shown = b""
        while b"0:00:01" not in shown:
            shown += os.read(primary, 1000)
        os.close(secondary)
        os.close(primary)
        running.send_signal(signal.SIGHUP)
        assert running.wait(60) == 0
    assert max(end for _, end, _ in turns((tmp_path / "meeting.rttm").read_text())) > 0.9


@NEEDS_DEV_FULL
def test_where_stdout_is_full_the_file_is_written(model: Path, wav: Path, tmp_path: Path):
    with open("/dev/full", "w") as full:
        running = started("stream", wav, "--model", model, "-o", tmp_path / "meeting.rttm", stdout=full, fresh=True)
        _, said = running.communicate()
    assert running.returncode == 0
    assert "stdout cannot be written (No space left on device" in said
    assert turns((tmp_path / "meeting.rttm").read_text()) == EXPECTED


def test_ctrl_c_while_a_file_is_worked_on(cli: Cli, model: Path, wav: Path, monkeypatch: pytest.MonkeyPatch):
    def interrupted(*_: object, **__: object) -> Iterator[np.ndarray]:
        yield audio.read(wav)[:16_000]
        signal.raise_signal(signal.SIGINT)
        yield audio.read(wav)[16_000:24_000]
        raise AssertionError

    monkeypatch.setattr("sortformer.audio.reading.blocks", interrupted)
    outcome = cli("stream", wav, "--model", model)
    assert outcome.code == 0
    assert [end for _, end, _ in turns(outcome.out)] == [1.0, 1.0]


def test_ctrl_c_while_the_model_runs_waits_for_it(cli: Cli, model: Path, wav: Path, monkeypatch: pytest.MonkeyPatch):
    push = Session.push
    monkeypatch.setattr(Session, "push", lambda *given: (signal.raise_signal(signal.SIGINT), push(*given))[1])
    outcome = cli("stream", wav, "--model", model)
    assert outcome.code == 0
    assert [end for _, end, _ in turns(outcome.out)] == [1.0, 1.0]


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("form", ["rttm", "json"])  # of this recording RTTM has no line before its end
def test_the_file_is_written_though_nobody_reads_the_lines_any_more(
    model: Path, wav: Path, tmp_path: Path, form: str, kept: bool
):
    out = tmp_path / f"meeting.{form}"
    with started("stream", wav, "--model", model, "-f", form, *(["-o", out] if kept else []), fresh=True) as running:
        assert running.stdout is not None
        running.stdout.close()
        assert running.wait() == (0 if kept else 1)
        assert running.stderr is not None
        assert running.stderr.read() == ""
    assert not kept or turns(out.read_text() if form == "rttm" else read(out).to_rttm()) == EXPECTED
