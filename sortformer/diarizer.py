"""The API: a model that is loaded once, and recordings that go in."""

import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import sortformer
from sortformer import checkpoint
from sortformer.annotation import Diarization, Origin, TimeAxis
from sortformer.audio import AudioSource, probe
from sortformer.audio import blocks as read_blocks
from sortformer.audio.files import is_file, name_of
from sortformer.config.postprocess import PostprocessConfig
from sortformer.config.stream import StreamConfig, stream_preset
from sortformer.config.strict import to_dict
from sortformer.device import device_named
from sortformer.errors import Cancelled, InputError
from sortformer.grid import SAMPLE_RATE
from sortformer.model import Sortformer, SortformerOutput
from sortformer.model.arrival import arrival_frames, arrival_ranks
from sortformer.postprocess import keep_slots, speaker_range, turns
from sortformer.streaming import stream_probabilities

__all__ = ["MAX_OFFLINE_S", "Diarizer", "Estimates", "LayerEstimate", "Probabilities", "Progress", "preset_named"]

MAX_OFFLINE_S = 1800.0
"""Longest recording that is taken whole; its last blocks compare every frame with every other one."""

OFFLINE = "offline"

INAUDIBLE = 2.0**-15
"""One step of 16-bit audio: a recording that never exceeds it is digital silence."""

Progress = Callable[[str, float, float | None], bool | None]
"""Called with a stage (``read``, ``model``, ``turns``), how much of it is done, and of how much where that is known.

``read`` counts seconds of audio, and is all there is in a stream, which works as it reads; the others count steps.
Returning False, or raising, ends the work.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Probabilities:
    """Speaker probabilities: row ``t`` covers ``step_s`` seconds from ``start_s + t * step_s`` on."""

    data: np.ndarray  # (T, S) float32, slots in order of arrival
    step_s: float
    duration: float
    start_s: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class LayerEstimate:
    """What the model believes after ``layer`` of its head's blocks; its classes (K) stand in any order."""

    layer: int
    data: np.ndarray  # (T, K) float32 probabilities
    arrival_frames: np.ndarray  # (K,) first frame in which a class is active; T where it never is
    ranks: np.ndarray  # (K,) 0 for the class that arrives first


@dataclass(frozen=True, slots=True, eq=False)
class Estimates:
    """The estimates of each layer that makes them, from the lowest on, and what the model says in the end."""

    layers: tuple[LayerEstimate, ...]
    output: Probabilities


