"""A live session: samples in, at any pace, turns out."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sortformer.annotation import Diarization, Origin, TimeAxis, Turn
from sortformer.audio import AudioSource
from sortformer.audio.files import name_of
from sortformer.audio.loudness import UNHEARD, how_quiet
from sortformer.audio.signal import INAUDIBLE, joined
from sortformer.config.clustering import MOST_SPEAKERS
from sortformer.config.postprocess import PostprocessConfig
from sortformer.config.presets import as_postprocess
from sortformer.config.stream import StreamConfig
from sortformer.config.strict import from_dict, to_dict
from sortformer.enrolled import read_clip
from sortformer.errors import InputError
from sortformer.features import LogMel
from sortformer.formats.names import check_person, without_folder
from sortformer.grid import SAMPLE_RATE
from sortformer.model import Sortformer, check_model
from sortformer.model.identity import identity
from sortformer.postprocess import only_slots
from sortformer.speaker_count import warn_if_full
from sortformer.streaming.blocks import block_of
from sortformer.streaming.choice import stream_memory
from sortformer.streaming.final import Final
from sortformer.streaming.front import Front, hear, needed_samples, next_chunk, start_front, told
from sortformer.streaming.known import introduced, moved, slot_of_clip
from sortformer.streaming.lock import Lock
from sortformer.streaming.protocol import Chunk, together
from sortformer.streaming.rows import row, shapes, side_by_side
from sortformer.streaming.snapshot import from_bytes, plain, rebuilt, to_bytes
from sortformer.streaming.turns import TurnState, add_frames, end_turns, free_slot, name_slot, start_turns
from sortformer.streaming.update import Update
from sortformer.warned import warn, warned

__all__ = ["Session", "advance"]


@dataclass(frozen=True, slots=True)
class _Position:
    """The state of a stream; replaced as a whole, so that a failed step leaves the last good one."""

    front: Front
    memory: Any
    """The state of the model's ``StreamMemory``."""
    turns: TurnState
    channels: tuple[int, ...]  # the memory's output channel of each slot
    frames: int = 0  # output frames that are final


