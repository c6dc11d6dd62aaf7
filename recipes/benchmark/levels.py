"""DER of recordings as they are, quieter, and louder up to full scale, in 16 bits: does the level matter?

    python levels.py FOLDER ... [--preset 1s] [--model MODEL]

Each folder holds recordings with their references, as RTTM of the same names. Protocol full: no collar, overlap scored,
whole recordings, diarized at once or streamed with a preset.
"""

from functools import partial

import numpy as np
from scored_folders import print_table

DECIBELS = (20, 10, 0, -10, -20, -30, -40)  # amplification is limited to full scale


def louder(samples: np.ndarray, decibels: int) -> np.ndarray:
    """Return samples (N,) in 16 bits, amplified by so many dB or to full scale."""
    factor = min(10 ** (decibels / 20), max(1.0, 32767 / 32768 / np.abs(samples).max()))
    return np.round(samples * factor * 32768).clip(-32768, 32767).astype(np.int16)


if __name__ == "__main__":
    print_table(__doc__, {f"{decibels:4} dB": partial(louder, decibels=decibels) for decibels in DECIBELS})
