"""Configs of a stream: chunks and memory, chosen per session and never part of the weights."""

from dataclasses import dataclass, field
from types import MappingProxyType

from sortformer.config.checks import as_annotated, require
from sortformer.config.clustering import ClusteringConfig
from sortformer.grid import FrameGrid

__all__ = ["STREAM_PRESETS", "SpeakerCacheConfig", "StreamConfig"]


@dataclass(frozen=True, slots=True)
class SpeakerCacheConfig:
    """The arrival-order speaker cache: how many frames it keeps, and how it chooses them.

    The scoring defaults are those of NVIDIA's streaming models. 0 frames disable the cache.
    """

    frames: int = 188
    silence_frames: int = 3
    """Frames of silence kept after the frames of each slot."""
    probability_floor: float = 0.25
    """Lower bound of probabilities in the scores."""
    newcomer_bonus: float = 0.05
    silence_threshold: float = 0.2
    """A frame whose probabilities sum to less is silence."""
    strong_share: float = 0.75
    weak_share: float = 1.5
    """Fractions of a slot's budget whose scores get a strong or a weak boost, so that no slot crowds out the others."""
    min_positive_share: float = 0.5
    """A slot with this fraction of its budget in frames without overlap keeps no overlapped ones."""

    def __post_init__(self) -> None:
        as_annotated(self)
        require(self.frames >= 0, f"the speaker cache needs 0 frames or more, got {self.frames}")
        require(self.silence_frames >= 0, f"silence_frames must be 0 or more, got {self.silence_frames}")
        floor = self.probability_floor
        require(0 < floor < 0.5, f"probability_floor must be between 0 and 0.5, got {floor}")
        for name in ("newcomer_bonus", "silence_threshold", "strong_share", "weak_share", "min_positive_share"):
            require(getattr(self, name) >= 0, f"{name} must be 0 or more, got {getattr(self, name)}")

    @property
    def most_slots(self) -> int | None:
        """The number of slots with room for a frame and the silence after it (None: no cache)."""
        return self.frames // (1 + self.silence_frames) if self.frames else None

    def check_slots(self, num_slots: int) -> None:
        """Raise a ConfigError if the cache is too small for that many slots."""
        most, least = self.most_slots, (1 + self.silence_frames) * num_slots
        require(
            most is None or most >= num_slots,
            f"a speaker cache of {self.frames} frames is too small for {num_slots} slots: it needs {least} (or 0)",
        )


