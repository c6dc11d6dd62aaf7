"""The main API: a diarizer, which is loaded once and applied to many recordings."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

import sortformer
from sortformer import checkpoint
from sortformer.annotation import Diarization, Origin
from sortformer.audio import AudioSource
from sortformer.audio.arrays import is_array
from sortformer.audio.files import name_of
from sortformer.audio.loudness import how_quiet
from sortformer.config.channel import EACH, Channel, channel_of, check_speakers
from sortformer.config.checks import switch, whole
from sortformer.config.postprocess import PostprocessConfig
from sortformer.config.presets import as_postprocess, model_presets, nearest_preset
from sortformer.config.stream import StreamConfig
from sortformer.config.strict import to_dict
from sortformer.device import device_named
from sortformer.enrolled import read_clip
from sortformer.errors import InputError
from sortformer.estimates import Embeddings, Estimates, Probabilities, layer_estimates, only_row
from sortformer.formats.names import check_person, without_folder
from sortformer.grid import FrameGrid
from sortformer.heard import Heard, Progress, report
from sortformer.inference import OFFLINE, Enrolled, Inference, preset_of, stream_config
from sortformer.model import Sortformer, check_model
from sortformer.model.early_exit import check_exits
from sortformer.offline import MAX_OFFLINE_S, in_windows, probabilities, whole_output
from sortformer.speaker_count import keep_slots, speaker_range, warn_if_full
from sortformer.streaming import Session, SessionPool
from sortformer.warned import note, warn, warned

__all__ = ["MAX_OFFLINE_S", "Diarizer", "Progress"]

_LIVE_S = 1.0  # default latency of a live stream


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Diarizer:
    """A model with its post-processing. One diarizer may serve many recordings and many threads.

    Attributes:
        model: in evaluation mode, on the device to run on.
        postprocess: how probabilities become turns, unless a call overrides it.
        name: the model's name in results.
        licence: of the weights, if known.
        exit_confidence: exit early in the head, at the first estimate of this ``confidence``, when a recording is
            processed whole; None: never. `calibrate_exit` finds a value that changes turns by slot little; it
            guarantees nothing for turns by voice, where the post-processing clusters.

    Raises:
        InputError: when the model is not a ``Sortformer`` in evaluation mode.
        ConfigError: when ``exit_confidence`` is given, and invalid or the model cannot exit early.
    """

    model: Sortformer
    postprocess: PostprocessConfig
    name: str
    licence: str | None = None
    exit_confidence: float | None = None

    def __post_init__(self) -> None:
        check_model(self.model)
        object.__setattr__(self, "postprocess", as_postprocess(self.postprocess))
        if self.exit_confidence is not None:
            check_exits(self.model, self.exit_confidence)

    def __repr__(self) -> str:
        return f"Diarizer(name={self.name!r}, num_slots={self.num_slots}, device='{self.device}')"

    @classmethod
    def load(
        cls, model: str | Path | None = None, device: str | torch.device = "auto", exit_confidence: float | None = None
    ) -> "Diarizer":
        """Load a model; None is the one in the package.

        ``model`` is a folder, a ``.nemo`` file, or the id of a model on Hugging Face.

        Raises:
            InputError: when the device or the model is missing, or the model's files are damaged.
            ConfigError: when ``exit_confidence`` is given, and invalid or the model cannot exit early.
        """
        if not isinstance(model, str | Path | None):
            raise InputError(f"a model must be a folder, a .nemo file or an id, got {type(model).__name__}")
        place = device_named(device)
        held = checkpoint.read(checkpoint.EMBEDDED if model is None else model)
        name = "embedded" if model is None else str(model)
        return cls(held.model.to(place), held.postprocess, name, held.licence, exit_confidence)

    @property
    def num_slots(self) -> int:
        """Number of slots, the output channels of the model."""
        return self.model.config.head.num_slots

    def speaker_limit(
        self, preset: str | StreamConfig | None = None, postprocess: PostprocessConfig | str | None = None
    ) -> int:
        """Return how many speakers a call with these arguments can tell apart, unless it asks for more."""
        settings, used = self._settings(postprocess), preset_of(self.model.config, preset)
        if used == OFFLINE:
            return self.num_slots if settings.clustering is None else settings.clustering.max_speakers
        return stream_config(self.model.config, used, settings).speaker_limit(self.num_slots)

    @property
    def presets(self) -> dict[str, StreamConfig]:
        """Stream configurations of the model with its post-processing, by latency, the longest first.

        Empty if it needs whole recordings. Change one with ``dataclasses.replace``.
        """
        config = self.model.config
        return {name: stream_config(config, name, self.postprocess) for name in model_presets(config)}

    @property
    def device(self) -> torch.device:
        """The device that the model runs on."""
        return self.model.device

    def __call__(
        self,
        audio: AudioSource,
        *,
        sample_rate: int | None = None,
        channel: Channel | None = None,
        preset: str | StreamConfig | None = None,
        num_speakers: int | None = None,
        min_speakers: int | None = None,
        max_speakers: int | None = None,
        exclusive: bool = False,
        enroll: Mapping[str, AudioSource] | None = None,
        postprocess: PostprocessConfig | str | None = None,
        progress: Progress | None = None,
    ) -> Diarization:
        """Return who spoke when; speakers are ``speaker_0``, ``speaker_1``, ... in order of arrival.

        Args:
            audio: a path, a binary file object, an array with its ``sample_rate`` in Hz, or a mapping of ``waveform``
                and ``sample_rate``, of ``array`` and ``sampling_rate``, of ``bytes`` and ``path``, or of ``audio``,
                which may have a ``uri``: the recording's id in the result. The default id is the file name without
                its suffix, or ``audio``.
            channel: use this channel, counted from 1, instead of the mean of all; "each" processes each by itself, as
                one speaker, ``channel_1``, ``channel_2``, ... (see ``channels.py``).
            preset: ``offline`` processes the recording whole; one of ``presets``, or a stream configuration, streams
                it in constant memory. None means ``offline`` if the post-processing clusters, or if the recording is
                no longer than :data:`MAX_OFFLINE_S` and there is nobody to ``enroll``; otherwise, and for NVIDIA's
                streaming models, the preset nearest to 30 s.
            num_speakers: exactly that many, if they are heard. Excludes the other two.
            min_speakers: at least that many, if they are heard. If the post-processing clusters, clusters are split
                until there are enough; slots never are. A warning says if fewer are heard in the end.
            max_speakers: at most that many, those who speak most. If the post-processing clusters, the speech of
                others goes to the voices most similar to theirs; in a stream with clips to ``enroll``, that of up to
                as many others as there are clips is left out.
            exclusive: one speaker at a time, for joining with a transcript.
            enroll: clips of known speakers, by the names that their turns get; the main speaker of a clip counts. If
                the post-processing clusters and the recording is processed whole, clusters are compared with the clips;
                otherwise the stream hears the clips first (see ``Session.enroll``). With as many clips as speakers at
                most, nobody else is expected, and each speaker gets one of the names. Clips that are arrays have the
                ``sample_rate`` (None: 16 kHz). For many recordings, see :meth:`enrolled`.
            postprocess: instead of the model's own, possibly the name of a published one: ``v2-dihard3``, ...
            progress: called with the progress of the work; may cancel it.

        Raises:
            InputError: when the audio or a clip cannot be used, clips were enrolled for other calls, the recording has
                to be processed whole and is longer than :data:`MAX_OFFLINE_S`, or the speaker counts contradict each
                other or the model.
            ConfigError: when there is no such preset or post-processing, or the model cannot stream.
            Cancelled: when ``progress`` returned False.

        Warns:
            SortformerWarning: also in the result's ``origin.warnings``: when no speech was found, fewer speakers than
                asked for, or as many as can be told apart, unless no more were wanted; when a file is damaged, has
                several audio tracks, or is too long to be processed whole; when clips of two people have similar
                voices.
        """
        wanted = {"num_speakers": num_speakers, "min_speakers": min_speakers, "max_speakers": max_speakers}
        wanted = {name: whole(name, number) for name, number in wanted.items()}
        channel = channel_of(channel)
        clips, exclusive = _at_rate({} if enroll is None else enroll, sample_rate), switch("exclusive", exclusive)
        check_speakers(channel, clips, *wanted.values())
        settings = self._settings(postprocess).with_room_for(**wanted)
        limit = self.speaker_limit(preset, settings)
        fewest, most = speaker_range(limit, **wanted)
        heard = Heard(audio, sample_rate, channel, progress)
        way = Inference(self.model, settings, preset, self.exit_confidence, clips, fewest, most)
        with warned() as faults:
            if isinstance(enroll, Enrolled):
                way = enroll.known_to(way)
                for fault in enroll.faults:
                    note(fault)
            found, names, used = way.run(heard)
            kept = None if channel == EACH else keep_slots(found.data, settings, found.step_s, fewest, most)
            result = found.turns(settings, exclusive=exclusive, names=names, slots=kept)
            if not result.turns:
                warn(f"no speech found in {name_of(audio)}{how_quiet(heard.peak)}", stacklevel=2)
            stream = preset if isinstance(preset, StreamConfig) else None
            if channel != EACH:
                allowed = num_speakers or max_speakers or (stream and stream.max_speakers)
                warn_if_full(name_of(audio), len(result.speakers), limit, (stream or settings).clustering, allowed)
        report(progress, "turns", 1, 1)
        used = to_dict(used) if isinstance(used, StreamConfig) else used
        asked = {"preset": used, "channel": channel, "exclusive": exclusive, "enroll": list(clips), **wanted}
        if self.exit_confidence is not None:
            asked["exit_confidence"] = self.exit_confidence
        result = replace(result, origin=found.origin(self.name, asked | {"postprocess": to_dict(settings)}))
        files = [name_of(each) for each in (audio, *(enroll or {}).values())]
        return result.warned(faults, *files)

    def enrolled(
        self,
        clips: Mapping[str, AudioSource],
        *,
        sample_rate: int | None = None,
        preset: str | StreamConfig | None = None,
        postprocess: PostprocessConfig | str | None = None,
    ) -> Mapping[str, AudioSource]:
        """Return clips to ``enroll`` in many calls, read-only, which then neither read them nor compute their voices.

        Where the calls stream, each still has to hear the clips. Arguments as in these calls: those in which the clips
        would have other voices refuse them.

        Raises:
            InputError: when a clip or a name cannot be used.
            ConfigError: when there is no such preset or post-processing, or the model cannot stream.

        Warns:
            SortformerWarning: when a file is damaged, or clips of two people have similar voices. The results of the
                calls have it in their ``origin.warnings``.
        """
        given = _at_rate(clips, sample_rate)
        way = Inference(self.model, self._settings(postprocess), preset, self.exit_confidence)
        compares = way.compares  # before the clips are read: it refuses presets
        with warned() as faults:
            way = replace(way, clips={name: (read_clip(name, *clip), None) for name, clip in given.items()})
            way = replace(way, voices=way.enrolled(stacklevel=3) if compares else None)
        faults = [without_folder(each, *map(name_of, clips.values())) for each in faults]
        return Enrolled(dict(clips), way.clips, way.voices, way.depends, faults)

    def probabilities(
        self,
        audio: AudioSource,
        *,
        sample_rate: int | None = None,
        channel: Channel | None = None,
        preset: str | StreamConfig | None = None,
        postprocess: PostprocessConfig | str | None = None,
        progress: Progress | None = None,
    ) -> Probabilities:
        """Return the speaker probabilities of each frame and slot; arguments and errors as in a call.

        If the post-processing clusters, they are those of voices instead of slots; nothing else of it is applied.
        """
        heard = Heard(audio, sample_rate, channel_of(channel), progress)
        way = Inference(self.model, self._settings(postprocess), preset, self.exit_confidence)
        return way.run(heard).probabilities

    def stream(
        self,
        preset: str | StreamConfig | None = None,
        *,
        postprocess: PostprocessConfig | str | None = None,
        max_speakers: int | None = None,
        uri: str = "audio",
    ) -> Session:
        """Start a live stream; many may share a diarizer.

        Args:
            preset: one of ``presets``, named by latency, or a configuration, which is used unchanged; None is the
                latency nearest to 1 s.
            postprocess: instead of the model's own, as in a call.
            max_speakers: at most that many: all who are enrolled, and then those who arrive first. By voice, it may be
                more than eight, up to 40, unless ``preset`` is a configuration, which has its own limit.
            uri: the recording's id in the result.

        Raises:
            ConfigError: when there is no such preset or post-processing, or the model cannot stream.
            InputError: when ``max_speakers`` is not an integer of 1 or more, or ``uri`` not a non-empty string.
        """
        return self.pool(preset, postprocess=postprocess, max_speakers=max_speakers).open(uri)

    def pool(
        self,
        preset: str | StreamConfig | None = None,
        *,
        postprocess: PostprocessConfig | str | None = None,
        max_speakers: int | None = None,
    ) -> SessionPool:
        """Return a pool of live streams that advance together, in batches; arguments and errors as of ``stream``."""
        if preset is None:
            preset = nearest_preset(self.model.config, _LIVE_S)
        settings, wanted = self._settings(postprocess), whole("max_speakers", max_speakers)
        if not isinstance(preset, StreamConfig):
            settings = settings.with_room_for(max_speakers=wanted)
        config = stream_config(self.model.config, preset, settings)
        if wanted is not None and wanted <= config.speaker_limit(self.num_slots):
            config = replace(config, max_speakers=wanted)
        used = to_dict(preset) if isinstance(preset, StreamConfig) else preset
        asked = {"preset": used, "max_speakers": wanted, "postprocess": to_dict(settings)}
        return SessionPool(self.model, config, settings, Origin(self.name, sortformer.__version__, asked))

    def estimates(
        self,
        audio: AudioSource,
        *,
        sample_rate: int | None = None,
        channel: int | None = None,
        progress: Progress | None = None,
    ) -> Estimates:
        """Return the estimates and arrival order of each estimating layer, for a recording processed whole.

        They are by slot, even if a call would cluster by voice. Arguments and errors as in a call.
        """
        output, said = whole_output(self.model, Heard(audio, sample_rate, channel, progress))
        return Estimates(layer_estimates(output, self.model.config.head.estimate_layers), said)

    def embeddings(
        self,
        audio: AudioSource,
        *,
        sample_rate: int | None = None,
        channel: int | None = None,
        progress: Progress | None = None,
    ) -> Embeddings:
        """Return the encoder's embeddings of a recording processed whole; arguments and errors as in a call."""
        heard, clustering = Heard(audio, sample_rate, channel, progress), self.postprocess.clustering
        if clustering is None:
            output, said = whole_output(self.model, heard)
            return Embeddings(only_row(output.emb), FrameGrid(), said)
        found = in_windows(self.model, heard.worked_through(heard.blocks()), self.exit_confidence)
        said = probabilities(self.model, heard, found.voices(clustering), found.layers)
        return Embeddings(found.emb.astype(np.float32), FrameGrid(), said)

    def _settings(self, postprocess: PostprocessConfig | str | None) -> PostprocessConfig:
        """Return the post-processing of a call."""
        return self.postprocess if postprocess is None else as_postprocess(postprocess)


def _at_rate(clips: Mapping[str, AudioSource], sample_rate: int | None) -> dict[str, tuple[AudioSource, int | None]]:
    """Return clips with the sample rate of those that are arrays.

    Raises:
        InputError: when they are no mapping, or a name cannot be used.
    """
    if not isinstance(clips, Mapping):
        raise InputError(f"clips to enroll must be a mapping of names to clips, got {type(clips).__name__}")
    found: dict[str, tuple[AudioSource, int | None]] = {}
    for name, clip in clips.items():
        check_person(name, found)
        found[name] = clip, sample_rate if is_array(clip) else None
    return found
