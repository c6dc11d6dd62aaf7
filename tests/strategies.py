"""Hypothesis strategies for turns, probabilities and numbers of samples."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from sortformer.annotation import Diarization, Turn

__all__ = ["diarizations", "probabilities", "spread", "turn_lists"]


@st.composite
def turn_lists(draw, end_s: float = 20.0, speakers: str = "abcd", grid: int = 100, max_size: int = 10) -> list[Turn]:
    """Turns on a grid of 1/grid seconds with any overlaps, also within a speaker."""
    last = int(end_s * grid)
    result = []
    for _ in range(draw(st.integers(0, max_size))):
        start = draw(st.integers(0, last - 1))
        end = draw(st.integers(start + 1, min(last, start + 5 * grid)))
        result.append(Turn(start / grid, end / grid, draw(st.sampled_from(speakers))))
    return result


@st.composite
def diarizations(draw, grid: int = 100) -> Diarization:
    """Recordings of up to 20 s with up to four speakers."""
    return Diarization(tuple(draw(turn_lists(grid=grid))), draw(st.integers(1, 20 * grid)) / grid)


@st.composite
def probabilities(draw, max_frames: int = 40, max_slots: int = 4) -> np.ndarray:
    """(T, S) probabilities on a coarse grid, so that some equal a threshold."""
    shape = draw(st.tuples(st.integers(0, max_frames), st.integers(1, max_slots)))
    return draw(arrays.arrays(np.int64, shape, elements=st.integers(0, 20))) / 20


def spread(least: int, most: int) -> st.SearchStrategy[int]:
    """Integers from all of a range: if it is wide, those of ``st.integers`` are mostly close to 0.

    Of 0 to 30,000 samples the median would be 1,300, too few for a frame in many models.
    """
    place = st.tuples(st.integers(0, 127), st.integers(0, 127))
    return place.map(lambda digits: least + (most - least) * (128 * digits[0] + digits[1]) // (128**2 - 1))