@dataclass(frozen=True, slots=True)
class StreamConfig:
    """The input of one step of a stream, in frames of 80 ms: [speaker cache | FIFO | left, chunk, right context].

    The probabilities of a chunk are final once its right context has arrived.
    """

    chunk_frames: int
    right_context_frames: int = 0
    left_context_frames: int = 0
    """Frames before the chunk that the model processes again, beside the FIFO."""
    margin_frames: int = 1
    """Frames before those that only the subsampling sees. 1 makes every subsampled frame equal to that of the whole
    recording, wherever it is cut; NVIDIA's streams have 0, so their first left context frame lacks its own context."""
    fifo_frames: int = 0
    update_period_frames: int = 1
    """Least number of frames, as far as available, that move from a full FIFO to the speaker cache at once."""
    speaker_cache: SpeakerCacheConfig = field(default_factory=SpeakerCacheConfig)
    max_speakers: int | None = None
    """Number of slots, from the first, that may speak (None: all, or as many as ``clustering`` allows)."""
    clustering: ClusteringConfig | None = None
    """Assign slots to voices by the encoder's embeddings (None: as the head does), with a slot for each voice that may
    be found. Not for models whose layers carry a state."""
    voice_frames: int = 4096
    """Largest number of frames kept for ``clustering`` after they have left the FIFO."""

    def __post_init__(self) -> None:
        as_annotated(self)
        require(self.chunk_frames >= 1, f"chunk_frames must be 1 or more, got {self.chunk_frames}")
        require(self.update_period_frames >= 1, f"update_period_frames must be >= 1, got {self.update_period_frames}")
        for name in ("right_context_frames", "left_context_frames", "margin_frames", "fifo_frames", "voice_frames"):
            require(getattr(self, name) >= 0, f"{name} must be 0 or more, got {getattr(self, name)}")
        require(
            self.max_speakers is None or self.max_speakers >= 1, f"max_speakers must be >= 1, got {self.max_speakers}"
        )

    @classmethod
    def by_memory(cls, chunk_frames: int) -> "StreamConfig":
        """Return the config for models whose layers carry a state: chunk by chunk, without cache or contexts."""
        return cls(chunk_frames, speaker_cache=SpeakerCacheConfig(frames=0))

    def speaker_limit(self, num_slots: int) -> int:
        """Return how many of a stream's slots, from the first, may speak, for a model with ``num_slots``."""
        most = self.slots(num_slots)
        voices = most if self.clustering is None else self.clustering.max_speakers
        return min(most, voices, self.max_speakers or most)

    def slots(self, num_slots: int) -> int:
        """Return the number of slots of a stream: ``num_slots`` or, with clustering, ``max_speakers`` if that is more.

        The latter is limited by the room in the speaker cache; one of 188 frames has room for all.
        """
        if self.clustering is None:
            return num_slots
        most = self.clustering.max_speakers
        return max(num_slots, min(most, self.speaker_cache.most_slots or most))

    @property
    def latency_s(self) -> float:
        """Seconds of audio, compute excluded, from the start of a chunk until its probabilities are final.

        The feature window's own 6 ms of look-ahead come on top.
        """
        return FrameGrid().seconds(self.chunk_frames + self.right_context_frames)


def _nvidia(
    chunk: int, right: int, fifo: int, period: int, *, cache: int = 188, silence: int = 3, left: int = 1
) -> StreamConfig:
    return StreamConfig(
        chunk_frames=chunk,
        right_context_frames=right,
        left_context_frames=left,
        margin_frames=0,
        fifo_frames=fifo,
        update_period_frames=period,
        speaker_cache=SpeakerCacheConfig(frames=cache, silence_frames=silence),
    )


def _nemotron3(chunk: int, right: int, fifo: int, period: int) -> StreamConfig:
    return _nvidia(chunk, right, fifo, period, cache=264, silence=1, left=0)


STREAM_PRESETS = MappingProxyType(
    {
        "30s": StreamConfig(340, 35, fifo_frames=40, update_period_frames=300),
        "10s": StreamConfig(112, 13, fifo_frames=60, update_period_frames=112),
        # The blocks of the bundled model look 125 frames back. At 1 s most of that is worth its cost: there are fewer
        # false alarms. At 0.3 s it is not, and chunks of 10 s and more cover it themselves.
        "1s": StreamConfig(6, 6, fifo_frames=94, update_period_frames=40),
        "0.3s": StreamConfig(2, 2, fifo_frames=62, update_period_frames=40),
        # NVIDIA's model cards: nvidia/diar_streaming_sortformer_4spk-v2 and nvidia/Nemotron-3-Diarization.
        "nvidia-30.4s": _nvidia(340, 40, 40, 300),
        "nvidia-10s": _nvidia(124, 1, 124, 124),
        "nvidia-1.04s": _nvidia(6, 7, 188, 144),
        "nvidia-0.32s": _nvidia(3, 1, 188, 144),
        "nemotron3-30.4s": _nemotron3(340, 40, 40, 300),
        "nemotron3-1.04s": _nemotron3(9, 4, 264, 222),
        "nemotron3-0.64s": _nemotron3(6, 2, 264, 222),
        "nemotron3-0.32s": _nemotron3(3, 1, 264, 222),
    }
)
"""Named configs, called by their latency; the first four are for our own models."""
