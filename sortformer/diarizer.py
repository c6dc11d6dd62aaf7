"""The API: a model that is loaded once, and recordings that go in."""

import os
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

import sortformer
from sortformer import checkpoint
from sortformer.annotation import Diarization, Origin, TimeAxis
from sortformer.audio import AudioSource, probe
from sortformer.audio import blocks as read_blocks
from sortformer.audio.files import name_of, uri_of
from sortformer.audio.signal import INAUDIBLE
from sortformer.checkpoint.licences import remind
from sortformer.config.postprocess import PostprocessConfig
from sortformer.config.presets import model_preset, model_presets, nearest_preset, streams_files
from sortformer.config.stream import StreamConfig
from sortformer.config.strict import to_dict
from sortformer.device import device_named
from sortformer.errors import Cancelled, InputError
from sortformer.estimates import Embeddings, Estimates, Probabilities, layer_estimates
from sortformer.grid import SAMPLE_RATE, FrameGrid
from sortformer.model import Sortformer, SortformerOutput
from sortformer.model.early_exit import check_exits, leave_early
from sortformer.postprocess import keep_slots, speaker_range, turns
from sortformer.streaming import Session, SessionPool, stream_probabilities

__all__ = ["MAX_OFFLINE_S", "Diarizer", "Progress"]

MAX_OFFLINE_S = 1800.0
"""Longest recording that is taken whole; its last blocks compare every frame with every other one."""

OFFLINE = "offline"

FILE_S, LIVE_S = 30.0, 1.0
"""Latencies that a stream aims at where none is asked for: through a file, and live."""

Output = TypeVar("Output")

