"""Conversion between samples, frames and seconds, with the rounding of the models' time axis."""

from dataclasses import dataclass

import numpy as np

__all__ = ["HOP_SAMPLES", "LONGEST_S", "SAMPLE_RATE", "FrameGrid"]

SAMPLE_RATE = 16_000
HOP_SAMPLES = 160
"""Hop between feature frames: 10 ms."""

LONGEST_S = 1e9
"""The latest time in manifests, words, annotation formats and settings: 31 years, which is exact in microseconds."""


@dataclass(frozen=True, slots=True)
class FrameGrid:
    """The division of audio into feature frames (10 ms) and output frames (80 ms) of ``subsampling`` feature frames.

    Output frame ``t`` covers the samples ``[t * step_samples, (t + 1) * step_samples)``.
    """

    sample_rate: int = SAMPLE_RATE
    hop_samples: int = HOP_SAMPLES
    subsampling: int = 8

    def __post_init__(self) -> None:
        if min(self.sample_rate, self.hop_samples, self.subsampling) < 1:
            raise ValueError(f"a frame grid needs positive integers, got {self}")

    @property
    def step_samples(self) -> int:
        """Samples in one output frame."""
        return self.hop_samples * self.subsampling

    @property
    def step_s(self) -> float:
        """Seconds in one output frame."""
        return self.step_samples / self.sample_rate

    def feature_frames(self, num_samples: int) -> int:
        """Number of valid feature frames in ``num_samples`` samples; a partial hop does not count."""
        return num_samples // self.hop_samples

    def output_frames(self, num_samples: int) -> int:
        """Number of valid output frames in ``num_samples`` samples; a partial group of feature frames counts."""
        return -(-self.feature_frames(num_samples) // self.subsampling)

    def samples(self, time_s: float) -> int:
        """The sample nearest to a time in seconds."""
        return round(time_s * self.sample_rate)

    def seconds(self, frame: int) -> float:
        """Start of an output frame in seconds."""
        return frame * self.step_samples / self.sample_rate

    def coverage(self, start_s: float, end_s: float, num_frames: int) -> np.ndarray:
        """Return the fraction of each output frame that the interval covers, (num_frames,) in [0, 1].

        Computed in whole samples, so that a half is exact.
        """
        edges = np.arange(num_frames + 1) * self.step_samples
        clipped = np.clip(edges, self.samples(start_s), max(self.samples(start_s), self.samples(end_s)))
        return np.diff(clipped) / self.step_samples
