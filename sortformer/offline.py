"""Offline inference: a model's output for a whole recording, at once or window by window."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from sortformer.audio import AudioSource
from sortformer.audio.files import name_of, uri_of
from sortformer.audio.loudness import UNHEARD, alike_loud
from sortformer.audio.signal import INAUDIBLE
from sortformer.audio.windows import windows
from sortformer.clustering import by_voice
from sortformer.config.clustering import ClusteringConfig
from sortformer.enrolled import LEAST_SPEECH_S, mean_voice, no_voice
from sortformer.errors import InputError
from sortformer.estimates import Probabilities, only_row
from sortformer.grid import FrameGrid
from sortformer.heard import Heard, Progress, report
from sortformer.model import Sortformer, SortformerOutput
from sortformer.model.early_exit import leave_early
from sortformer.shares import in_finer_frames

__all__ = [
    "MAX_OFFLINE_S",
    "Whole",
    "at_once",
    "clip_voice",
    "forward",
    "in_windows",
    "probabilities",
    "read_ahead",
    "too_long",
    "too_long_for",
    "whole_output",
]

MAX_OFFLINE_S = 1800.0
"""Longest recording that is processed at once: the last blocks attend from every frame to every other."""

WINDOW_FRAMES, MARGIN_FRAMES = 1000, 63
"""A window is 80 s, with 5 s more on each side; 10 s or 20 s were no better."""

Output = TypeVar("Output")


@dataclass(frozen=True, slots=True, eq=False)
class Whole:
    """A model's output for a recording.

    Attributes:
        probs: (U, S) probabilities of the slots, in order of arrival (within each window, if there are several).
        emb: (T, D) the encoder's embeddings.
        layers: blocks of the head that were run.
        finer: frames of ``probs`` for each frame of ``emb``; the last may have fewer.
    """

    probs: np.ndarray
    emb: np.ndarray
    layers: int
    finer: int = 1

    @property
    def fine_emb(self) -> np.ndarray:
        """The embeddings at the rate of ``probs``, (U, D)."""
        return np.repeat(self.emb, self.finer, axis=0)[: len(self.probs)]

    def voices(
        self,
        clustering: ClusteringConfig,
        fewest: int = 1,
        most: int | None = None,
        known: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return probabilities (U, K) of the voices; see ``by_voice``."""
        starts = np.arange(0, len(self.probs), self.finer)
        pooled = np.add.reduceat(self.probs, starts, axis=0) / np.diff(starts, append=len(self.probs))[:, None]
        share = by_voice(pooled.astype(self.probs.dtype), self.emb, clustering, max(1, fewest), most, known=known)
        return in_finer_frames(share, self.probs, self.finer)


def at_once(
    model: Sortformer,
    blocks: Iterable[np.ndarray],
    exit_confidence: float | None = None,
    progress: Progress | None = None,
    level: float | None = None,
) -> Whole:
    """Run a model over all samples, with an early exit from its head at ``exit_confidence`` (None: no early exit).

    ``level`` is that of the whole recording, as for ``forward``.

    Raises:
        Cancelled: if ``progress`` wants no more.
    """
    if exit_confidence is None:
        output = forward(model, model.forward_features, blocks, progress, level)
        layers = model.config.head.layers
    else:
        output = forward(model, partial(leave_early, model, confidence=exit_confidence), blocks, progress, level)
        layers = int(output.layers)
    return Whole(only_row(output.probs), only_row(output.emb), layers, model.config.head.upsampling)


