"""Another vocal tract for a voice: formants are shifted, and the pitch is kept."""

import math

import numpy as np
import torch
from torch import Tensor

__all__ = ["with_formants"]

_FRAME, _HOP = 512, 128
_LIFTER = 32  # cepstral coefficients (each 1/16000 s) of the envelope: pitch up to 500 Hz lies beyond them
_MOST_GAIN = math.log(10.0)  # of a bin: otherwise deep valleys of the spectrum would be amplified to noise


def with_formants(wave: np.ndarray, factor: float) -> np.ndarray:
    """Return speech (n,) at 16 kHz with its spectral envelope scaled by ``factor`` in frequency, float32.

    The envelope is the cepstrally smoothed spectrum of each frame, scaled along the frequency axis; the fine structure,
    and with it the pitch, is kept. A shorter vocal tract has higher formants, so together with changes of speed, which
    scale both, this makes many voices from one (vocal tract length perturbation, Jaitly & Hinton 2013).
    """
    if len(wave) < _FRAME:
        return wave.astype(np.float32)
    samples, window = torch.from_numpy(wave.astype(np.float32)), torch.hann_window(_FRAME)
    spectrum = torch.stft(samples, _FRAME, _HOP, window=window, return_complex=True).T
    envelope = _envelope(spectrum)
    gain = torch.exp((_moved(envelope, factor) - envelope).clamp(-_MOST_GAIN, _MOST_GAIN))
    return torch.istft((spectrum * gain).T, _FRAME, _HOP, window=window, length=len(wave)).numpy()


def _envelope(spectrum: Tensor) -> Tensor:
    """Return the logarithm of the smoothed magnitudes (F, bins) of frames."""
    cepstrum = torch.fft.irfft(torch.log(spectrum.abs() + 1e-6), n=_FRAME)
    cepstrum[:, _LIFTER : _FRAME - _LIFTER + 1] = 0.0
    return torch.fft.rfft(cepstrum).real


def _moved(envelope: Tensor, factor: float) -> Tensor:
    """Return the envelope (F, bins) scaled by ``factor`` in frequency; beyond the last bin it is constant."""
    bins = envelope.shape[1]
    at = (torch.arange(bins) / factor).clamp(max=bins - 1)
    low = at.long().clamp(max=bins - 2)
    return torch.lerp(envelope[:, low], envelope[:, low + 1], at - low)
