"""One speaker per channel: calls with each side on a channel, and meetings with a microphone for each speaker.

Each channel is processed by itself, and all its speech is assigned to one speaker. Cross-talk from another channel (an
echo in the line, a microphone that picks up its neighbour) is detected by comparing the power of both; for other
features, see Wrigley et al., "Speech and Crosstalk Detection in Multichannel Audio", IEEE Trans. Speech Audio Proc.
13(1), 2005.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from sortformer.audio import num_channels, read
from sortformer.audio.arrays import MAX_CHANNELS
from sortformer.audio.files import can_be_read_again, name_of, uri_of
from sortformer.audio.loudness import decibels
from sortformer.audio.offset import centred
from sortformer.errors import InputError
from sortformer.estimates import Probabilities
from sortformer.grid import SAMPLE_RATE, FrameGrid
from sortformer.heard import Heard, Progress, report
from sortformer.unnamed import channel_name
from sortformer.warned import warn

__all__ = ["by_channel", "leaks", "own_speech"]

Used = TypeVar("Used")

_HEARD = 0.5
_LOUD = 10 ** (-10 / 10)  # relative to the 90 % quantile of a channel's power in frames with speech
_LONGEST_DELAY_S = 0.32  # of an echo
_STEADY = 10 ** (9 / 10)
_LATER = 3.0  # a leak that is so much louder after a delay is a late one
_LOUDER = 3.0  # than a possible leak: the channel's own speech
_LEAKY, _SAME = 10 ** (-12 / 10), 10 ** (-6 / 10)
_TOGETHER = 0.5  # share of the frames with speech in one channel that have it in the other one, too
_LOST = 0.5  # share of the frames with speech that have none after leaks are removed
_RESIDUE = 0.05  # share of the speech in a channel that may remain of what is only cross-talk
_SAME_VOICES = "have the same voices, not one per channel: process it as a whole"
_SILENCE = 1e-12  # power floor, so that ratios are defined
_AT_ONCE = 1000  # frames processed at once


def by_channel(
    heard: Heard, hear: Callable[[Heard], tuple[Probabilities, Any, Used]]
) -> tuple[Probabilities, dict[int, str], Used]:
    """Return the speech probabilities (T, C) of the channels of a recording, their names, and the preset used.

    Each channel is read in a pass of its own, and held in memory while ``hear`` processes it as a recording: it returns
    probabilities, something that is ignored, and the preset used, of which that of the first channel is returned.

    Raises:
        InputError: when there is one channel only, or more than 64, two hold the same voices, or the recording comes
            through a pipe, which can be read only once.

    Warns:
        SortformerWarning: when a channel is silent, has only cross-talk, or picks up another so loudly that its own
            soft speech is lost.
    """
    name = name_of(heard.source)
    if not can_be_read_again(heard.source):
        raise InputError("each channel is read separately, but a pipe can be read only once: save the recording first")
    count = num_channels(heard.source, heard.sample_rate)
    if count < 2:
        raise InputError(f"{name} has one channel, not one per speaker: process it as a whole")
    if count > MAX_CHANNELS:  # the file is decoded once for each, and each is compared with all others
        raise InputError(f"{name} has {count} channels, too many for one speaker each: the most are {MAX_CHANNELS}")
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
        warn(f"channel {column + 1} of {name} is silent", stacklevel=4)
    spoken = np.stack([np.minimum(said.data.sum(axis=1), 1.0) for said, _ in found], axis=1)
    leak = leaks(spoken, power, first.step_s, heard.progress)
    own = own_speech(spoken, power, leak, first.step_s)
    _check_apart(spoken, own, leak, name)
    heard_in, left = ((probs > _HEARD).sum(axis=0) for probs in (spoken, own))
    for column in np.flatnonzero((heard_in > 0) & (left <= _RESIDUE * heard_in)):
        warn(
            f"the speech in channel {column + 1} of {name} is cross-talk, by its level: if it has the same voices as "
            "another channel, process the recording as a whole",
            stacklevel=4,
        )
    names = {column: channel_name(column) for column in range(count)}
    return replace(first, data=own), names, how


def leaks(spoken: np.ndarray, power: np.ndarray, step_s: float, progress: Progress | None = None) -> np.ndarray:
    """Return the share of each channel's power that leaks into each other one, (C, C), from row to column.

    It is the median ratio of the two powers over the frames in which the source (row) is as loud as its speech. So
    constant noise counts as a leak, too. It is at most 1, and at most 9 dB above the 20 % quantile of the ratio: a leak
    is always present, while somebody who speaks at the same time, however much, is not. A late echo is not present when
    the source begins: if at some delay, up to 0.32 s, the result is more than 3 times as great, it is that one. Without
    speech in the source it is 0.

    Args:
        spoken: (T, C) speech probabilities of each channel, in frames of ``step_s`` seconds.
        power: (T, C) of the same frames.
        progress: called for each channel, at the stage ``turns``; may cancel.
    """
    lately, heard, count = _lately(power, step_s), spoken > _HEARD, power.shape[1]
    leak = np.zeros((count, count))
    for source in range(count):
        report(progress, "turns", source, count)
        if not heard[:, source].any():
            continue
        loud = np.flatnonzero(power[:, source] >= _LOUD * np.quantile(power[heard[:, source], source], 0.9))
        for channel in {*range(count)} - {source}:
            by_delay = list[float]()
            for delay in range(min(_longest_delay(step_s), len(power) - 1 - loud[0]) + 1):
                at = loud[loud < len(power) - delay] + delay
                low, middle = np.quantile(power[at, channel] / lately[at, source], (0.2, 0.5))
                by_delay.append(min(1.0, middle, _STEADY * low))
            at_once, most = by_delay[0], max(by_delay)
            leak[source, channel] = most if most > _LATER * at_once else at_once
    return leak


def own_speech(spoken: np.ndarray, power: np.ndarray, leak: np.ndarray, step_s: float) -> np.ndarray:
    """Return the speech probabilities (T, C) of each channel, 0 where it may be a leak from another one.

    Args:
        spoken, power, step_s: as for ``leaks``.
        leak: the result of ``leaks``.
    """
    lately, leaked = _lately(power, step_s), np.zeros_like(power)
    for source, share in enumerate(leak):  # for all at once, the products of an hour of 64 channels would take 1.5 GB
        np.maximum(leaked, lately[:, source, None] * share, out=leaked)
    return np.where(power > _LOUDER * leaked, spoken, spoken.dtype.type(0))


def _lately(power: np.ndarray, step_s: float) -> np.ndarray:
    """Return the greatest power (T, C) from the longest leak delay before each frame to the frame after it."""
    back = _longest_delay(step_s)
    around = np.pad(power, ((back, 1), (0, 0)))
    return np.lib.stride_tricks.sliding_window_view(around, back + 2, axis=0).max(axis=-1)


def _longest_delay(step_s: float) -> int:
    """Return the longest delay of a leak, in frames."""
    grid = FrameGrid()
    return grid.samples(_LONGEST_DELAY_S) // grid.samples(step_s)


def _power(wave: np.ndarray, count: int, step_s: float) -> np.ndarray:
    """Return the mean power (T,), without DC offset, of samples (N,) in ``count`` frames of ``step_s`` seconds."""
    length, state, power = FrameGrid().samples(step_s), None, np.full(count, _SILENCE)
    for start in range(0, count, _AT_ONCE):  # for an hour at once, the copies would be three times as large
        end = min(start + _AT_ONCE, count)
        samples, state = centred(wave[start * length : end * length], state)
        frames = np.pad(samples, (0, (end - start) * length - len(samples))).reshape(-1, length)
        power[start:end] += np.einsum("tn,tn->t", frames, frames, dtype=np.float64) / length
    return power


def _check_apart(spoken: np.ndarray, own: np.ndarray, leak: np.ndarray, name: str) -> None:
    """Refuse channels that hold the same voices, and warn of those that nearly do.

    Noise may be equally loud in both channels, but does not make their speech coincide.
    """
    heard = (spoken > _HEARD).astype(np.float64)
    together = heard.T @ heard > _TOGETHER * heard.sum(axis=0)
    mutual = np.minimum(leak, leak.T) * (together & together.T)
    one, other = np.unravel_index(mutual.argmax(), mutual.shape)
    worst, both = mutual[one, other], f"channels {one + 1} and {other + 1} of {name}"
    if worst > _SAME:
        raise InputError(f"{both} {_SAME_VOICES}")
    # If one channel is a softer copy of the other, it looks as if the softer one leaked into the louder, too.
    somebody = (spoken > _HEARD).any(axis=1)
    if (somebody & ~(own > _HEARD).any(axis=1)).sum() > _LOST * somebody.sum():
        raise InputError(f"the channels of {name} {_SAME_VOICES}")
    if worst > _LEAKY:
        warn(
            f"{both} have cross-talk ({decibels(math.sqrt(worst)):.0f} dB): soft speech in one of them is lost",
            stacklevel=5,
        )


def _as_part(progress: Progress, part: int, parts: int, stage: str, done: float, total: float | None) -> bool | None:
    """Report the progress of the whole, given that of one of its consecutive parts."""
    return progress(stage, done, None) if total is None else progress(stage, part * total + done, parts * total)
