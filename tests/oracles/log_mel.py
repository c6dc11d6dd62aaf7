"""Log-mel features in float64 with librosa and plain numpy, one recording at a time.

Written from NVIDIA's description of its front end: pre-emphasis, symmetric Hann of 400 samples centred in 512, hop 160,
zero padding, power, Slaney mel bands, log with a guard of 2**-24.
"""

import librosa
import numpy as np
from scipy.signal import get_window

__all__ = ["log_mel", "normalized"]


def log_mel(wave: np.ndarray, num_mels: int) -> np.ndarray:
    """Features (T, M) of a wave (N,), with T = N // 160."""
    wave = np.asarray(wave, dtype=np.float64)
    emphasised = wave.copy()
    for i in range(1, len(wave)):
        emphasised[i] = wave[i] - 0.97 * wave[i - 1]
    spectrum = librosa.stft(
        emphasised,
        n_fft=512,
        hop_length=160,
        win_length=400,
        window=get_window("hann", 400, fftbins=False),
        center=True,
        pad_mode="constant",
        dtype=np.complex128,
    )
    bands = librosa.filters.mel(sr=16_000, n_fft=512, n_mels=num_mels, fmin=0, fmax=8_000, dtype=np.float64)
    return np.log(bands @ np.abs(spectrum) ** 2 + 2.0**-24).T[: len(wave) // 160]


def normalized(features: np.ndarray) -> np.ndarray:
    """Each bin with zero mean, divided by its unbiased deviation plus 1e-5."""
    result = np.empty_like(features)
    for band in range(features.shape[1]):
        values = features[:, band]
        result[:, band] = (values - values.mean()) / (values.std(ddof=1) + 1e-5)
    return result
