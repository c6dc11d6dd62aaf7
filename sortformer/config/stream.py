"""How a stream is cut and what it remembers: chosen per session, never part of the weights."""

from dataclasses import dataclass, field
from types import MappingProxyType

from sortformer.config.checks import as_annotated, require
from sortformer.config.clustering import ClusteringConfig
from sortformer.grid import FrameGrid

__all__ = ["STREAM_PRESETS", "SpeakerCacheConfig", "StreamConfig"]


@dataclass(frozen=True, slots=True)
class SpeakerCacheConfig:
    """The arrival-order speaker cache: how many frames it keeps, and how it chooses them.

    The defaults of the scoring are those of NVIDIA's streaming models. 0 frames switch the cache off.
    """

    frames: int = 188
    silence_frames: int = 3
    """Frames of silence kept after the frames of each slot."""
    probability_floor: float = 0.25
    """Probabilities below this count as this in the scores."""
    newcomer_bonus: float = 0.05
    silence_threshold: float = 0.2
    """A frame whose probabilities sum to less is silence."""
    strong_share: float = 0.75
    weak_share: float = 1.5
    """Shares of a slot's budget that are boosted, twice and once, so that no slot crowds out the others."""
    min_positive_share: float = 0.5
    """A slot with this share of its budget in frames of its own keeps no overlapped ones."""

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
        """For how many slots there is room: a frame, and the silence after it, of each (None: there is no cache)."""
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
    """What one step of a stream sees, in frames of 80 ms: [speaker cache | FIFO | left, chunk, right context].

    The probabilities of a chunk are final once its right context has been heard.
    """

    chunk_frames: int
    right_context_frames: int = 0
    left_context_frames: int = 0
    """Frames before the chunk that the model sees once more, beside the FIFO."""
    margin_frames: int = 1
    """Frames before those that only the subsampling sees. 1 makes every subsampled frame equal to that of the whole
    recording, wherever the chunk is cut; NVIDIA's streams have 0, and a first left context frame that is cut short."""
    fifo_frames: int = 0
    update_period_frames: int = 1
    """Frames, at least, that leave a full FIFO for the speaker cache at once, if it has them."""
    speaker_cache: SpeakerCacheConfig = field(default_factory=SpeakerCacheConfig)
    max_speakers: int | None = None
    """Only the first slots, as many as this, may speak (None: all, or as many as ``clustering`` allows)."""
    clustering: ClusteringConfig | None = None
    """Slots stay with their voices, by the encoder's embeddings (None: with what the head calls them), and there are
    as many as voices may be found. Not for models whose layers remember."""
    voice_frames: int = 1024
    """Frames that have left the FIFO, at most, by which voices are told apart where there is ``clustering``."""

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
        """Return how a model streams whose layers remember by themselves: chunk by chunk, without cache or contexts."""
        return cls(chunk_frames, speaker_cache=SpeakerCacheConfig(frames=0))

    def speaker_limit(self, num_slots: int) -> int:
        """Return how many slots of a stream may speak, where the model has ``num_slots``: the first ones."""
        most = self.slots(num_slots)
        voices = most if self.clustering is None else self.clustering.max_speakers
        return min(most, voices, self.max_speakers or most)

    def slots(self, num_slots: int) -> int:
        """Return how many slots a stream has: the model's ``num_slots``, or, by voice, as many more as may be found.

        So far as the speaker cache has room for them: one of 188 frames has for all.
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
        # The blocks of the model in the package look 125 frames back. At 1 s most of that is worth its cost: less is
        # heard where nobody speaks. At 0.3 s it is not, and chunks of 10 s and more bring it with them.
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
"""Named configurations, each called by its latency; the first four are for our own models."""