Progress = Callable[[str, float, float | None], bool | None]
"""Called with a stage (``read``, ``model``, ``turns``), how much of it is done, and of how much where that is known.

``read`` counts seconds of audio, and is all there is in a stream, which works as it reads; the others count steps.
Returning False, or raising, ends the work.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Diarizer:
    """Says who spoke when in recordings. One diarizer may serve many recordings, and many threads.

    Attributes:
        model: in evaluation mode, on the device that shall run it.
        postprocess: how its probabilities become turns, where a call does not say otherwise.
        name: what its results give as their model.
        licence: of the weights, where it is known.
        exit_confidence: stop in the head with the first estimate of this ``confidence``, where a recording is taken
            whole; None runs all of it. `calibrate_exit` finds a value that changes results little.
    """

    model: Sortformer
    postprocess: PostprocessConfig
    name: str
    licence: str | None = None
    exit_confidence: float | None = None

    def __post_init__(self) -> None:
        if self.exit_confidence is not None:
            check_exits(self.model, self.exit_confidence)

    @classmethod
    def load(
        cls, model: str | Path | None = None, device: str = "auto", exit_confidence: float | None = None
    ) -> "Diarizer":
        """Load a model: None for the one inside the package, or the folder of another one.

        Raises:
            InputError: when the device or the model is absent, or the model's files are damaged.
            ConfigError: when the model cannot stop early and ``exit_confidence`` asks for it.
        """
        place = device_named(device)
        held = checkpoint.read(checkpoint.EMBEDDED if model is None else model)
        remind(str(model), held.licence)
        name = "embedded" if model is None else str(model)
        return cls(held.model.to(place), held.postprocess, name, held.licence, exit_confidence)

    @property
    def num_slots(self) -> int:
        """The greatest number of speakers that the model tells apart."""
        return self.model.config.head.num_slots

    @property
    def presets(self) -> dict[str, StreamConfig]:
        """How the model streams, by latency, the longest first; none where it needs the whole recording."""
        return model_presets(self.model.config)

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
        enroll: Mapping[str, AudioSource] = MappingProxyType({}),
        postprocess: PostprocessConfig | None = None,
        progress: Progress | None = None,
    ) -> Diarization:
        """Return who spoke when; speakers are ``speaker_0``, ``speaker_1``, ... in order of arrival.

        Args:
            audio: a path, a binary file object, or an array with its ``sample_rate`` in Hz.
            channel: take this channel, counted from 1, instead of the mean of all.
            preset: ``offline`` takes the recording whole; one of ``presets`` streams through it, in memory that does
                not grow with it. None is ``offline`` up to :data:`MAX_OFFLINE_S`, and the longest of ``presets`` for
                longer recordings, for those with voices to ``enroll``, and for NVIDIA's models that stream.
            num_speakers: exactly so many: the most active slots. Excludes the other two.
            min_speakers: warn when fewer are found; nobody is invented.
            max_speakers: no more than so many.
            exclusive: one speaker at a time, for joining with a transcript.
            enroll: clips of voices by the names that their turns shall bear (see ``Session.enroll``).
            postprocess: instead of the model's own.
            progress: told how far the work is; may cancel it.

        Raises:
            InputError: when the audio or a clip cannot be used, the recording is longer than :data:`MAX_OFFLINE_S` and
                has to be taken whole, or the speaker counts contradict each other or the model.
            ConfigError: when there is no such preset, or the model cannot stream.
            Cancelled: when ``progress`` returned False.

        Warns:
            UserWarning: when nobody was found to speak, or fewer speakers than asked for; when a file is damaged, or
                longer than is taken whole.
        """
        wanted = {"num_speakers": num_speakers, "min_speakers": min_speakers, "max_speakers": max_speakers}
        speaker_range(self.num_slots, **wanted)
        settings = postprocess or self.postprocess
        found, names, preset = self._hear(audio, sample_rate, channel, preset, enroll, progress)
        probs = keep_slots(found.data, settings, found.step_s, **wanted)
        result = turns(
            probs, settings, found.step_s, duration=found.duration, uri=uri_of(audio), exclusive=exclusive, names=names
        )
        if not result.turns:
            warnings.warn(f"no speech found in {name_of(audio)}{_why_not(found)}", stacklevel=2)
        _report(progress, "turns", 1, 1)
        asked = {"preset": preset, "channel": channel, "exclusive": exclusive, "enroll": list(enroll), **wanted}
        if self.exit_confidence is not None:
            asked["exit_confidence"] = self.exit_confidence
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
        return self._hear(audio, sample_rate, channel, preset, {}, progress)[0]

    def stream(
        self,
        preset: str | StreamConfig | None = None,
        *,
        postprocess: PostprocessConfig | None = None,
        max_speakers: int | None = None,
        uri: str = "audio",
    ) -> Session:
        """Begin a live stream; many may share a diarizer.

        Args:
            preset: one of ``presets``, each called by its latency, or a configuration; None takes the latency nearest
                to a second.
            postprocess: instead of the model's own.
            max_speakers: no more than so many: those who come first.
            uri: the recording's id in the result.

        Raises:
            ConfigError: when the model has no such preset, or cannot stream.
            InputError: when ``max_speakers`` is below 1.
        """
        return self.pool(preset, postprocess=postprocess, max_speakers=max_speakers).open(uri)

    def pool(
        self,
        preset: str | StreamConfig | None = None,
        *,
        postprocess: PostprocessConfig | None = None,
        max_speakers: int | None = None,
    ) -> SessionPool:
        """Return what opens live streams that advance together, in batches; arguments and errors as of a stream."""
        speaker_range(self.num_slots, max_speakers=max_speakers)
        if preset is None:
            preset = nearest_preset(self.model.config, LIVE_S)
        config = preset if isinstance(preset, StreamConfig) else model_preset(self.model.config, preset)
        if max_speakers is not None and max_speakers < self.num_slots:
            config = replace(config, max_speakers=max_speakers)
        return SessionPool(self.model, config, postprocess or self.postprocess)

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
        output, said = self._output(audio, sample_rate, channel, progress)
        return Estimates(layer_estimates(output, self.model.config.head.estimate_layers), said)

    def embeddings(
        self,
        audio: AudioSource,
        *,
        sample_rate: int | None = None,
        channel: int | None = None,
        progress: Progress | None = None,
    ) -> Embeddings:
        """Return what the encoder makes of each frame of a recording taken whole; arguments and errors as in a call."""
        output, said = self._output(audio, sample_rate, channel, progress)
        return Embeddings(_array(output.emb), FrameGrid(), said)

    def _hear(
        self,
        audio: AudioSource,
        sample_rate: int | None,
        channel: int | None,
        preset: str | None,
        enroll: Mapping[str, AudioSource],
        progress: Progress | None,
    ) -> tuple[Probabilities, dict[int, str], str]:
        """Probabilities, the names of the slots that were enrolled, and the preset that was used."""
        heard = _Heard(audio, progress)
        blocks = heard.blocks(sample_rate, channel)
        if preset is None and (enroll or streams_files(self.model.config)):
            preset = nearest_preset(self.model.config, FILE_S)
        if preset in (None, OFFLINE):
            if enroll:
                raise InputError("voices can be enrolled only in a stream: leave the preset out, or give another one")
            taken = _up_to_limit(blocks)
            if not heard.too_long:
                return self._whole(heard.again(taken, blocks), heard, progress), {}, OFFLINE
            if preset == OFFLINE or not self.presets:
                raise heard.refusal()
            preset = nearest_preset(self.model.config, FILE_S)
            warnings.warn(
                f"{name_of(audio)} is longer than {MAX_OFFLINE_S / 60:g} minutes, the most that is taken whole: "
                f"streaming through it (preset {preset})",
                stacklevel=4,
            )
            blocks = heard.again(taken, blocks)
        session = Session(self.model, model_preset(self.model.config, preset))
        names = {session.enroll(name, clip): name for name, clip in enroll.items()}
        return self._probabilities(stream_probabilities(session, blocks), heard), names, preset

    def _whole(self, blocks: Iterable[np.ndarray], heard: "_Heard", progress: Progress | None) -> Probabilities:
        """Probabilities of a recording that is taken whole, by as much of the head as it needs."""
        if self.exit_confidence is None:
            output = self._run(self.model.forward_features, blocks, progress)
            return self._probabilities(_array(output.probs), heard, self.model.config.head.layers)
        early = self._run(partial(leave_early, self.model, confidence=self.exit_confidence), blocks, progress)
        return self._probabilities(_array(early.probs), heard, int(early.layers))

    def _output(
        self, audio: AudioSource, sample_rate: int | None, channel: int | None, progress: Progress | None
    ) -> tuple[SortformerOutput, Probabilities]:
        """All that the model gives for a recording taken whole, and its probabilities."""
        heard = _Heard(audio, progress)
        blocks = heard.blocks(sample_rate, channel)
        taken = _up_to_limit(blocks)
        if heard.too_long:
            raise heard.refusal()
        output = self._run(self.model.forward_features, heard.again(taken, blocks), progress)
        return output, self._probabilities(_array(output.probs), heard, self.model.config.head.layers)

    def _run(
        self, forward: Callable[[Tensor, Tensor], Output], blocks: Iterable[np.ndarray], progress: Progress | None
    ) -> Output:
        """What the model makes of a whole recording's features, in two steps between which it can be stopped."""
        wave = torch.from_numpy(np.concatenate(list(blocks)))
        with torch.inference_mode():
            feats, lengths = self.model.features(wave[None].to(self.device))
            _report(progress, "model", 1, 2)
            output = forward(feats, lengths)
            _report(progress, "model", 2, 2)
        return output

    def _probabilities(self, data: np.ndarray, heard: "_Heard", layers: int | None = None) -> Probabilities:
        if heard.peak < INAUDIBLE:
            # What a model says about digital silence is an accident of its training.
            data = np.zeros_like(data)
        return Probabilities(data, self.model.config.grid.step_s, heard.num_samples / SAMPLE_RATE, layers=layers)

    def _origin(self, found: Probabilities, settings: Mapping[str, Any]) -> Origin:
        axis = TimeAxis(found.start_s, found.step_s, len(found.data))
        return Origin(self.name, sortformer.__version__, settings, axis)


