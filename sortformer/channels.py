"""A speaker a channel: calls whose two sides were recorded apart, and talks with a microphone for each.

Each channel is heard by itself, and all its speech is one speaker's. What of it is another channel's that leaks in (an
echo in the line, a microphone that hears its neighbour) is told by how loud both are; for what else tells cross-talk,
see Wrigley et al., "Speech and Crosstalk Detection in Multichannel Audio", IEEE Trans. Speech Audio Proc. 13(1), 2005.
"""

import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import permutations
from typing import Any, TypeVar

import numpy as np

from sortformer.annotation import channel_name
from sortformer.audio import num_channels, read
from sortformer.audio.files import can_be_read_again, name_of, uri_of
from sortformer.audio.loudness import decibels
from sortformer.audio.offset import centred
from sortformer.errors import InputError
from sortformer.estimates import Probabilities
from sortformer.grid import SAMPLE_RATE, FrameGrid
from sortformer.heard import Heard, Progress

__all__ = ["by_channel", "leaks", "own_speech"]

Used = TypeVar("Used")

_HEARD = 0.5
_LOUD = 10 ** (-10 / 10)  # of what a channel's power exceeds in a tenth of the frames in which somebody is heard
_LONGEST_DELAY_S = 0.32  # of an echo
_STEADY = 10 ** (9 / 10)
_LOUDER = 3.0  # than what may have leaked in: speech of its own
_LEAKY, _SAME = 10 ** (-12 / 10), 10 ** (-6 / 10)
_TOGETHER = 0.5  # of the frames in which one of them is heard, the other one is, too
_LOST = 0.5  # of the frames in which somebody is heard, nobody is after leaks are taken away
_SAME_VOICES = "hold the same voices, which have no channel of their own: take it as a whole"
_SILENCE = 1e-12  # power: what is below it is as loud
_AT_ONCE = 1000  # frames


def by_channel(
    heard: Heard, hear: Callable[[Heard], tuple[Probabilities, Any, Used]]
) -> tuple[Probabilities, dict[int, str], Used]:
    """Return the probabilities (T, C) that somebody speaks into each channel of a recording, and what these are called.

    It is read once for each channel, which is in memory as a whole while ``hear`` says of it, as of a recording of its
    own, who speaks, and how it was taken; that of the first channel is returned, too.

    Raises:
        InputError: when there is one channel only, two hold the same voices, or the recording comes through a pipe,
            which can be read only once.

    Warns:
        UserWarning: when a channel is silent, or hears another so loudly that what is soft in it is lost.
    """
    name = name_of(heard.source)
    if not can_be_read_again(heard.source):
        raise InputError("each channel is read by itself, and a pipe can be read only once: save the recording first")
    count = num_channels(heard.source, heard.sample_rate)
    if count < 2:
        raise InputError(f"{name} has one channel, so its speakers have none of their own: take it as a whole")
    found, powers = list[tuple[Probabilities, Used]](), list[np.ndarray]()
    for column in range(count):
        wave = read(heard.source, heard.sample_rate, column + 1)
        told = None if heard.progress is None else partial(_as_part, heard.progress, column, count)
        part = Heard({"waveform": wave, "sample_rate": SAMPLE_RATE, "uri": uri_of(heard.source)}, progress=told)
        said, _, how = hear(part)
        found.append((said, how))
        powers.append(_power(wave, len(found[0][0].data), said.step_s))
        heard.num_samples, heard.peak = part.num_samples, max(heard.peak, part.peak)
    power, (first, how) = np.stack(powers, axis=1), found[0]
    for column in np.flatnonzero((power <= _SILENCE).all(axis=0)) if heard.peak else ():
        warnings.warn(f"channel {column + 1} of {name} is silent", stacklevel=4)
    spoken = np.stack([np.minimum(said.data.sum(axis=1), 1.0) for said, _ in found], axis=1)
    leak = leaks(spoken, power, first.step_s)
    own = own_speech(spoken, power, leak, first.step_s)
    _check_apart(spoken, own, leak, name)
    names = {column: channel_name(column) for column in range(count)}
    return replace(first, data=own), names, how