def in_windows(model: Sortformer, blocks: Iterable[np.ndarray], exit_confidence: float | None = None) -> Whole:
    """Run a model over a recording of any length, in windows with a margin of context on both sides.

    The level of a window is that of the audio read so far.
    """
    grid, parts, finer = model.config.grid, list[Whole](), model.config.head.upsampling
    step, level, start, heard = FrameGrid().step_samples, UNHEARD, 0, 0
    for window in windows(blocks, WINDOW_FRAMES * step, MARGIN_FRAMES * step):
        end = start - window.before + len(window.samples)
        level = level.after(window.samples[len(window.samples) - (end - heard) :])  # windows overlap
        start, heard = start + window.length, end
        found, first = at_once(model, [window.samples], exit_confidence, level=level.value), window.before // step
        count = grid.output_frames(window.length)
        with np.errstate(under="ignore"):  # also where a program lets numpy raise
            emb = found.emb[first : first - (-count // finer)].astype(np.float16)  # 17 MB an hour
        parts.append(Whole(found.probs[first * finer : first * finer + count], emb, found.layers))
    probs, emb = (np.concatenate([getattr(part, name) for part in parts]) for name in ("probs", "emb"))
    return Whole(probs, emb, max(part.layers for part in parts), finer)


def clip_voice(
    model: Sortformer,
    name: str,
    wave: np.ndarray,
    clustering: ClusteringConfig,
    exit_confidence: float | None = None,
) -> np.ndarray:
    """Return the mean direction (D,) of the embeddings of the main speaker of a clip, to be called ``name``.

    ``wave`` is (n,) as ``read_clip`` returns it.

    Raises:
        InputError: if the clip has too little speech.
    """
    found = in_windows(model, [wave], exit_confidence)
    probs = found.voices(clustering)
    spoken = (probs > 0.5).sum(axis=0) * model.config.grid.step_s
    mean = mean_voice(probs, found.fine_emb, int(spoken.argmax()))
    if spoken.max() < LEAST_SPEECH_S or mean is None:
        raise no_voice(name)
    return mean


def whole_output(model: Sortformer, heard: Heard) -> tuple[SortformerOutput, Probabilities]:
    """Run a model over a whole recording at once; return its output, and the probabilities of the recording.

    Raises:
        InputError: if it is longer than :data:`MAX_OFFLINE_S`, or cannot be read.
        Cancelled: if its progress callback cancels.
    """
    blocks, fits = read_ahead(heard)
    if not fits:
        raise too_long(heard.source)
    output = forward(model, model.forward_features, blocks, heard.progress)
    return output, probabilities(model, heard, only_row(output.probs), model.config.head.layers)


def read_ahead(heard: Heard) -> tuple[Iterator[np.ndarray], bool]:
    """Return the blocks of a recording, and whether it is short enough to be processed at once."""
    blocks = heard.read_ahead(MAX_OFFLINE_S)
    return blocks, heard.seconds <= MAX_OFFLINE_S


def too_long(source: AudioSource) -> InputError:
    """Return the error for a recording that is too long to be processed at once."""
    return InputError(
        f"{too_long_for(source)}, set by memory and time: cut it, or stream it, with a model and a preset that can"
    )


def too_long_for(source: AudioSource) -> str:
    """Return in words which recording is too long, and for what."""
    return f"{name_of(source)} exceeds the limit of {MAX_OFFLINE_S / 60:g} minutes for offline processing"


def probabilities(model: Sortformer, heard: Heard, data: np.ndarray, layers: int | None = None) -> Probabilities:
    """Wrap a model's output (T, S), from ``layers`` blocks of its head, for a recording that has been read."""
    if heard.peak < INAUDIBLE:
        # What a model says about digital silence is an accident of its training.
        data = np.zeros_like(data)
    return Probabilities(data, model.config.grid.step_s, heard.seconds, layers, uri_of(heard.source))


def forward(
    model: Sortformer,
    run: Callable[[Tensor, Tensor], Output],
    blocks: Iterable[np.ndarray],
    progress: Progress | None = None,
    level: float | None = None,
) -> Output:
    """Compute the features of all samples, and return ``run`` of them; it can be cancelled in between.

    Where the features want it (``FeatureConfig.alike_loud``), all recordings are made alike loud first (the function of
    that name). ``level`` is that of the whole recording (None: of these samples).

    Raises:
        Cancelled: if ``progress`` wants no more.
    """
    samples = np.concatenate(list(blocks))
    if model.config.features.alike_loud:
        samples = alike_loud(samples, level)
    wave = torch.from_numpy(samples)
    with torch.inference_mode():
        feats, lengths = model.features(wave[None].to(model.device))
        report(progress, "model", 1, 2)
        output = run(feats, lengths)
        report(progress, "model", 2, 2)
    return output