class Session:
    """One stream of 16 kHz audio through a model in evaluation mode, which many sessions may share.

    Audio is processed in chunks with fixed boundaries, so how it was cut into pushes does not change a bit of the
    result. The session stays usable whatever a call raises: a refused block is ignored, and where the model failed
    in the middle of a block, the next call resumes there and returns what that one could not. A call waits for one
    that another thread has begun.

    Attributes:
        model, config, postprocess: what it was started with; ``config.latency_s`` and ``postprocess.turn_delay_s`` are
            the seconds until frames and turns are final.
        uri: the recording's id in the result.
        origin: the provenance in the result, without its time axis.
    """

    def __init__(
        self,
        model: Sortformer,
        config: StreamConfig,
        postprocess: PostprocessConfig | None = None,
        *,
        uri: str = "audio",
        origin: Origin | None = None,
    ) -> None:
        """Start a stream; ``origin`` is the provenance in its result, to which the time axis is added.

        Raises:
            ConfigError: if the model cannot stream, the configuration is for another kind of model, or the speaker
                cache is too small for the slots of the stream.
            InputError: if an argument is of another type, the model in training mode, or ``uri`` (the recording's id)
                empty.
        """
        self._memory = stream_memory(model, config)
        self.model = model
        self.config = config
        self.postprocess = PostprocessConfig() if postprocess is None else as_postprocess(postprocess)
        result = Diarization((), 0.0, uri, origin)  # raises at the start of a call, not at its end
        self.uri, self.origin = result.uri, result.origin
        self._lock = Lock()
        self._grid = model.config.grid
        self._limit = config.speaker_limit(model.config.head.num_slots)
        self._frame_ticks = round(self._grid.step_s * 100)
        # Streams apply no gain: the loudest sample of the recording may be yet to come.
        self._log_mel = LogMel(replace(model.config.features, gain="none")).to(model.device)
        self.reset()

    def __repr__(self) -> str:
        return f"Session(uri={self.uri!r}, duration_s={self.duration_s:.2f}, names={self.names})"

    @property
    def num_slots(self) -> int:
        """Columns of the probabilities: the model's slots or, by voice, the greatest number of voices."""
        return self.config.slots(self.model.config.head.num_slots)

    @property
    def step_s(self) -> float:
        """Seconds from one output frame to the next."""
        return self._grid.step_s

    @property
    def duration_s(self) -> float:
        """Seconds of audio received so far."""
        return self._heard / SAMPLE_RATE

    @property
    def missing_samples(self) -> int:
        """Samples missing for the next chunk: 0 or less if its step failed, and the next call will repeat it."""
        return needed_samples(self.config, self._position.front) - self._heard

    @property
    def num_frames(self) -> int:
        """Output frames that are final."""
        return self._position.frames

    @property
    def names(self) -> tuple[str | None, ...]:
        """The speaker of each slot, a column of the probabilities; None: nobody, or their order is not yet known."""
        return tuple(slot.name for slot in self._position.turns.slots)

    def reset(self) -> None:
        """Discard all state and start another stream."""
        with self._lock:
            front, slots = start_front(self._log_mel), self.num_slots
            self._position = _Position(front, self._memory.start(), start_turns(slots), tuple(range(slots)))
            self._heard = 0  # samples
            self._waiting: list[np.ndarray] = []  # the last of them, less than a chunk
            self._final = Final()
            self._faults: list[str] = []  # warnings about the clips
            self._ended = False

    def enroll(self, name: str, audio: AudioSource, sample_rate: int | None = None) -> int:
        """Enroll a person: assign a slot, whose turns then have that name; return the slot.

        The model processes a clip of the voice before the stream, as if it had been part of it. A few seconds in which
        nobody else speaks are enough. By voice, enrolled people stay apart even if they sound alike.

        Args:
            name: of the person, until ``reset`` or ``reset_slot``.
            audio: a path, a binary file object, or an array, whose ``sample_rate`` defaults to 16 kHz.

        Raises:
            InputError: after the first sample or the end of the stream; if the name is invalid or taken, no slot is
                free, or the clip is too short, silent, or sounds like somebody else's. The state is then unchanged.

        Warns:
            SortformerWarning: by voice, if it sounds like somebody else's; if the file is damaged.
        """
        with self._lock, warned() as faults:
            self._require_open()
            here, taken = self._position, {slot: name for slot, name in enumerate(self.names) if name is not None}
            free = [slot for slot in range(self._limit) if slot not in taken]
            if self.duration_s:
                raise InputError(f"it is too late to enroll '{name}': do so before the first samples, or after reset()")
            check_person(name, taken.values())
            if not free:
                voices = MOST_SPEAKERS if self.config.clustering else 0
                more = f"; max_speakers may be {voices}" if self._limit < voices else ""
                raise InputError(
                    f"there is no free slot for '{name}': all are taken, by {', '.join(taken.values())}{more}"
                )
            wave, memory = read_clip(name, audio, sample_rate), here.memory
            if (clustering := self.config.clustering) is not None:
                others = {other: here.channels[slot] for slot, other in taken.items()}
                memory = introduced(memory, self.model, clustering, name, wave, here.channels[free[0]], others)
            _, memory, probs = self._to_the_end(start_front(self._log_mel, UNHEARD), memory, wave)
            slot = slot_of_clip(name, (probs > 0.5).sum(axis=0) * self.step_s, free, taken)
            if clustering is not None:  # it may have taken most of the clip for another than the known voice
                memory = moved(memory, here.channels[free[0]], here.channels[slot])
            self._position = replace(here, memory=memory, turns=name_slot(here.turns, slot, name))
            self._faults += [without_folder(each, name_of(audio)) for each in faults]
            return slot

    def push(self, samples: Any, sample_rate: int | None = None) -> Update:
        """Process any number of samples, even none, and return what has become final.

        ``samples`` is (n,) or (n, channels) with up to 64 channels, float in [-1, 1] or integers, at 16 kHz;
        ``sample_rate`` is only checked.

        Raises:
            InputError: if a sample is NaN, infinite or far out of scale, if the sample rate is another one, or after
                the end of the stream. The block is then ignored.
        """
        with self._lock:
            self._take(self._checked(samples, sample_rate))
            advance([self])
            return self._update()

    def flush(self) -> Update:
        """End the stream: return the frames and turns that waited for more audio.

        Raises:
            InputError: if the stream has ended before.
        """
        with self._lock:
            self._require_open()
            advance([self])
            here = self._position
            front, memory, probs = self._to_the_end(here.front, here.memory, joined(self._waiting))
            probs = probs[: self._grid.output_frames(front.received) - here.frames]  # the last 80 ms may be incomplete
            self._commit(front, memory, probs, np.zeros(0, np.float32), last=True)
            self._ended = True
            return self._update()

    def finish(self) -> Diarization:
        """End the stream, unless it has ended, and return all its turns; a second call returns the same.

        Warns:
            SortformerWarning: when no speech was found, or every slot has a speaker and ``max_speakers`` allows more.
                The result's ``origin.warnings`` has these, and those about clips.
        """
        with self._lock, warned() as faults:
            if not self._ended:
                self.flush()
            if self.duration_s and not self._final.turns:
                warn(f"no speech found in {self.uri}{how_quiet(self._position.front.peak)}", stacklevel=2)
            speakers, most = sum(map(bool, self.names)), self.config.max_speakers
            warn_if_full(self.uri, speakers, self._limit, self.config.clustering, most)
            axis, warnings = TimeAxis(0.0, self.step_s, self.num_frames), (*self._faults, *faults)
            origin = self.origin and replace(self.origin, time_axis=axis, warnings=warnings)
            return Diarization(tuple(self._final.turns), self.duration_s, self.uri, origin)

    def reset_slot(self, slot: int) -> None:
        """Free the slot of a speaker who has left: the turns end, and the next to speak there is a new speaker.

        Raises:
            InputError: if there is no such slot, after the end of the stream, or if the model's layers carry state,
                from which a speaker cannot be removed.
        """
        with self._lock:
            self._require_open()
            here = self._position
            if not (isinstance(slot, int | np.integer) and 0 <= slot < len(here.channels)):
                raise InputError(f"slot must be between 0 and {len(here.channels) - 1}, got {slot}")
            gone = here.channels[slot]
            # Those who arrived later move up, and the free channel is the last of those that may speak.
            last = self._limit - 1 if gone < self._limit else len(here.channels) - 1
            channels = [channel - (gone < channel <= last) for channel in here.channels]
            channels[slot] = last
            turns, given = free_slot(self.postprocess, here.turns, slot, self._frame_ticks)
            memory = self._memory.forget(here.memory, gone)
            self._position = replace(here, memory=memory, turns=turns, channels=tuple(channels))
            self._final.add([], given)

    def snapshot(self) -> bytes:
        """Return the state of the session, without the model, as bytes."""
        with self._lock:
            return to_bytes(
                {
                    "model": identity(self.model, self.model.config),
                    "stream": to_dict(self.config),
                    "postprocess": to_dict(self.postprocess),
                    "uri": self.uri,
                    "origin": self.origin and (self.origin.model, self.origin.version, dict(self.origin.settings)),
                    "position": plain(self._position),
                    "waiting": plain(joined(self._waiting)),
                    "final": plain(self._final),
                    "faults": tuple(self._faults),
                    "ended": self._ended,
                }
            )

    @classmethod
    def restore(cls, model: Sortformer, data: bytes) -> "Session":
        """Return the session of a snapshot; with the same model, it continues as the original would.

        Raises:
            InputError: if ``model`` is not a model, or the snapshot is damaged, or was taken with a model of other
                weights or another configuration.
        """
        check_model(model)
        values = from_bytes(data)
        if values["model"] != identity(model, model.config):
            raise InputError("the snapshot was taken with another model: restore it with the original one")
        config = from_dict(StreamConfig, values["stream"])
        origin = values["origin"] and Origin(*values["origin"])
        postprocess = from_dict(PostprocessConfig, values["postprocess"])
        session = cls(model, config, postprocess, uri=values["uri"], origin=origin)
        session._position = rebuilt(session._position, values["position"], model.device)
        session._waiting = [values["waiting"].numpy()]
        session._heard = session._position.front.received + len(session._waiting[0])
        session._final = Final(
            [Turn(**turn) for turn in values["final"]["turns"]],
            [probs.numpy() for probs in values["final"]["new_probs"]],
            [Turn(**turn) for turn in values["final"]["new_turns"]],
        )
        session._faults = list(values["faults"])
        session._ended = values["ended"]
        return session

    def _require_open(self) -> None:
        if self._ended:
            raise InputError("this stream has ended: call reset() to begin another")

    def _checked(self, samples: Any, sample_rate: int | None = None) -> list[np.ndarray]:
        """Return a block as mono float pieces, or refuse it."""
        self._require_open()
        return block_of(samples, sample_rate, self.uri, self.duration_s)

    def _take(self, block: list[np.ndarray]) -> None:
        self._waiting += block
        self._heard += sum(map(len, block))

    @torch.no_grad()
    def _ready(self) -> tuple[Front, Chunk, np.ndarray] | None:
        """Return the front end after the next whole chunk, the chunk, and the remaining samples; None without one."""
        here = self._position
        if self.missing_samples > 0:
            return None
        if len(self._waiting) > 1:
            self._waiting = [joined(self._waiting)]
        wave, need = self._waiting[0], needed_samples(self.config, here.front) - here.front.received
        heard = hear(self._log_mel, here.front, wave[:need])
        front, chunk = next_chunk(self._log_mel, self.model.encoder, self.config, heard)
        assert chunk is not None
        return front, chunk, wave[need:]

    @torch.no_grad()
    def _to_the_end(self, front: Front, memory: Any, wave: np.ndarray) -> tuple[Front, Any, np.ndarray]:
        """Process a stream that ends with these samples; return the last state, and the probabilities (t, S)."""
        front = hear(self._log_mel, front, wave, last=True)
        found = [np.zeros((0, len(self._position.channels)), np.float32)]
        while True:
            front, chunk = next_chunk(self._log_mel, self.model.encoder, self.config, front)
            if chunk is None:
                return front, memory, np.concatenate(found)
            memory, probs = self._memory.step(memory, chunk)
            found.append(self._by_slot(probs[0]))

    def _by_slot(self, probs: Tensor) -> np.ndarray:
        """Return the probabilities of this stream's slots, given those (t, S) of the memory's output channels."""
        return probs[:, list(self._position.channels)].float().cpu().numpy()  # numpy has no bfloat16

    def _commit(self, front: Front, memory: Any, probs: np.ndarray, rest: np.ndarray, *, last: bool = False) -> None:
        """Advance the state by final probabilities (t, S); ``rest`` are the samples that remain."""
        here = self._position
        if front.peak < INAUDIBLE:
            # The output of a model for digital silence is arbitrary.
            probs = np.zeros_like(probs)
        speakers = [slot for slot, channel in enumerate(here.channels) if channel < self._limit]
        turns, given = add_frames(self.postprocess, here.turns, probs, self._frame_ticks, speakers)
        if last:
            turns, closing = end_turns(self.postprocess, turns, self._frame_ticks)
            # The last frame, and padding of turns, may extend beyond the last sample.
            given = Diarization(given + closing, front.received / SAMPLE_RATE).turns
        else:
            front = told(front, probs.reshape(-1, self.model.config.head.upsampling, probs.shape[1]))
        self._position = _Position(front, memory, turns, here.channels, here.frames + len(probs))
        # The rest is a view of all that waited, which may be hours.
        self._waiting = [rest.copy() if self.missing_samples > 0 else rest]
        self._final.add([only_slots(probs, speakers)], given)

    def _update(self) -> Update:
        here = self._position
        _, tentative = end_turns(self.postprocess, here.turns, self._frame_ticks)  # as if the stream ended now
        probs, turns = self._final.take(len(here.channels))
        return Update(here.frames - len(probs), probs, turns, tentative, here.frames * self._grid.step_s)


def advance(sessions: Sequence[Session]) -> None:
    """Process the pending whole chunks of sessions of one model and configuration, in batched steps."""
    while ready := [(session, *found) for session in sessions if (found := session._ready()) is not None]:
        abreast = defaultdict(list)
        for session, *found in ready:
            abreast[shapes(session._position.memory)].append((session, *found))
        for group in abreast.values():
            _step(group)


@torch.no_grad()
def _step(ready: Sequence[tuple[Session, Front, Chunk, np.ndarray]]) -> None:
    """Process the next chunk of sessions whose memory states have one shape."""
    memory = side_by_side([session._position.memory for session, *_ in ready])
    memory, probs = ready[0][0]._memory.step(memory, together([chunk for _, _, chunk, _ in ready]))
    for index, (session, front, _, rest) in enumerate(ready):
        session._commit(front, row(memory, index), session._by_slot(probs[index]), rest)
