"""Long recordings as windows, each with a margin of context before and after."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

__all__ = ["Window", "windows"]


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """A window of a recording with its context: ``length`` samples, from sample ``before`` of ``samples`` on."""

    samples: np.ndarray  # (n,) float32
    before: int
    length: int


def windows(blocks: Iterable[np.ndarray], length: int, margin: int) -> Iterator[Window]:
    """Yield a recording, given as blocks of samples, in windows of ``length`` with up to ``margin`` on each side.

    A recording no longer than ``length + margin`` is one window. Memory holds no more than one window and one block.
    """
    held, waiting, before, whole = np.zeros(0, np.float32), list[np.ndarray](), 0, True
    for block in blocks:
        waiting.append(block)
        if len(held) + sum(map(len, waiting)) <= before + length + margin:
            continue
        held, waiting = np.concatenate([held, *waiting]), []
        while len(held) > before + length + margin:
            yield Window(held[: before + length + margin], before, length)
            held, before = _moved_on(held, before, length, margin)
            whole = False
    held = np.concatenate([held, *waiting])
    if whole:
        yield Window(held, 0, len(held))
        return
    while len(held) - before > length:
        yield Window(held, before, length)
        held, before = _moved_on(held, before, length, margin)
    yield Window(held, before, len(held) - before)


def _moved_on(held: np.ndarray, before: int, length: int, margin: int) -> tuple[np.ndarray, int]:
    """Return the samples kept for the next window, and how many of them precede it."""
    cut = max(0, before + length - margin)
    return held[cut:], before + length - cut
