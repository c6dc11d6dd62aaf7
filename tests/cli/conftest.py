"""Run the command line inside the test's process."""

import io
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from sortformer.cli import main
from tests.audio.makers import chirp, write
from tests.tiny import tiny_model

Cli = Callable[..., "Outcome"]


@dataclass(frozen=True)
class Outcome:
    """The exit code and output of a command."""

    code: int | str | None
    out: str
    err: str

    @property
    def errors(self) -> list[str]:
        """The lines that report an error, without the prefix."""
        return [line.removeprefix("error: ") for line in self.err.splitlines() if line.startswith("error: ")]


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("cli") / "model")


@pytest.fixture(scope="session")
def deaf_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("cli") / "deaf", speaking=0)


@pytest.fixture
def cli(capfd: pytest.CaptureFixture[str]) -> Cli:
    def run(*arguments: object) -> Outcome:
        capfd.readouterr()
        with pytest.raises(SystemExit) as left:
            main([str(argument) for argument in arguments])
        torch.set_flush_denormal(False)  # a command would change its own process only, here it is the tests'
        out, err = capfd.readouterr()
        assert "Traceback" not in err
        return Outcome(left.value.code, out, err)

    return run


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Path]:
    """Write a signal as a WAV file of the given name."""

    def wav_named(name: str, samples: np.ndarray | None = None, rate: int = 16_000, **options: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return write(path, chirp(1.0, rate) if samples is None else samples, rate, **options)

    return wav_named


class Pipe(io.BytesIO):
    """A stdin that returns blocks of any size, and may send a signal before its end."""

    def __init__(self, content: bytes, piece: int = 1_001, number: signal.Signals | None = None) -> None:
        super().__init__(content)
        self.piece, self.number = piece, number

    def read1(self, size: int | None = -1, /) -> bytes:
        content = self.read(min(self.piece, size or self.piece))
        if not content and self.number is not None:
            signal.raise_signal(self.number)
        return content


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def put(content: bytes, **options: int | signal.Signals) -> None:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=Pipe(content, **options), isatty=lambda: False))

    return put
