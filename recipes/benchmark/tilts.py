"""DER of recordings as they are, and with the spectra of duller and thinner microphones.

    python tilts.py FOLDER ... [--preset 1s] [--model MODEL]

Each folder holds recordings with their references, as RTTM of the same names. Protocol full: no collar, overlap scored,
whole recordings, diarized at once or streamed with a preset. The peak is kept, and samples have 16 bits.
"""

from functools import partial

import numpy as np
from scored_folders import print_table

from sortformer.grid import SAMPLE_RATE

TILTS = (-9, -6, -3, 0, 3, 6, 9)  # dB per octave
LEAST_HZ = 50.0  # below this the gain is constant


def tilted(samples: np.ndarray, decibels: float) -> np.ndarray:
    """Return samples (N,) in 16 bits, with a gain that rises by so many dB per octave."""
    hz = np.maximum(np.fft.rfftfreq(len(samples), 1 / SAMPLE_RATE), LEAST_HZ)
    wave = np.fft.irfft(np.fft.rfft(samples) * 10 ** (decibels * np.log2(hz) / 20), len(samples))
    return np.round(wave * (np.abs(samples).max() / np.abs(wave).max()) * 32767).astype(np.int16)


if __name__ == "__main__":
    print_table(__doc__, {f"{decibels:+} dB an octave": partial(tilted, decibels=decibels) for decibels in TILTS})
