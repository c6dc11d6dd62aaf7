"""Log-mel features, of whole recordings or chunk by chunk.

The front end of NVIDIA's Sortformers: pre-emphasis 0.97, a symmetric 25 ms Hann window centred in 512 samples, 10 ms
hop, zero padding at both ends, power spectrum, Slaney mel bands, ``log(x + 2**-24)``.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from sortformer.config.model import FeatureConfig
from sortformer.grid import HOP_SAMPLES, SAMPLE_RATE
from sortformer.masks import length_mask
from sortformer.precision import wide
from sortformer.tilt import equaliser

__all__ = ["FIXED_MEAN", "FIXED_STD", "FeatureState", "LogMel", "mel_filterbank", "narrow_bands", "peak_gain"]

FFT_SAMPLES = 512
WINDOW_SAMPLES = 400
# Spectra are several times larger than mel bands: those of more frames would exceed the caches of a processor.
PART_FRAMES = 2048
PRE_EMPHASIS = 0.97
LOG_GUARD = 2.0**-24
STD_GUARD = 1e-5
# Approximate mean and standard deviation of log-mel values of speech at -35 to -12 dBFS.
FIXED_MEAN = -9.5
FIXED_STD = 3.5
PEAK_GUARD = 1e-3
NARROW_HZ = 4000.0


@dataclass(frozen=True, slots=True)
class FeatureState:
    """The state between steps: the samples that later frames still need, and the position in the stream."""

    tail: Tensor  # (B, n) raw samples from sample `tail_start` on
    tail_start: int  # index of the first sample of `tail` in the stream; negative inside the leading zero padding
    next_frame: int  # the first frame not yet returned


class LogMel(nn.Module):
    """The log-mel front end: frames of 10 ms from waves at 16 kHz."""

    def __init__(self, config: FeatureConfig) -> None:
        super().__init__()
        self.config = config
        window = torch.hann_window(WINDOW_SAMPLES, periodic=False, dtype=torch.float32, device="cpu")
        margin = (FFT_SAMPLES - WINDOW_SAMPLES) // 2
        self.window: Tensor
        self.filterbank: Tensor
        self.register_buffer("window", nn.functional.pad(window, (margin, margin)), persistent=False)
        self.register_buffer("filterbank", torch.from_numpy(mel_filterbank(config.num_mels)), persistent=False)
        hz = torch.from_numpy(_mel_edges(config.num_mels)[1:-1])
        emphasis = 1 + PRE_EMPHASIS**2 - 2 * PRE_EMPHASIS * torch.cos(2 * torch.pi * hz / SAMPLE_RATE)
        self.hz: Tensor
        self.emphasis: Tensor
        self.register_buffer("hz", hz.float(), persistent=False)
        self.register_buffer("emphasis", emphasis.float(), persistent=False)

    def forward(self, wave: Tensor, num_samples: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return the features (B, T, M) of ``wave`` (B, N), of any type, and the number of valid frames (B,).

        ``num_samples`` (B,) is the number of valid samples (None: all). Frames past the end of a row are zero.
        """
        if num_samples is None:
            num_samples = torch.full((wave.shape[0],), wave.shape[1], device=wave.device)
        inside = length_mask(num_samples, wave.shape[1])
        wave = wave.to(self.window.dtype).masked_fill(~inside, 0.0)
        if self.config.gain == "peak":
            wave = wave * peak_gain(wave)
        emphasised = torch.cat([wave[:, :1], wave[:, 1:] - PRE_EMPHASIS * wave[:, :-1]], dim=1).masked_fill(
            ~inside, 0.0
        )
        half = FFT_SAMPLES // 2
        frames = num_samples // HOP_SAMPLES
        mel = self._log_mel(nn.functional.pad(emphasised, (half, half)))[:, : wave.shape[1] // HOP_SAMPLES]
        valid = length_mask(frames, mel.shape[1])
        if self.config.tilt_range is not None:
            mel = self.equalised(mel, self.power(mel).masked_fill(~valid[..., None], 0.0).sum(dim=1))
        mel = mel.masked_fill(~valid[..., None], 0.0)
        if self.config.normalize == "per_feature":
            mel = _normalize(mel, valid)
        return mel, frames

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "LogMel":
        """Move the constants, but in float32 or wider: half precision is too coarse, and CPUs have no FFT for it."""
        return super()._apply(lambda constant: constant.to(wide(fn(constant))), recurse)

    def start(self, rows: int = 1) -> FeatureState:
        """Return the state before the first sample of ``rows`` streams."""
        half = FFT_SAMPLES // 2
        tail = torch.zeros(rows, half + 1, dtype=torch.float32, device=self.window.device)
        return FeatureState(tail, -half - 1, 0)

    def step(self, state: FeatureState, samples: Tensor, *, last: bool = False) -> tuple[FeatureState, Tensor]:
        """Advance by ``samples`` (B, n), any n; return the new state and the frames (B, t, M) now complete.

        With ``last`` the stream ends after these samples, and the frames that overlap its end are returned too. However
        the audio is cut, the frames equal those of the whole recording before these are ``equalised``.

        Raises:
            ValueError: if the features depend on the whole recording, which a stream does not have.
        """
        if self.config.whole:
            raise ValueError("features normalised over the whole recording cannot be computed step by step")
        tail = torch.cat([state.tail, samples], dim=1)
        received = state.tail_start + tail.shape[1]
        half = FFT_SAMPLES // 2
        ready = received // HOP_SAMPLES if last else max(0, (received - half) // HOP_SAMPLES + 1)
        count = max(0, ready - state.next_frame)
        # `tail` has one more sample on the left than the next frame's window, for the pre-emphasis.
        needed = 1 + (count - 1) * HOP_SAMPLES + FFT_SAMPLES
        if count == 0:
            return replace(state, tail=tail), tail.new_zeros(len(tail), 0, self.config.num_mels)
        emphasised = tail[:, 1:] - PRE_EMPHASIS * tail[:, :-1]
        mel = self._log_mel(nn.functional.pad(emphasised, (0, max(0, needed - tail.shape[1])))[:, : needed - 1])
        drop = min(count * HOP_SAMPLES, tail.shape[1])
        return FeatureState(tail[:, drop:].clone(), state.tail_start + drop, state.next_frame + count), mel

    def power(self, mel: Tensor) -> Tensor:
        """Return the power (..., M) of the bands, from frames neither ``equalised`` nor normalised "per_feature"."""
        values = mel * FIXED_STD + FIXED_MEAN if self.config.normalize == "fixed" else mel
        return (values.exp() - LOG_GUARD).clamp(min=0.0)  # rounding may make it negative

    def equalised(self, mel: Tensor, spectrum: Tensor) -> Tensor:
        """Return "fixed" frames (B, T, M) with their spectral tilt brought within ``tilt_range``.

        ``spectrum`` (B, M) is the ``power`` of the bands, summed over all frames of each row so far.
        """
        if self.config.tilt_range is None:
            return mel
        with torch.autocast(mel.device.type, enabled=False):
            factors = equaliser(spectrum / self.emphasis, self.hz, self.config.tilt_range)[:, None]
        # log(factor * x + guard), computed from log(x + guard).
        sound = 1 - LOG_GUARD * (-FIXED_STD * mel - FIXED_MEAN).exp()
        return mel + (sound.clamp(min=0.0) * (factors - 1)).log1p() / FIXED_STD

    def _log_mel(self, emphasised: Tensor) -> Tensor:
        step = PART_FRAMES * HOP_SAMPLES
        size = step - HOP_SAMPLES + FFT_SAMPLES
        starts = range(0, emphasised.shape[1] - FFT_SAMPLES + 1, step)
        return torch.cat([self._part(emphasised[:, start : start + size]) for start in starts], dim=1)

    def _part(self, emphasised: Tensor) -> Tensor:
        spectrum = torch.stft(
            emphasised, FFT_SAMPLES, HOP_SAMPLES, window=self.window, center=False, return_complex=True
        )
        power = spectrum.real.square() + spectrum.imag.square()
        with torch.autocast(power.device.type, enabled=False):  # the power of soft bands vanishes in half precision
            bands = torch.matmul(self.filterbank, power)
        mel = torch.log(bands + LOG_GUARD).transpose(1, 2)
        return (mel - FIXED_MEAN) / FIXED_STD if self.config.normalize == "fixed" else mel


def peak_gain(wave: Tensor) -> Tensor:
    """Return the gain (B, 1) that brings the highest sample of each recording (B, N) near 1.

    The maximum is signed, as NVIDIA's, but theirs is over the whole batch, so that results depend on the other
    recordings in it; here each recording has its own. A negative maximum counts as 0; with theirs the gain would be
    negative or infinite.
    """
    return 1.0 / (wave.amax(dim=1, keepdim=True).clamp(min=0.0) + PEAK_GUARD)


def _normalize(mel: Tensor, valid: Tensor) -> Tensor:
    """Normalise each row and band to zero mean and unit (unbiased) standard deviation over its valid frames."""
    weight = valid[..., None].to(mel.dtype)
    count = weight.sum(1, keepdim=True)
    mean = mel.sum(1, keepdim=True) / count.clamp(min=1)
    centred = (mel - mean) * weight
    deviation = (centred.square().sum(1, keepdim=True) / (count - 1).clamp(min=1)).sqrt()
    return centred / (deviation + STD_GUARD)


def mel_filterbank(num_mels: int) -> np.ndarray:
    """Return the Slaney mel filters (num_mels, 257), area-normalised, from 0 to 8 kHz (Auditory Toolbox, 1998)."""
    edges = _mel_edges(num_mels)
    bins = np.linspace(0.0, SAMPLE_RATE / 2, FFT_SAMPLES // 2 + 1)
    slopes = edges[:, None] - bins[None, :]
    widths = np.diff(edges)
    rising = -slopes[:-2] / widths[:-1, None]
    falling = slopes[2:] / widths[1:, None]
    triangles = np.maximum(0.0, np.minimum(rising, falling))
    # Rounded twice, as in librosa, to equal NVIDIA's filters bit for bit.
    return (triangles.astype(np.float32) * (2.0 / (edges[2:] - edges[:-2]))[:, None]).astype(np.float32)


def narrow_bands(num_mels: int) -> int:
    """Return the number of mel filters that begin below 4 kHz, the highest frequency of audio sampled at 8 kHz."""
    return int((_mel_edges(num_mels)[:-2] < NARROW_HZ).sum())


def _mel_edges(num_mels: int) -> np.ndarray:
    """Return the frequencies at which filters begin, peak and end, (num_mels + 2,) in Hz."""
    return _mel_to_hz(np.linspace(0.0, _hz_to_mel(SAMPLE_RATE / 2), num_mels + 2))


# The Slaney scale: linear below 1 kHz (15 mel), then 27 steps for each factor of 6.4.
_LINEAR_HZ_PER_MEL = 200.0 / 3
_BREAK_HZ = 1000.0
_LOG_STEP = np.log(6.4) / 27.0


def _hz_to_mel(hz: float) -> float:
    if hz < _BREAK_HZ:
        return hz / _LINEAR_HZ_PER_MEL
    return _BREAK_HZ / _LINEAR_HZ_PER_MEL + float(np.log(hz / _BREAK_HZ)) / _LOG_STEP


def _mel_to_hz(mel: np.ndarray) -> np.ndarray:
    knee = _BREAK_HZ / _LINEAR_HZ_PER_MEL
    return np.where(mel < knee, mel * _LINEAR_HZ_PER_MEL, _BREAK_HZ * np.exp(_LOG_STEP * np.maximum(mel - knee, 0.0)))
