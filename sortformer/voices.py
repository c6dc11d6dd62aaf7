"""Speaker identification: names for the speakers of a recording, from stored frames of known voices."""

import json
from dataclasses import dataclass, field, replace
from numbers import Real
from os import PathLike

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from sortformer.annotation import Diarization
from sortformer.audio import AudioSource
from sortformer.audio.files import name_of
from sortformer.config.checks import switch
from sortformer.config.labels import LabelConfig
from sortformer.config.strict import from_dict, to_dict
from sortformer.diarizer import Diarizer
from sortformer.errors import InputError, listed
from sortformer.estimates import Embeddings, check_diarization
from sortformer.formats.names import check_person, without_white_space
from sortformer.formats.write import write_bytes
from sortformer.heard import Progress
from sortformer.json_values import text_of
from sortformer.memory import LabelMemory, interpolate
from sortformer.model.identity import identity
from sortformer.unnamed import is_label
from sortformer.warned import warn, warned

__all__ = ["VoiceStore"]

_FORMAT = "sortformer-voices/1"

SHORTEST_VOICE_S = 1.0
"""Least speech needed to store a voice."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class VoiceStore:
    """Names, and embeddings, by the encoder of one model, of frames in which each of them speaks alone.

    A store is immutable: ``add``, ``learn``, ``merge`` and ``without`` return a new one.

    Raises:
        InputError: when it is not given a ``Diarizer``.
    """

    diarizer: Diarizer
    memory: LabelMemory = field(default_factory=LabelMemory)
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check_diarizer(self.diarizer)

    def __repr__(self) -> str:
        return f"VoiceStore(names={self.names!r}, frames={len(self.memory.label)})"

    def add(
        self, name: str, audio: AudioSource, *, sample_rate: int | None = None, channel: int | None = None
    ) -> "VoiceStore":
        """Return a store with the voice of a clip added: that of the main speaker, if there are several.

        Several clips of one name, up to white space, are combined. Arguments are those of a diarizer's call.

        Raises:
            InputError: when the name is invalid or a label of the toolkit, the clip cannot be used, or it has less
                than a second of one voice alone.
        """
        check_person(name)
        found = self.diarizer.embeddings(audio, sample_rate=sample_rate, channel=channel)
        alone = found.alone(self._turns(found, {}))
        frames = max(alone.values(), key=len, default=np.zeros(0, np.int64))
        if len(frames) * found.grid.step_s < SHORTEST_VOICE_S:
            raise InputError(
                f"{name_of(audio)} has less than {SHORTEST_VOICE_S:g} s of one voice alone: "
                f"give a few seconds of clear speech of '{name}'"
            )
        return self._with(name, found.data[frames])

    def learn(
        self,
        diarization: Diarization,
        audio: AudioSource,
        *,
        sample_rate: int | None = None,
        channel: int | None = None,
    ) -> "VoiceStore":
        """Return a store with the named speakers of a recording added, from the frames where each speaks alone.

        Speakers with a label of the toolkit (``speaker_0``) are left out, and so are those never alone; rename with
        ``relabel``.

        Raises:
            InputError: when the audio cannot be used, or its duration differs from that of the turns, these are not a
                ``Diarization``, or the name of a speaker is invalid.

        Warns:
            SortformerWarning: when no speaker has a name, so that there is nobody to learn.
        """
        check_diarization(diarization)
        named = {each for each in diarization.speakers if not is_label(without_white_space(each))}
        if not named:
            warn(
                f"no speaker of {diarization.uri} has a name, so no voice is learned: relabel speaker_0, ... first",
                stacklevel=2,
            )
        found = self.diarizer.embeddings(audio, sample_rate=sample_rate, channel=channel)
        store = self
        for speaker, frames in found.alone(diarization).items():
            if len(frames) and speaker in named:
                store = store._with(speaker, found.data[frames])
        return store

    def merge(self, other: "VoiceStore") -> "VoiceStore":
        """Return a store with the voices of another added, as if by ``add`` of its clips.

        Voices of one name, up to white space, are one person's, and combined. Frames that both stores have, as when one
        began as a copy of the other, are kept once. Diarizer and thresholds stay those of this store.

        Raises:
            InputError: when the other is not a ``VoiceStore``, or was made with another encoder.
        """
        if not isinstance(other, VoiceStore):
            got = type(other).__name__
            raise InputError(f"another voice store is needed, got {got}: VoiceStore.load(path, diarizer) reads a file")
        if _encoder_of(other.diarizer) != _encoder_of(self.diarizer):
            raise InputError(
                "the voice stores were made with different models, so their voices cannot be compared: store those of "
                "one again, with the model of the other"
            )
        names = {without_white_space(name): name for name in self.names}
        for name in other.names:
            names.setdefault(without_white_space(name), name)
        number = {written: label for label, written in enumerate(names)}
        theirs = torch.tensor(
            [number[without_white_space(name)] for name in other.names], dtype=torch.int64, device="cpu"
        )
        added = replace(other.memory, labels=tuple(theirs[piece] for piece in other.memory.labels))
        return replace(self, memory=self.memory.merge(added), names=tuple(names.values()))

    def without(self, name: str) -> "VoiceStore":
        """Return a store without a voice, whose name may differ in white space.

        Raises:
            InputError: when it has no voice of that name.
        """
        known = self._known(name) if isinstance(name, str) else None
        if known is None:
            raise InputError(f"this store has no voice called {name!r}; it has {listed(self.names) or 'none'}")
        names = tuple(each for each in self.names if each != known)
        return replace(self, memory=self.memory.without(self.names.index(known)), names=names)

    def name(
        self,
        diarization: Diarization,
        audio: AudioSource,
        *,
        confidence: float = 0.5,
        sample_rate: int | None = None,
        channel: int | None = None,
    ) -> Diarization:
        """Return a recording's turns with the names of known speakers; others keep their labels.

        The confidence in a name is the memory's probability of it, averaged over the frames where the speaker is alone.
        Each name goes to at most one speaker; the assignment maximises the sum of the confidences.

        Args:
            confidence: the least, from 0 to 1, with which a name is given.

        Raises:
            InputError: when the audio cannot be used, or its duration differs from that of the turns, these are not a
                ``Diarization``, a speaker of theirs has a stored name already, or ``confidence`` is not a number from 0
                to 1.

        Warns:
            SortformerWarning: when the store is empty.
        """
        check_diarization(diarization)
        _check_share("confidence", confidence)
        if known := [each for each in diarization.speakers if self._known(each)]:
            raise InputError(f"{diarization.uri} already has a speaker called '{known[0]}': pass turns without names")
        found = self.diarizer.embeddings(audio, sample_rate=sample_rate, channel=channel)
        return diarization.relabel(self._names(found, self._read(found), diarization, confidence))

    def diarize(
        self,
        audio: AudioSource,
        *,
        lam: float = 0.0,
        confidence: float = 0.5,
        sample_rate: int | None = None,
        channel: int | None = None,
        exclusive: bool = False,
        progress: Progress | None = None,
    ) -> Diarization:
        """Return a recording's turns with names where known, from the probabilities of both model and memory.

        The recording is processed whole (``preset="offline"`` of a call), even if a call would stream it.

        Args:
            lam: weight of the memory in the probabilities of named speakers: 0 is the model alone.
            confidence: the least with which a name is given (see ``name``).
            exclusive: one speaker at a time, as in a call of a diarizer; ``progress`` likewise.

        Raises:
            Cancelled: when ``progress`` returned False.
            InputError: when the audio cannot be used, or ``lam`` or ``confidence`` is not a number from 0 to 1.

        Warns:
            SortformerWarning: also in the result's ``origin.warnings``: when the store is empty, no speech was found,
                or a file is damaged or has several audio tracks.
        """
        _check_share("lam, the weight of the memory,", lam)
        _check_share("confidence", confidence)
        exclusive = switch("exclusive", exclusive)
        with warned() as faults:
            found = self.diarizer.embeddings(audio, sample_rate=sample_rate, channel=channel, progress=progress)
            said, labels = found.output.data.copy(), self._read(found)
            slots = self._turns(found, {slot: str(slot) for slot in range(said.shape[1])})
            names = {int(slot): name for slot, name in self._names(found, labels, slots, confidence).items()}
            finer = round(found.grid.step_s / found.output.step_s)
            for slot, name in names.items():
                evidence = labels[:, self.names.index(name)].repeat_interleave(finer)[: len(said)]
                said[:, slot] = interpolate(evidence, torch.from_numpy(said[:, slot]), lam).numpy()
            mixed, settings = replace(found.output, data=said), self.diarizer.postprocess
            named = mixed.turns(settings, exclusive=exclusive, names=names)
            if not named.turns:
                warn(f"no speech found in {name_of(audio)}", stacklevel=2)
        asked = {"lam": lam, "confidence": confidence, "channel": channel, "exclusive": exclusive}
        asked |= {"voices": list(self.names), "postprocess": to_dict(settings)}
        result = replace(named, origin=mixed.origin(self.diarizer.name, asked))
        return result.warned(faults, name_of(audio))

    def save(self, path: str | PathLike[str], *, overwrite: bool = False) -> None:
        """Write the store as safetensors, atomically.

        Raises:
            InputError: when the file exists and ``overwrite`` is not set, or it cannot be written.
        """
        described = {
            "format": _FORMAT,
            "encoder": _encoder_of(self.diarizer),
            "names": json.dumps(self.names),
            "config": json.dumps(to_dict(self.memory.config)),
        }
        content = save({"key": self.memory.key.contiguous(), "label": self.memory.label}, described)
        write_bytes(path, content, overwrite=overwrite)

    @classmethod
    def load(cls, path: str | PathLike[str], diarizer: Diarizer) -> "VoiceStore":
        """Read a store that was made with the same encoder.

        Raises:
            InputError: when the file is missing, damaged, not a voice store, or made with another model, or
                ``diarizer`` is not one.
        """
        _check_diarizer(diarizer)
        try:
            with safe_open(path, framework="pt") as file:
                described = file.metadata() or {}
                # Copied: they are mapped to the file, which may change, and on Windows could not be replaced.
                tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118 (not a mapping)
        except FileNotFoundError as error:
            raise InputError(f"cannot read {path}: no such file") from error
        except (SafetensorError, OSError) as error:
            raise InputError(f"{path} is damaged, or not a voice store: {error}") from error
        if described.get("format") != _FORMAT:
            raise InputError(f"{path} is not a voice store (its format is not '{_FORMAT}')")
        if described.get("encoder") != _encoder_of(diarizer):
            raise InputError(f"the voices in {path} were stored with another model: load that one, or store them again")
        try:
            config = from_dict(LabelConfig, json.loads(described["config"]))
            key, label = tensors["key"], tensors["label"]
            names = _names_in(described["names"])
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise InputError(f"{path} is damaged: store the voices again") from error
        if not _fit(key, label, len(names)):
            raise InputError(f"{path} is damaged, its frames and names do not match: store the voices again")
        return cls(diarizer, LabelMemory(config, (key,), (label,)), names)

    def _with(self, name: str, frames: np.ndarray) -> "VoiceStore":
        check_person(name)
        known = self._known(name)
        names = (*self.names, name) if known is None else self.names
        return replace(self, memory=self.memory.add(torch.from_numpy(frames), names.index(known or name)), names=names)

    def _known(self, name: str) -> str | None:
        """Return the stored name that RTTM writes alike, if any: the same one, up to white space."""
        written = without_white_space(name)
        return next((each for each in self.names if without_white_space(each) == written), None)

    def _read(self, found: Embeddings) -> Tensor:
        """Return the memory's probabilities of the names in each frame, (T, names)."""
        return self.memory.read(torch.from_numpy(found.data), len(self.names))

    def _turns(self, found: Embeddings, names: dict[int, str]) -> Diarization:
        return found.output.turns(self.diarizer.postprocess, names=names)

    def _names(self, found: Embeddings, labels: Tensor, diarization: Diarization, confidence: float) -> dict[str, str]:
        """Return the names of speakers, given the memory's probabilities (T, names)."""
        if not self.names:
            warn(
                "this store has no voices, so no speaker is named: add and learn return a new store, which has some",
                stacklevel=3,
            )
        alone = {speaker: at for speaker, at in found.alone(diarization).items() if len(at)}
        if not alone or not self.names:
            return {}
        sure = np.stack([labels.numpy()[at].mean(axis=0) for at in alone.values()])
        sure = np.where(sure >= confidence, sure, 0.0)
        speakers = tuple(alone)
        pairs = zip(*linear_sum_assignment(sure, maximize=True), strict=True)
        return {speakers[row]: self.names[column] for row, column in pairs if sure[row, column] > 0}