class _Heard:
    """A recording on its way to the model, and what is known of it afterwards."""

    def __init__(self, source: AudioSource, progress: Progress | None) -> None:
        self.source = source
        self.progress = progress
        self.total_s: float | None = None
        self.num_samples = 0
        self.peak = 0.0

    @property
    def too_long(self) -> bool:
        """Is it longer than what is taken whole?"""
        return self.num_samples > MAX_OFFLINE_S * SAMPLE_RATE

    def refusal(self) -> InputError:
        """The error of a recording that is too long."""
        return InputError(
            f"{name_of(self.source)} is longer than {MAX_OFFLINE_S / 60:g} minutes, the most that memory and "
            "time allow to take whole: cut it, or stream through it with a model and a preset that can"
        )

    def blocks(self, sample_rate: int | None, channel: int | None) -> Iterator[np.ndarray]:
        """Yield the recording."""
        if self.progress is not None and isinstance(self.source, str | os.PathLike):
            self.total_s = probe(self.source).duration_s
        for block in read_blocks(self.source, sample_rate, channel):
            self.num_samples += len(block)
            self.peak = max(self.peak, float(np.abs(block).max()))
            yield block
            self.report()

    def again(self, taken: deque[np.ndarray], rest: Iterator[np.ndarray]) -> Iterator[np.ndarray]:
        """Yield what has been ``taken`` already, giving it up, and then the rest."""
        while taken:
            yield taken.popleft()
            self.report()  # no news, but a chance to stop
        yield from rest

    def report(self) -> None:
        """Tell how much has been read."""
        _report(self.progress, "read", self.num_samples / SAMPLE_RATE, self.total_s)


def _up_to_limit(blocks: Iterator[np.ndarray]) -> deque[np.ndarray]:
    """The blocks of a recording, up to the one that makes it too long to be taken whole."""
    taken, seconds = deque[np.ndarray](), 0.0
    for block in blocks:
        taken.append(block)
        seconds += len(block) / SAMPLE_RATE
        if seconds > MAX_OFFLINE_S:
            break
    return taken


def _report(progress: Progress | None, stage: str, done: float, total: float | None) -> None:
    if progress is not None and progress(stage, done, total) is False:
        raise Cancelled(f"cancelled by the caller, at the stage {stage!r}")


def _array(rows: Tensor) -> np.ndarray:
    """The one row of a batch, such as probabilities (T, S)."""
    return rows[0].float().cpu().numpy()


def _why_not(found: Probabilities) -> str:
    return "" if found.data.any() else ": it is silent"