@dataclass(frozen=True, slots=True, eq=False)
class Diarizer:
    """Says who spoke when in recordings. One diarizer may serve many recordings, and many threads.

    Attributes:
        model: in evaluation mode, on the device that shall run it.
        postprocess: how its probabilities become turns, where a call does not say otherwise.
        name: what its results give as their model.
    """

    model: Sortformer
    postprocess: PostprocessConfig
    name: str

    @classmethod
    def load(cls, model: str | Path | None = None, device: str = "auto") -> "Diarizer":
        """Load a model: None for the one inside the package, or the folder of another one.

        Raises:
            InputError: when the device or the model is absent, or the model's files are damaged.
        """
        place = device_named(device)
        # Activations that fade to denormal numbers would slow a CPU down many times.
        torch.set_flush_denormal(True)
        network, settings = checkpoint.load(checkpoint.EMBEDDED if model is None else model)
        return cls(network.to(place), settings, "embedded" if model is None else str(model))

    @property
    def num_slots(self) -> int:
        """The greatest number of speakers that the model tells apart."""
        return self.model.config.head.num_slots

    @property
    def device(self) -> torch.device:
        """Where the model runs."""
        return next(self.model.parameters()).device

    def __call__(
        self,
        audio: AudioSource,
        *,
        sample_rate: int | None = None,
        channel: int | None = None,
        preset: str | None = None,
        num_speakers: int | None = None,
        min_speakers: int | None = None,
        max_speakers: int | None = None,
        exclusive: bool = False,
        postprocess: PostprocessConfig | None = None,
        progress: Progress | None = None,
    ) -> Diarization:
        """Return who spoke when; speakers are ``speaker_0``, ``speaker_1``, ... in order of arrival.

        Args:
            audio: a path, a binary file object, or an array with its ``sample_rate`` in Hz.
            channel: take this channel, counted from 1, instead of the mean of all.
            preset: ``offline`` (also None) takes the recording whole; ``30s``, ``10s``, ... stream through it, in
                memory that does not grow with it (see ``config.stream.STREAM_PRESETS``).
            num_speakers: exactly so many: the most active slots. Excludes the other two.
            min_speakers: warn when fewer are found; nobody is invented.
            max_speakers: no more than so many.
            exclusive: one speaker at a time, for joining with a transcript.
            postprocess: instead of the model's own.
            progress: told how far the work is; may cancel it.

        Raises:
            InputError: when the audio cannot be used, or is longer than :data:`MAX_OFFLINE_S` and to be taken whole, or
                the speaker counts contradict each other or the model.
            ConfigError: when there is no such preset, or the model cannot stream.
            Cancelled: when ``progress`` returned False.

        Warns:
            UserWarning: when nobody was found to speak, or fewer speakers than asked for; when a file is damaged.
        """
        wanted = {"num_speakers": num_speakers, "min_speakers": min_speakers, "max_speakers": max_speakers}
        speaker_range(self.num_slots, **wanted)
        settings = postprocess or self.postprocess
        found = self.probabilities(audio, sample_rate=sample_rate, channel=channel, preset=preset, progress=progress)
        probs = keep_slots(found.data, settings, found.step_s, **wanted)
        result = turns(probs, settings, found.step_s, duration=found.duration, uri=_uri(audio), exclusive=exclusive)
        if not result.turns:
            warnings.warn(f"no speech found in {name_of(audio)}{_why_not(found)}", stacklevel=2)
        _report(progress, "turns", 1, 1)
        asked = {"preset": preset or OFFLINE, "channel": channel, "exclusive": exclusive, **wanted}
        return replace(result, origin=self._origin(found, asked | {"postprocess": to_dict(settings)}))

    def probabilities(
        self,
        audio: AudioSource,
        *,
        sample_rate: int | None = None,
        channel: int | None = None,
        preset: str | None = None,
        progress: Progress | None = None,
    ) -> Probabilities:
        """Return how probable it is, frame by frame, that each slot speaks; arguments and errors as in a call."""
        config = preset_named(preset)
        heard = _Heard(audio, progress)
        blocks = heard.blocks(sample_rate, channel, whole=config is None)
        if config is None:
            data = _array(self._run(blocks, progress).probs)
        else:
            data = stream_probabilities(self.model, config, blocks)
        if heard.peak < INAUDIBLE:
            # What a model says about digital silence is an accident of its training.
            data = np.zeros_like(data)
        return self._probabilities(data, heard)

    def estimates(
        self,
        audio: AudioSource,
        *,
        sample_rate: int | None = None,
        channel: int | None = None,
        progress: Progress | None = None,
    ) -> Estimates:
        """Return what each layer that estimates believes, and who arrives first for it, for a recording taken whole.

        Arguments and errors as in a call.
        """
        heard = _Heard(audio, progress)
        output = self._run(heard.blocks(sample_rate, channel, whole=True), progress)
        layers = tuple(
            _estimate(layer, torch.sigmoid(logits))
            for layer, logits in zip(self.model.config.head.estimate_layers, output.estimates, strict=True)
        )
        return Estimates(layers, self._probabilities(_array(output.probs), heard))

    def _run(self, blocks: Iterator[np.ndarray], progress: Progress | None) -> SortformerOutput:
        """The model's output for a whole recording, in two steps between which it can be stopped."""
        wave = torch.from_numpy(np.concatenate(list(blocks)))
        with torch.inference_mode():
            feats, lengths = self.model.features(wave[None].to(self.device))
            _report(progress, "model", 1, 2)
            output = self.model.forward_features(feats, lengths)
            _report(progress, "model", 2, 2)
        return output

    def _probabilities(self, data: np.ndarray, heard: "_Heard") -> Probabilities:
        return Probabilities(data, self.model.config.grid.step_s, heard.num_samples / SAMPLE_RATE)

    def _origin(self, found: Probabilities, settings: Mapping[str, Any]) -> Origin:
        axis = TimeAxis(found.start_s, found.step_s, len(found.data))
        return Origin(self.name, sortformer.__version__, settings, axis)


def preset_named(name: str | None) -> StreamConfig | None:
    """Return how a preset cuts recordings: None for ``offline``, which takes them whole.

    Raises:
        ConfigError: when there is no such preset.
    """
    return None if name in (None, OFFLINE) else stream_preset(name)


class _Heard:
    """A recording on its way to the model, and what is known of it afterwards."""

    def __init__(self, source: AudioSource, progress: Progress | None) -> None:
        self.source = source
        self.progress = progress
        self.num_samples = 0
        self.peak = 0.0

    def blocks(self, sample_rate: int | None, channel: int | None, *, whole: bool) -> Iterator[np.ndarray]:
        """Yield the recording; where it is taken ``whole``, give it up as soon as it turns out to be too long."""
        total_s = None
        if self.progress is not None and isinstance(self.source, str | os.PathLike):
            total_s = probe(self.source).duration_s
        for block in read_blocks(self.source, sample_rate, channel):
            self.num_samples += len(block)
            self.peak = max(self.peak, float(np.abs(block).max()))
            seconds = self.num_samples / SAMPLE_RATE
            if whole and seconds > MAX_OFFLINE_S:
                raise InputError(
                    f"{name_of(self.source)} is longer than {MAX_OFFLINE_S / 60:g} minutes, the most that memory and "
                    "time allow to take whole: cut it, or stream it with a preset such as 30s"
                )
            yield block
            _report(self.progress, "read", seconds, total_s)


def _report(progress: Progress | None, stage: str, done: float, total: float | None) -> None:
    if progress is not None and progress(stage, done, total) is False:
        raise Cancelled(f"cancelled by the caller, at the stage {stage!r}")


def _estimate(layer: int, probs: Tensor) -> LayerEstimate:
    arrivals = arrival_frames(probs)
    ranks = arrival_ranks(arrivals)
    return LayerEstimate(layer, _array(probs), arrivals[0].cpu().numpy(), ranks[0].cpu().numpy())


def _array(probs: Tensor) -> np.ndarray:
    """The one row of a batch of probabilities, (T, S)."""
    return probs[0].float().cpu().numpy()


def _uri(source: AudioSource) -> str:
    return (Path(name_of(source)).stem if is_file(source) else "") or "audio"


def _why_not(found: Probabilities) -> str:
    return "" if found.data.any() else ": it is silent"
