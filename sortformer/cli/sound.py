"""Audio sources of a stream: microphone, pipe or file; and the options of each."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from sortformer.cli.console import say
from sortformer.errors import InputError
from sortformer.grid import SAMPLE_RATE

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Sound"]

_STDIN = "-"


class Sound:
    """The audio source of a stream: the microphone (None), a named pipe or stdin (``-``), or a recording.

    The options are those of the command; ``pace`` reads a recording in real time.

    Raises:
        InputError: when an option is for another kind of source, or its value is invalid.
    """

    def __init__(
        self,
        source: str | None,
        rate: int | None,
        channel: int | None,
        encoding: str | None,
        pace: bool,
        microphone: str | None,
    ) -> None:
        from sortformer.audio.arrays import checked_rate
        from sortformer.audio.encodings import encoding_named

        self.source, self.rate, self.channel, self.encoding, self.pace = source, rate, channel, encoding, pace
        self.microphone = microphone
        self.piped = source is not None and (source == _STDIN or Path(source).is_fifo())
        self.live = source is None or self.piped
        if rate is not None and not self.live:
            raise InputError("--rate is only for raw samples and the microphone: files have their own sample rate")
        if rate is not None:
            checked_rate(rate)
        if encoding is not None and not self.piped:
            raise InputError("--encoding is only for raw samples from a pipe: files and microphones have their own")
        if encoding is not None:
            encoding_named(encoding)
        if pace and self.live:
            raise InputError("--pace is only for files: live audio already comes in real time")
        if channel is not None and source is None:
            raise InputError("--channel is only for recordings: a microphone is recorded in one channel anyway")
        if microphone is not None and source is not None:
            raise InputError("--microphone is for listening to one: leave the source out")

    @property
    def uri(self) -> str:
        """The default id of the recording."""
        from sortformer.audio.files import uri_of

        return {None: "microphone", _STDIN: "stdin"}.get(self.source) or uri_of(self.source)

    def check_stdin(self) -> None:
        """Check that stdin is not a terminal if it is the source; note if it is redirected but not used.

        Raises:
            InputError: when it is a terminal.
        """
        if self.source == _STDIN and sys.stdin.isatty():
            raise InputError("'-' reads audio from stdin: pipe some in, or leave it out for the microphone")
        if self.source is None and _redirected():
            say("note: listening to the microphone; '-' reads from stdin instead")

    def blocks(self) -> Iterator[np.ndarray]:
        """Return the audio in (n,) float32 blocks at 16 kHz."""
        from sortformer.audio.live import microphone
        from sortformer.audio.reading import blocks

        if self.source is None:
            return microphone(self.rate or SAMPLE_RATE, self.microphone)
        if self.piped:
            return self._piped(self.source)
        found = blocks(self.source, channel=self.channel, block_s=0.1 if self.pace else 1.0)
        return _paced(found) if self.pace else found

    def _piped(self, source: str) -> Iterator[np.ndarray]:
        from sortformer.audio.live import piped

        with contextlib.nullcontext(sys.stdin.buffer) if source == _STDIN else open(source, "rb") as pipe:
            yield from piped(pipe, self.rate, self.channel, self.encoding)


def _redirected() -> bool:
    """Return whether stdin is a pipe or a file."""
    with contextlib.suppress(OSError):  # stdin may be closed
        mode = os.fstat(0).st_mode
        return stat.S_ISFIFO(mode) or stat.S_ISREG(mode)
    return False


def _paced(blocks: Iterator[np.ndarray]) -> Iterator[np.ndarray]:
    """Yield each block in real time, when its last sample is due."""
    due = time.monotonic()
    for block in blocks:
        due += len(block) / SAMPLE_RATE
        time.sleep(max(0.0, due - time.monotonic()))
        yield block