def leaks(spoken: np.ndarray, power: np.ndarray, step_s: float) -> np.ndarray:
    """Return how much of the power of each channel is heard in each other one, (C, C), from the row's in the column's.

    It is the median of the ratio of both where the first is as loud as who is heard in it, so noise counts as a leak,
    too: whatever is no louder when the first is silent. It is at most 1, and at most 9 dB above what the ratio exceeds
    in four fifths of these frames: a leak is always there, and who speaks at the same time, however much, is not. Of a
    channel in which nobody is heard it is 0.

    Args:
        spoken: (T, C) probabilities that somebody is heard in each channel, in frames of ``step_s`` seconds.
        power: (T, C) of the same frames.
    """
    lately, heard, count = _lately(power, step_s), spoken > _HEARD, power.shape[1]
    leak = np.zeros((count, count))
    for source, channel in permutations(range(count), 2):
        if not heard[:, source].any():
            continue
        at = power[:, source] >= _LOUD * np.quantile(power[heard[:, source], source], 0.9)
        low, middle = np.quantile(power[at, channel] / lately[at, source], (0.2, 0.5))
        leak[source, channel] = min(1.0, middle, _STEADY * low)
    return leak


def own_speech(spoken: np.ndarray, power: np.ndarray, leak: np.ndarray, step_s: float) -> np.ndarray:
    """Return probabilities (T, C) that somebody speaks into each channel: 0 where it may be another channel's leak.

    Args:
        spoken, power, step_s: as for ``leaks``.
        leak: what that found.
    """
    leaked = (_lately(power, step_s)[:, :, None] * leak).max(axis=1)
    return np.where(power > _LOUDER * leaked, spoken, spoken.dtype.type(0))


def _lately(power: np.ndarray, step_s: float) -> np.ndarray:
    """The greatest power (T, C) since the longest delay of a leak, and of the next frame, which may have begun."""
    grid = FrameGrid()
    back = grid.samples(_LONGEST_DELAY_S) // grid.samples(step_s)
    around = np.pad(power, ((back, 1), (0, 0)))
    return np.lib.stride_tricks.sliding_window_view(around, back + 2, axis=0).max(axis=-1)


def _power(wave: np.ndarray, count: int, step_s: float) -> np.ndarray:
    """The mean power (T,) of frames of ``step_s`` seconds of samples (N,), without their offset."""
    length, state, power = FrameGrid().samples(step_s), None, np.full(count, _SILENCE)
    for start in range(0, count, _AT_ONCE):  # of an hour at once, the copies would be three times as large
        end = min(start + _AT_ONCE, count)
        samples, state = centred(wave[start * length : end * length], state)
        frames = np.pad(samples, (0, (end - start) * length - len(samples))).reshape(-1, length)
        power[start:end] += np.einsum("tn,tn->t", frames, frames, dtype=np.float64) / length
    return power


def _check_apart(spoken: np.ndarray, own: np.ndarray, leak: np.ndarray, name: str) -> None:
    """Refuse channels that hold the same voices, and warn of those that nearly do.

    Noise is as loud in both channels, too, but does not make one speak when the other does.
    """
    heard = (spoken > _HEARD).astype(np.float64)
    together = heard.T @ heard > _TOGETHER * heard.sum(axis=0)
    mutual = np.minimum(leak, leak.T) * (together & together.T)
    one, other = np.unravel_index(mutual.argmax(), mutual.shape)
    worst, both = mutual[one, other], f"channels {one + 1} and {other + 1} of {name}"
    if worst > _SAME:
        raise InputError(f"{both} {_SAME_VOICES}")
    # Where one is the other, only softer, the softer one leaks into the louder for all that is known.
    somebody = (spoken > _HEARD).any(axis=1)
    if (somebody & ~(own > _HEARD).any(axis=1)).sum() > _LOST * somebody.sum():
        raise InputError(f"the channels of {name} {_SAME_VOICES}")
    if worst > _LEAKY:
        warnings.warn(
            f"{both} hear each other ({decibels(math.sqrt(worst)):.0f} dB): what is soft in one of them is lost",
            stacklevel=5,
        )


def _as_part(progress: Progress, part: int, parts: int, stage: str, done: float, total: float | None) -> bool | None:
    """Tell how far the whole is, of which one part after the other is worked on."""
    return progress(stage, done, None) if total is None else progress(stage, part * total + done, parts * total)
