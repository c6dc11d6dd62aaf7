"""Inference on a recording: at once, in windows by voice, as a stream, or channel by channel."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from sortformer.audio import AudioSource
from sortformer.channels import by_channel
from sortformer.config.carrying import carries
from sortformer.config.channel import EACH
from sortformer.config.clustering import ClusteringConfig
from sortformer.config.model import ModelConfig
from sortformer.config.postprocess import PostprocessConfig
from sortformer.config.presets import model_preset, model_presets, nearest_preset, streams_files
from sortformer.config.stream import StreamConfig
from sortformer.enrolled import names_of_voices, read_clip, warn_of_likeness
from sortformer.errors import InputError
from sortformer.estimates import Probabilities
from sortformer.heard import Heard
from sortformer.model import Sortformer
from sortformer.model.identity import identity
from sortformer.offline import at_once, clip_voice, in_windows, probabilities, read_ahead, too_long, too_long_for
from sortformer.speaker_count import first_heard
from sortformer.streaming import Session, stream_probabilities
from sortformer.warned import warn

__all__ = ["OFFLINE", "Enrolled", "Found", "Inference", "Preset", "preset_of", "stream_config"]

OFFLINE = "offline"

Preset = str | StreamConfig

_FILE_S = 30.0  # default latency of a stream through a file
# Numbers of clusters to try, from the wanted one up, and then down, until enough speakers are heard. With dozens of
# clusters each try takes as long as the model.
_TRIES = 4


class Found(NamedTuple):
    """What is found in a recording: probabilities, the names of known slots, and the preset that was used."""

    probabilities: Probabilities
    names: dict[int, str]
    preset: Preset


def preset_of(config: ModelConfig, preset: Preset | None, must_stream: bool = False) -> Preset:
    """Return the preset for a recording; None is ``offline``, or the one for files where a stream is needed or better.

    Raises:
        ConfigError: when there is no such preset, or the model has to stream, and cannot.
    """
    if preset is not None:
        if preset != OFFLINE and not isinstance(preset, StreamConfig):
            model_preset(config, preset)
        return preset
    return nearest_preset(config, _FILE_S) if must_stream or streams_files(config) else OFFLINE


def stream_config(config: ModelConfig, preset: Preset, settings: PostprocessConfig) -> StreamConfig:
    """Return the stream configuration of a preset, by voice if the settings cluster and layers carry no state.

    Raises:
        ConfigError: when there is no such preset, or the model cannot stream.
    """
    if isinstance(preset, StreamConfig):
        return preset
    found = model_preset(config, preset)
    return found if carries(config) else replace(found, clustering=settings.clustering)


@dataclass(frozen=True, slots=True, eq=False)
class Inference:
    """A way to run a model on recordings.

    Attributes:
        model: in evaluation mode.
        settings: the post-processing that follows, whose clustering is done here.
        preset: as in a call of a diarizer.
        exit_confidence: as that of a diarizer.
        clips: of speakers to enroll, with their sample rates, by name.
        fewest, most: the least and the greatest number of speakers, where clustering decides it. With as many clips as
            ``most``, nobody else is expected, and each speaker gets one of their names.
        voices: of the clips, as `enrolled` returns them; None: not known yet.
    """

    model: Sortformer
    settings: PostprocessConfig
    preset: Preset | None = None
    exit_confidence: float | None = None
    clips: Mapping[str, tuple[AudioSource, int | None]] = field(default_factory=dict)
    fewest: int = 0
    most: int | None = None
    voices: Mapping[str, np.ndarray] | None = None

    @property
    def compares(self) -> bool:
        """Whether the voices of whole recordings are compared with those of the clips; otherwise streams hear these.

        Raises:
            ConfigError: when there is no such preset, or the model cannot stream.
        """
        return preset_of(self.model.config, self.preset) == OFFLINE and self.settings.clustering is not None

    @property
    def _closed(self) -> bool:
        return self.most == len(self.clips)

    @property
    def depends(self) -> tuple[object, ...] | None:
        """What the voices of clips depend on; None where streams hear the clips."""
        clustering = self.settings.clustering if self.compares else None
        return clustering and (identity(self.model, self.model.config), clustering.threshold, self.exit_confidence)

    def enrolled(self, stacklevel: int, before_each: Callable[[], None] = lambda: None) -> dict[str, np.ndarray]:
        """Return the mean direction (D,) of the voice of each clip; the settings must cluster.

        ``stacklevel`` is that of warnings; ``before_each`` is called before each clip.

        Raises:
            InputError: when a clip cannot be used.
        """
        assert self.settings.clustering is not None
        known = dict[str, np.ndarray]()
        for name, clip in self.clips.items():
            before_each()
            wave = read_clip(name, *clip)
            voice = clip_voice(self.model, name, wave, self.settings.clustering, self.exit_confidence)
            warn_of_likeness(name, voice, known, self.settings.clustering.threshold, stacklevel + 1)
            known[name] = voice
        return known

    def run(self, heard: Heard) -> Found:
        """Process a recording as a stream, in windows by voice, or at once, by the preset; or channel by channel.

        Raises:
            InputError: when the recording or a clip cannot be used, or the model cannot do what is asked for.
            ConfigError: when there is no such preset, or the model cannot stream.
            Cancelled: when the progress callback of the recording cancels.
        """
        if heard.channel == EACH:
            return Found(*by_channel(heard, self.run))
        config, clustering = self.model.config, self.settings.clustering
        if self.clips and clustering is None and not model_presets(config):
            raise InputError("this model does not support enrolment: it neither streams nor clusters; use another one")
        used = preset_of(config, self.preset, must_stream=bool(self.clips) and clustering is None)
        if used != OFFLINE:
            return self._streamed(heard, heard.blocks(), used)
        if clustering is not None:
            return self._by_voice(heard, clustering)
        if self.clips:
            raise InputError(
                "without clustering, voices can be enrolled only in a stream: leave the preset out, or give another one"
            )
        blocks, fits = read_ahead(heard)
        if fits:
            found = at_once(self.model, blocks, self.exit_confidence, heard.progress)
            return Found(probabilities(self.model, heard, found.probs, found.layers), {}, OFFLINE)
        if self.preset == OFFLINE or not model_presets(config):
            raise too_long(heard.source)
        used = preset_of(config, None, must_stream=True)
        warn(f"{too_long_for(heard.source)}: streaming it instead (preset {used})", stacklevel=3)
        return self._streamed(heard, blocks, used)

    def _by_voice(self, heard: Heard, clustering: ClusteringConfig) -> Found:
        # A report, of nothing new, is a chance to cancel.
        known = self.enrolled(5, heard.report) if self.voices is None else self.voices
        found = in_windows(self.model, heard.worked_through(heard.blocks()), self.exit_confidence)
        fewest, most = self.fewest, self.most
        more, fewer = range(fewest, fewest + _TRIES), range(fewest - 1, max(0, fewest - _TRIES), -1)
        people = np.stack([*known.values()]) if self._closed else None
        tries = (found.voices(clustering, voices, most and max(voices, most), people) for voices in (*more, *fewer, 0))
        probs = first_heard(tries, self.settings, self.model.config.grid.step_s, fewest)
        distance = math.inf if self._closed else clustering.threshold
        names = names_of_voices(probs, found.fine_emb, known, distance)
        return Found(probabilities(self.model, heard, probs, found.layers), names, OFFLINE)

    def _streamed(self, heard: Heard, blocks: Iterator[np.ndarray], preset: Preset) -> Found:
        # Whoever is enrolled has a slot, but may be absent, so the speakers to keep are chosen at the end.
        room = self.most if self.most is None or self._closed else self.most + len(self.clips)
        config = stream_config(self.model.config, preset, self.settings.with_room_for(max_speakers=room))
        config = replace(config, max_speakers=None if config.clustering is None else room or config.max_speakers)
        session = Session(self.model, config)
        names = dict[int, str]()
        for name, clip in self.clips.items():
            heard.report()
            names[session.enroll(name, *clip)] = name
        found = stream_probabilities(session, heard.worked_through(blocks))
        return Found(probabilities(self.model, heard, found), names, preset)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Enrolled(Mapping[str, AudioSource]):
    """Clips of known speakers by name, read once for many recordings; read-only.

    It does not hold the model, so that another process, which loads its own, can be sent it.

    Attributes:
        given: the clips, as they were given.
        clips: their samples, as an ``Inference`` has them.
        voices: theirs, if recordings are compared with them.
        depends: what the voices depend on.
        faults: the warnings about them, without the folders of files.
    """

    given: Mapping[str, AudioSource]
    clips: Mapping[str, tuple[AudioSource, int | None]]
    voices: Mapping[str, np.ndarray] | None
    depends: tuple[object, ...] | None
    faults: Sequence[str]

    __eq__ = object.__eq__  # a mapping's would compare the clips, which may be arrays

    def __repr__(self) -> str:
        return f"Enrolled(names={list(self.given)})"

    def __getitem__(self, name: str) -> AudioSource:
        return self.given[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.given)

    def __len__(self) -> int:
        return len(self.given)

    def known_to(self, way: Inference) -> Inference:
        """Return another way with the samples and voices of these clips.

        Raises:
            InputError: when it would find other voices in them.
        """
        if way.depends != self.depends:
            raise InputError(
                "the clips were enrolled for another model, preset, clustering or exit_confidence than those of this "
                "call: enroll them with its own"
            )
        return replace(way, clips=self.clips, voices=self.voices)
