"""From samples to chunks of subsampled frames, whose boundaries do not depend on how the samples were pushed."""

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from sortformer.audio.loudness import Level, levelled, peak
from sortformer.audio.offset import centred
from sortformer.bandwidth import is_narrow, sounding
from sortformer.config.stream import StreamConfig
from sortformer.features import FFT_SAMPLES, FeatureState, LogMel
from sortformer.grid import HOP_SAMPLES, FrameGrid
from sortformer.layers.subsampling import FACTOR
from sortformer.model.encoder import Encoder
from sortformer.streaming.level import NEW, StreamLevel
from sortformer.streaming.protocol import Chunk

__all__ = ["Front", "hear", "needed_samples", "next_chunk", "start_front", "told"]

_GRID = FrameGrid()
# A feature frame needs the samples up to half a window after its centre; the last frame of a group of eight is centred
# one hop before the end of the group.
_LOOKAHEAD_SAMPLES = FFT_SAMPLES // 2 - HOP_SAMPLES
_SPEECH = 0.7  # expected number of speakers above which a frame is speech; doubtful frames do not count


@dataclass(frozen=True, slots=True)
class Front:
    """The state of one stream's front end; frames are subsampled ones (80 ms)."""

    level: StreamLevel | Level | None  # None: no normalisation
    offset: tuple[float, float] | None  # see `centred`; None before the first sample
    features: FeatureState
    sounds: Tensor  # (1, 2) frames of 10 ms with sound below and above 4 kHz, in chunks and, again, in right contexts
    mel: Tensor  # (1, n, M) log-mel features from frame `first` on, not equalised
    first: int
    next_frame: int  # the first frame of the next chunk
    received: int  # samples
    peak: float  # the greatest magnitude of them
    spectrum: Tensor  # (1, M) power of the mel bands in speech, from which the tilt is estimated
    open: Tensor  # (t, M) that of the last chunk's frames, whose speaker probabilities are not known yet
    ended: bool


def start_front(log_mel: LogMel, level: StreamLevel | Level = NEW) -> Front:
    """Return the state before the first sample.

    If the features ask for it, the loudness of streams is normalised, as that of recordings is: all samples of a chunk
    by one factor, from the level as estimated by then.
    """
    features = log_mel.start()
    mel = features.tail.new_zeros(1, 0, log_mel.config.num_mels)
    return Front(
        level=level if log_mel.config.alike_loud else None,
        offset=None,
        features=features,
        sounds=torch.zeros(1, 2, dtype=torch.int64, device=mel.device),
        mel=mel,
        first=0,
        next_frame=0,
        received=0,
        peak=0.0,
        spectrum=mel.sum(dim=1),
        open=mel[0],
        ended=False,
    )


def needed_samples(config: StreamConfig, front: Front) -> int:
    """Return how many samples from the start of the stream on the next whole chunk needs."""
    frames = front.next_frame + config.chunk_frames + config.right_context_frames
    return frames * _GRID.step_samples + _LOOKAHEAD_SAMPLES


def hear(log_mel: LogMel, front: Front, samples: np.ndarray, *, last: bool = False) -> Front:
    """Process ``samples`` (n,), the stream's ``last`` ones or not."""
    level, offset, highest = front.level, front.offset, max(front.peak, peak(samples))
    if level is not None:
        level = level.after(samples)
        samples, offset = centred(samples, offset)
        samples = levelled(samples, level.value)
    wave = torch.as_tensor(samples, device=front.mel.device)[None]
    features, mel = log_mel.step(front.features, wave, last=last)
    spectrum = front.spectrum
    if isinstance(level, Level):  # an enrolment clip, which is complete and all speech
        spectrum = spectrum + log_mel.power(mel).sum(dim=1)
    return replace(
        front,
        level=level,
        offset=offset,
        features=features,
        mel=torch.cat([front.mel, mel], dim=1),
        received=front.received + len(samples),
        peak=highest,
        spectrum=spectrum,
        ended=last,
    )


def told(front: Front, probs: np.ndarray) -> Front:
    """Update level and tilt by the speech in the last chunk, given its probabilities (t, outputs of a frame, S)."""
    if not isinstance(front.level, StreamLevel):
        return front
    spoken = probs.sum(axis=2).mean(axis=1) > _SPEECH
    power = front.open[torch.from_numpy(spoken).to(front.open.device)].sum(dim=0)
    return replace(front, level=front.level.told(spoken), spectrum=front.spectrum + power)


def next_chunk(log_mel: LogMel, encoder: Encoder, config: StreamConfig, front: Front) -> tuple[Front, Chunk | None]:
    """Return the next chunk, or None while it or its right context is incomplete; after the end, whatever is left.

    All its frames share one equalisation, from the speech before it. But for that, with a margin of one frame they
    equal those of the whole recording: a subsampled frame sees 7 feature frames before its first and none after.
    """
    whole = front.mel.shape[1] // FACTOR
    known = front.first + (-(-front.mel.shape[1] // FACTOR) if front.ended else whole)
    length = min(config.chunk_frames, known - front.next_frame)
    right = min(config.right_context_frames, known - front.next_frame - length)
    if length < 1 or (not front.ended and length + right < config.chunk_frames + config.right_context_frames):
        return front, None
    left = min(config.left_context_frames, front.next_frame)
    margin = min(config.margin_frames, front.next_frame - left)
    begin = front.next_frame - left - margin - front.first
    mel = front.mel[:, FACTOR * begin : FACTOR * (begin + margin + left + length + right)]
    feats, new = log_mel.equalised(mel, front.spectrum), FACTOR * (margin + left)
    sounds = front.sounds + sounding(feats[:, new:], torch.ones_like(feats[:, new:, 0], dtype=torch.bool))
    emb, _ = encoder.subsample(feats, torch.full((1,), mel.shape[1], device=mel.device), is_narrow(sounds))
    chunk = Chunk(emb[:, margin:], *(torch.full((1,), count, device=mel.device) for count in (left, length, right)))
    own = log_mel.power(mel[0, new:][: FACTOR * length])
    full = len(own) // FACTOR  # the last frame of a stream may be incomplete
    next_frame = front.next_frame + length
    first = max(0, next_frame - config.left_context_frames - config.margin_frames)
    mel = front.mel[:, FACTOR * (first - front.first) :].clone()
    powers = own[: FACTOR * full].view(full, FACTOR, own.shape[1]).sum(dim=1)
    return replace(front, sounds=sounds, mel=mel, first=first, next_frame=next_frame, open=powers), chunk
