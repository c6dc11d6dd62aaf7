"""Another throat for a voice: its formants higher or lower, its pitch as it was."""

import math

import numpy as np
import torch
from torch import Tensor

__all__ = ["with_formants"]

_FRAME, _HOP = 512, 128
_LIFTER = 32  # cepstral coefficients of 1/16000 s that make the envelope: pitch is beyond them up to 500 Hz
_MOST_GAIN = math.log(10.0)  # of a bin: what a deep valley is divided by would be noise otherwise


def with_formants(wave: np.ndarray, factor: float) -> np.ndarray:
    """Return speech (n,) at 16 kHz whose spectral envelope lies ``factor`` times as high, float32.

    The envelope is the cepstrally smoothed spectrum of each frame, moved along the frequency axis; the fine structure,
    and with it the pitch, stays. A shorter vocal tract has higher formants, so together with other speeds, which move
    both, this makes voices of many builds from one (vocal tract length perturbation, Jaitly & Hinton 2013).
    """
    if len(wave) < _FRAME:
        return wave.astype(np.float32)
    samples, window = torch.from_numpy(wave.astype(np.float32)), torch.hann_window(_FRAME)
    spectrum = torch.stft(samples, _FRAME, _HOP, window=window, return_complex=True).T
    envelope = _envelope(spectrum)
    gain = torch.exp((_moved(envelope, factor) - envelope).clamp(-_MOST_GAIN, _MOST_GAIN))
    return torch.istft((spectrum * gain).T, _FRAME, _HOP, window=window, length=len(wave)).numpy()


def _envelope(spectrum: Tensor) -> Tensor:
    """Logarithm of the smoothed magnitudes (F, bins) of frames."""
    cepstrum = torch.fft.irfft(torch.log(spectrum.abs() + 1e-6), n=_FRAME)
    cepstrum[:, _LIFTER : _FRAME - _LIFTER + 1] = 0.0
    return torch.fft.rfft(cepstrum).real


def _moved(envelope: Tensor, factor: float) -> Tensor:
    """The envelope (F, bins) at frequencies ``factor`` times as low; beyond the last bin it stays as at the last."""
    bins = envelope.shape[1]
    at = (torch.arange(bins) / factor).clamp(max=bins - 1)
    low = at.long().clamp(max=bins - 2)
    return torch.lerp(envelope[:, low], envelope[:, low + 1], at - low)
