"""Samples, frames and seconds, and how they are rounded on the time axis of the models."""

from dataclasses import dataclass

import numpy as np

__all__ = ["HOP_SAMPLES", "LONGEST_S", "SAMPLE_RATE", "FrameGrid"]

SAMPLE_RATE = 16_000
HOP_SAMPLES = 160
"""From one feature frame to the next: 10 ms."""

LONGEST_S = 1e9
"""The latest time in lists, words, NIST's formats and settings: 31 years, whose microseconds can still be counted."""


@dataclass(frozen=True, slots=True)
class FrameGrid:
    """How audio is cut into feature frames (10 ms) and, ``subsampling`` of these to each, output frames (80 ms).

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
        """Valid feature frames of ``num_samples`` samples: a started hop does not count."""
        return num_samples // self.hop_samples

    def output_frames(self, num_samples: int) -> int:
        """Valid output frames of ``num_samples`` samples: a started group of feature frames does count."""
        return -(-self.feature_frames(num_samples) // self.subsampling)

    def samples(self, time_s: float) -> int:
        """The sample nearest to a time in seconds."""
        return round(time_s * self.sample_rate)

    def seconds(self, frame: int) -> float:
        """Start of an output frame in seconds."""
        return frame * self.step_samples / self.sample_rate

    def coverage(self, start_s: float, end_s: float, num_frames: int) -> np.ndarray:
        """Return the share of each output frame, (num_frames,) in [0, 1], that the interval covers.

        Computed in whole samples, so that "half of the frame" is exact.
        """
        edges = np.arange(num_frames + 1) * self.step_samples
        clipped = np.clip(edges, self.samples(start_s), max(self.samples(start_s), self.samples(end_s)))
        return np.diff(clipped) / self.step_samples
