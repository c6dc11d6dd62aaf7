"""Write a bank of synthetic voices: phrases of buzzing vowels, with a pitch and vocal tract for each voice.

    python make_voices.py FOLDER

A bank is ``segments.tsv`` and the recordings that it names; real banks have the same format.
"""

import sys
from pathlib import Path

import numpy as np
import soundfile

RATE = 16_000
UTTERANCE_S = 12.0
VOWELS_HZ = ((730, 1090, 2440), (270, 2290, 3010), (300, 870, 2240), (530, 1840, 2480), (570, 840, 2410))
VOICES = {"bass": (85, 0.92), "baritone": (115, 1.0), "tenor": (150, 1.04), "alto": (190, 1.12), "soprano": (235, 1.2)}


def utterance(rng: np.random.Generator, pitch_hz: float, throat: float) -> np.ndarray:
    """Return phrases of vowels separated by pauses: (UTTERANCE_S * RATE,) in [-1, 1]."""
    wave = 1e-4 * rng.normal(size=round(UTTERANCE_S * RATE))
    at = 0.2
    while at < UTTERANCE_S - 2.5:
        length_s = rng.uniform(0.8, 2.2)
        start, count = round(at * RATE), round(length_s * RATE)
        wave[start : start + count] += phrase(rng, count, pitch_hz, throat)
        at += length_s + rng.uniform(0.35, 0.9)
    return wave / np.abs(wave).max() * 0.7


def phrase(rng: np.random.Generator, count: int, pitch_hz: float, throat: float) -> np.ndarray:
    """Return ``count`` samples of vowels of 0.2 s: harmonics of a gliding pitch, shaped by three formants."""
    knots = np.arange(0, count + RATE // 5, RATE // 5)
    time = np.arange(count)
    pitch = pitch_hz * np.interp(time, knots, rng.normal(1, 0.05, len(knots)))
    formants = np.array([VOWELS_HZ[vowel] for vowel in rng.integers(len(VOWELS_HZ), size=len(knots))]) * throat
    formants = np.stack([np.interp(time, knots, track) for track in formants.T])
    angle = 2 * np.pi * np.cumsum(pitch) / RATE
    sound = np.zeros(count)
    for harmonic in range(1, int(4_000 / pitch_hz)):
        gain = (1 / (1 + ((harmonic * pitch - formants) / 120) ** 2)).sum(axis=0) + 0.02
        sound += gain / harmonic**0.5 * np.sin(harmonic * angle)
    syllables = 0.65 + 0.35 * np.sin(2 * np.pi * 4 * time / RATE)
    edges = np.minimum(1, np.minimum(time, count - time) / (0.02 * RATE))
    return sound * syllables * edges


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["file\tspeaker\tsplit\tgender\tstart_s\tend_s"]
    for number, (name, (pitch_hz, throat)) in enumerate(VOICES.items()):
        rng = np.random.default_rng(number)
        soundfile.write(folder / f"{name}.ogg", utterance(rng, pitch_hz, throat), RATE, format="OGG", subtype="VORBIS")
        lines.append(f"{name}.ogg\tsynthetic_{name}\ttrain\t\t0.000\t{UTTERANCE_S:.3f}")
    (folder / "segments.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    main(Path(sys.argv[1]))
