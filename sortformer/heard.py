"""A recording on its way to a model: what has been read of it, and who is told so."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from sortformer.audio import AudioSource
from sortformer.audio.loudness import peak
from sortformer.audio.reading import opened
from sortformer.config.channel import Channel
from sortformer.config.checks import whole
from sortformer.errors import Cancelled, InputError
from sortformer.grid import SAMPLE_RATE

__all__ = ["Heard", "Progress", "report"]

Progress = Callable[[str, float, float | None], bool | None]
"""Called with a stage (``read``, ``model``, ``turns``), how much of it is done, and of how much where that is known.

``read`` counts seconds of audio. So does ``model`` in a stream or in windows, where the two alternate; otherwise it
counts steps, as ``turns`` does. Returning False, or raising, ends the work.
"""


class Heard:
    """A recording on its way to the model, and what is known of it afterwards."""

    def __init__(
        self,
        source: AudioSource,
        sample_rate: int | None = None,
        channel: Channel | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.source = source
        self.sample_rate = sample_rate
        self.channel = channel
        self.progress = progress
        self.total_s: float | None = None
        self.num_samples = 0
        self.peak = 0.0

    @property
    def seconds(self) -> float:
        """How much has been read."""
        return self.num_samples / SAMPLE_RATE

    def blocks(self) -> Iterator[np.ndarray]:
        """Yield the recording, of which one channel is meant, or the mean of all."""
        with opened(self.source, self.sample_rate, whole("channel", self.channel)) as (self.total_s, blocks):
            for block in blocks:
                self.num_samples += len(block)
                self.peak = max(self.peak, peak(block))
                yield block
                self.report()

    def worked_through(self, blocks: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
        """Yield blocks to what works on them as they come, and tell how far it is."""
        done = 0
        for block in blocks:
            yield block
            done += len(block)
            report(self.progress, "model", done / SAMPLE_RATE, self.total_s)

    def again(self, taken: deque[np.ndarray], rest: Iterator[np.ndarray]) -> Iterator[np.ndarray]:
        """Yield what has been ``taken`` already, giving it up, and then the rest."""
        while taken:
            yield taken.popleft()
            self.report()  # no news, but a chance to stop
        yield from rest

    def report(self) -> None:
        """Tell how much has been read."""
        report(self.progress, "read", self.seconds, self.total_s)


def report(progress: Progress | None, stage: str, done: float, total: float | None) -> None:
    """Tell how far a stage is.

    Raises:
        Cancelled: when the caller wants no more.
        InputError: when it is no function.
    """
    if progress is not None and not callable(progress):
        raise InputError(f"progress is a function of stage, done and total, got {progress!r}")
    if progress is not None and progress(stage, done, total) is False:
        raise Cancelled(f"cancelled by the caller, at the stage {stage!r}")
