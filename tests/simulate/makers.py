"""A bank of harmonic voices that speak in phrases, in the format of a user's bank."""

from pathlib import Path

import numpy as np
import soundfile

RATE = 16_000
PITCHES_HZ = {"a_low": 110, "a_high": 240, "b_low": 130, "b_high": 210, "b_mid": 170, "c_dev": 190}
PHRASES_S = ((0.3, 1.5), (2.0, 3.4), (3.9, 4.3), (5.0, 7.0))  # in each utterance of UTTERANCE_S
UTTERANCE_S = 7.5


def voice_wave(pitch_hz: float, seed: int) -> np.ndarray:
    """Return one utterance: a syllabic buzz in each phrase, faint hiss elsewhere."""
    rng = np.random.default_rng(seed)
    time = np.arange(round(UTTERANCE_S * RATE)) / RATE
    buzz = sum(np.sin(2 * np.pi * pitch_hz * k * time) / k for k in range(1, 12))
    envelope = np.zeros_like(time)
    for start, end in PHRASES_S:
        inside = (time >= start) & (time < end)
        envelope[inside] = 0.6 + 0.4 * np.sin(2 * np.pi * 4 * time[inside])
    return (0.1 * buzz * envelope + 1e-4 * rng.normal(size=len(time))).astype(np.float32)


def make_bank_folder(folder: Path) -> Path:
    """Write two utterances per speaker as FLAC, and segments.tsv; "c_dev" is in the dev split."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["file\tspeaker\tsplit\tage\tgender\tstart_s\tend_s"]
    for number, (speaker, pitch) in enumerate(PITCHES_HZ.items()):
        wave = np.concatenate([voice_wave(pitch, number), voice_wave(pitch, number + 50)])
        soundfile.write(folder / f"{speaker}.flac", wave, RATE)
        split = "dev" if speaker.endswith("dev") else "train"
        gender = "m" if pitch < 180 else "f"
        for index in range(2):
            start, end = index * UTTERANCE_S, (index + 1) * UTTERANCE_S
            lines.append(f"{speaker}.flac\t{speaker}\t{split}\t30\t{gender}\t{start:.3f}\t{end:.3f}")
    (folder / "segments.tsv").write_text("\n".join(lines) + "\n")
    return folder