def _names_in(text: str) -> tuple[str, ...]:
    """Return the names of a stored list; a ValueError if no store has them."""
    names = tuple(text_of(name, "a name") for name in json.loads(text))
    for name in names:
        check_person(name)
    if len({without_white_space(name) for name in names}) < len(names):
        raise ValueError("a name is given twice")
    return names


def _fit(key: Tensor, label: Tensor, count: int) -> bool:
    """Return whether there is a label for each frame, and frames of each of ``count`` labels."""
    if (key.ndim, key.dtype, label.dtype, label.shape) != (2, torch.float32, torch.int64, key.shape[:1]):
        return False
    return bool(key.isfinite().all()) and set(label.tolist()) == set(range(count))


def _check_diarizer(diarizer: Diarizer) -> None:
    if not isinstance(diarizer, Diarizer):
        got = type(diarizer).__name__
        raise InputError(f"a voice store needs a Diarizer, got {got}: VoiceStore.load(path, diarizer) reads a file")


def _check_share(name: str, value: float) -> None:
    if not (isinstance(value, Real) and 0 <= value <= 1):
        raise InputError(f"{name} must be a number from 0 to 1, got {value!r}")


def _encoder_of(diarizer: Diarizer) -> str:
    """Return the identity of what embeddings depend on: the features, the encoder and its weights."""
    model = diarizer.model
    return identity(model.encoder, model.config.features, model.config.encoder)
