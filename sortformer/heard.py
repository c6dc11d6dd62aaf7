"""Reading a recording for a model, with progress reports."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from sortformer.audio import AudioSource
from sortformer.audio.loudness import peak
from sortformer.audio.reading import opened, up_to
from sortformer.config.channel import Channel
from sortformer.config.checks import whole
from sortformer.errors import Cancelled, InputError
from sortformer.grid import SAMPLE_RATE

__all__ = ["Heard", "Progress", "report"]

Progress = Callable[[str, float, float | None], bool | None]
"""Called with a stage (``read``, ``model``, ``turns``), the amount done, and the total or None.

``read`` counts seconds of audio, of a total that may be estimated (``audio.AudioInfo``). So does ``model`` in a stream
or in windows, where the two alternate; otherwise it counts steps, as ``turns`` does. Returning False, or raising,
cancels the work.
"""


@dataclass(eq=False, repr=False)
class Heard:
    """The input of a call, and what is known about it once it has been read."""

    source: AudioSource
    sample_rate: int | None = None
    channel: Channel | None = None
    progress: Progress | None = None
    total_s: float | None = field(default=None, init=False)
    num_samples: int = field(default=0, init=False)
    peak: float = field(default=0.0, init=False)

    @property
    def seconds(self) -> float:
        """Seconds of audio read so far."""
        return self.num_samples / SAMPLE_RATE

    def blocks(self) -> Iterator[np.ndarray]:
        """Yield the audio of the chosen channel, or the mean of all, at 16 kHz."""
        with opened(self.source, self.sample_rate, whole("channel", self.channel)) as (self.total_s, blocks):
            for block in blocks:
                self.num_samples += len(block)
                self.peak = max(self.peak, peak(block))
                yield block
                self.report()

    def worked_through(self, blocks: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
        """Yield blocks, and report each as processed by the model when the next one is requested."""
        done = 0
        for block in blocks:
            yield block
            done += len(block)
            report(self.progress, "model", done / SAMPLE_RATE, self.total_s)

    def read_ahead(self, limit_s: float) -> Iterator[np.ndarray]:
        """Read until ``seconds`` exceeds the limit, or to the end; return all blocks, without keeping those yielded."""
        blocks = self.blocks()
        return self._again(up_to(blocks, limit_s), blocks)

    def _again(self, taken: deque[np.ndarray], rest: Iterator[np.ndarray]) -> Iterator[np.ndarray]:
        while taken:
            yield taken.popleft()
            self.report()  # nothing new, but a chance to cancel
        yield from rest

    def report(self) -> None:
        """Report how much has been read."""
        report(self.progress, "read", self.seconds, self.total_s)


def report(progress: Progress | None, stage: str, done: float, total: float | None) -> None:
    """Report the progress of a stage.

    Raises:
        Cancelled: when ``progress`` returns False.
        InputError: when it is not callable.
    """
    if progress is not None and not callable(progress):
        raise InputError(f"progress must be a function of stage, done and total, got {progress!r}")
    answer = None if progress is None else progress(stage, done, total)
    if isinstance(answer, bool | np.bool_) and not answer:  # not 0, as a write of "" returns it
        raise Cancelled(f"cancelled by the caller, at the stage {stage!r}")
