"""Diarize recordings by clustering, with networks whose weights are in their wheels, to compare with.

    pip install torch==2.13.0 soundfile soxr 'setuptools<81'    # in an environment of its own
    pip install --no-build-isolation silero-vad==6.2.3 resemblyzer==0.1.4 spectralcluster==0.2.22
    python clustering_peer.py OUT RECORDING ...    # --one-speaker: all speech to one speaker

OUT gets an RTTM for each recording, named like it. Silero finds speech, resemblyzer embeds windows of 1.5 s every half
second, and spectral clustering groups them. To score it, give a recipe (default_model, other_languages)
PEER="/path/to/its/environment/bin/python ../benchmark/clustering_peer.py".
"""

import argparse
from collections.abc import Callable
from functools import partial
from itertools import groupby
from pathlib import Path

import numpy as np
import torch
from peer import RATE, write_rttms
from resemblyzer import VoiceEncoder
from resemblyzer.audio import wav_to_mel_spectrogram
from silero_vad import get_speech_timestamps, load_silero_vad
from spectralcluster import SpectralClusterer, configs

WINDOW, STEP = 24000, 8000  # samples
SHORTEST = 6400  # samples: of a shorter window, as much around its middle is embedded
TICK = 160  # samples: turns begin and end at multiples of 10 ms
SPREAD = 40  # ticks: how fast the vote of a window fades away from its middle

Span = tuple[int, int]  # start and end, in samples


def speech_in(samples: np.ndarray, detector: torch.nn.Module) -> list[Span]:
    found = get_speech_timestamps(
        torch.from_numpy(samples), detector, threshold=0.4, min_silence_duration_ms=100, speech_pad_ms=60
    )
    return [(stretch["start"], stretch["end"]) for stretch in found]


def windows_over(speech: list[Span]) -> list[Span]:
    """Windows over each stretch of speech, the last of which ends with it."""
    windows = []
    for start, end in speech:
        windows += [(first, first + WINDOW) for first in range(start, end - WINDOW, STEP)]
        windows.append((max(start, end - WINDOW), end))
    return windows


def embedded(samples: np.ndarray, windows: list[Span], encoder: VoiceEncoder) -> np.ndarray:
    """An embedding of norm 1 for each window (windows x 256)."""
    spectra = []
    for start, end in windows:
        if end - start < SHORTEST:
            middle = (start + end) // 2
            start, end = max(0, middle - SHORTEST // 2), middle + SHORTEST // 2
        # The encoder takes 1.6 s, 160 frames: what is shorter is repeated.
        spectra.append(wav_to_mel_spectrogram(np.resize(samples[start:end], RATE * 8 // 5))[:160])
    with torch.inference_mode():
        found = torch.cat([encoder(batch) for batch in torch.from_numpy(np.stack(spectra)).split(32)])
    return torch.nn.functional.normalize(found, dim=1).numpy()


def as_one(_: np.ndarray, windows: list[Span]) -> np.ndarray:
    """The same speaker for each window."""
    return np.zeros(len(windows), int)


def by_voice(samples: np.ndarray, windows: list[Span], encoder: VoiceEncoder) -> np.ndarray:
    """The number of its speaker for each window; one for fewer than three windows, which cannot be clustered."""
    if len(windows) < 3:
        return as_one(samples, windows)
    refinement = configs.icassp2018_refinement_options
    clusterer = SpectralClusterer(min_clusters=1, max_clusters=8, refinement_options=refinement)
    return clusterer.predict(embedded(samples, windows, encoder))


def diarized(
    samples: np.ndarray, detector: torch.nn.Module, label: Callable[[np.ndarray, list[Span]], np.ndarray]
) -> list[tuple[float, float, int]]:
    """Turns: each moment of speech goes to the speaker for whom the nearest windows vote."""
    speech = speech_in(samples, detector)
    windows = windows_over(speech)
    labels = label(samples, windows)
    ticks = len(samples) // TICK + 1
    votes = np.zeros((labels.max(initial=0) + 1, ticks))
    for (start, end), speaker in zip(windows, labels, strict=True):
        tick = np.arange(start // TICK, min(ticks, end // TICK))
        votes[speaker, tick] += np.exp(-(((tick - (start + end) / 2 / TICK) / SPREAD) ** 2)) + 1e-3
    who = np.full(ticks, -1)
    for start, end in speech:
        spoken = slice(start // TICK, end // TICK)
        who[spoken] = votes[:, spoken].argmax(axis=0)
    runs = [list(run) for _, run in groupby(range(ticks), who.__getitem__)]
    return [(run[0] / 100, (run[-1] + 1) / 100, int(who[run[0]])) for run in runs if who[run[0]] >= 0]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("recordings", type=Path, nargs="+")
    parser.add_argument("--one-speaker", action="store_true")
    given = parser.parse_args()
    label = as_one if given.one_speaker else partial(by_voice, encoder=VoiceEncoder("cpu", verbose=False))
    write_rttms(given.out, given.recordings, partial(diarized, detector=load_silero_vad(), label=label))
