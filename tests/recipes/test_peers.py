"""The scripts that run other diarizers, with stand-ins for these."""

import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile
import torch

from sortformer import Turn
from sortformer.formats import rttm

FOLDER = Path(__file__).resolve().parents[2] / "recipes/benchmark"


@pytest.fixture
def diarized(tmp_path, monkeypatch):
    """The turns that a script finds in each of some waves at 8 kHz."""
    monkeypatch.setattr(sys, "path", [str(FOLDER), *sys.path])

    def turns(script: str, waves: dict[str, np.ndarray], *options: str) -> dict[str, list[tuple[float, float, str]]]:
        for name, wave in waves.items():
            soundfile.write(tmp_path / f"{name}.flac", wave, 8000)
        recordings = [str(tmp_path / f"{name}.flac") for name in waves]
        monkeypatch.setattr(sys, "argv", ["", str(tmp_path / "out"), *recordings, *options])
        runpy.run_path(str(FOLDER / script), run_name="__main__")
        found = {name: rttm.read(tmp_path / "out" / f"{name}.rttm") for name in waves}
        return {name: [span(turn) for turn in by_uri.get(name, [])] for name, by_uri in found.items()}

    return turns


def span(turn: Turn) -> tuple[float, float, str]:
    return turn.start, turn.end, turn.speaker


class Senko:
    """Reads 16 kHz, mono, 16 bits; finds one turn over all of a recording, None in silence."""

    def __init__(self, device: str, warmup: bool) -> None:
        assert (device, warmup) == ("cpu", False)

    def diarize(self, path: str, generate_colors: bool) -> dict[str, list[dict[str, object]]] | None:
        about = soundfile.info(path)
        assert (about.samplerate, about.channels, about.subtype, generate_colors) == (16000, 1, "PCM_16", False)
        if not soundfile.read(path)[0].any():
            return None
        return {"merged_segments": [{"start": 0.0, "end": about.duration, "speaker": "SPEAKER_01"}]}


def test_senko_finds_turns_and_none_in_silence(diarized, monkeypatch):
    monkeypatch.setitem(sys.modules, "senko", SimpleNamespace(Diarizer=Senko))
    waves = {"talk": 0.1 * np.ones((8000, 2)), "silence": np.zeros((8000, 2))}
    assert diarized("senko_peer.py", waves) == {"talk": [(0.0, 1.0, "SPEAKER_01")], "silence": []}


@pytest.fixture
def parts(monkeypatch):
    """Stand-ins: speech is what is not silent, and a voice is louder than 0.2 or not, by the mean of its windows."""

    def stretches(samples: torch.Tensor, *_: object, **__: object) -> list[dict[str, int]]:
        edges = np.diff(np.r_[0, samples.abs() > 0.05, 0])
        starts, ends = np.flatnonzero(edges > 0), np.flatnonzero(edges < 0)
        return [{"start": start, "end": end} for start, end in zip(starts, ends, strict=True)]

    def spectrum(samples: np.ndarray) -> np.ndarray:
        assert samples.shape == (25600,)
        return np.full((161, 40), samples.mean(), np.float32)

    def encoder(*_: object, **__: object):
        return lambda spectra: torch.stack([spectra.mean(dim=(1, 2)), torch.full((len(spectra),), 0.2)], dim=1)

    def clusterer(**_: object) -> SimpleNamespace:
        return SimpleNamespace(predict=lambda embeddings: (embeddings[:, 0] > embeddings[:, 1]).astype(int))

    silero = SimpleNamespace(get_speech_timestamps=stretches, load_silero_vad=object)
    spectral = SimpleNamespace(SpectralClusterer=clusterer, configs=SimpleNamespace(icassp2018_refinement_options=None))
    monkeypatch.setitem(sys.modules, "silero_vad", silero)
    monkeypatch.setitem(sys.modules, "resemblyzer", SimpleNamespace(VoiceEncoder=encoder))
    monkeypatch.setitem(sys.modules, "resemblyzer.audio", SimpleNamespace(wav_to_mel_spectrogram=spectrum))
    monkeypatch.setitem(sys.modules, "spectralcluster", spectral)


@pytest.mark.usefixtures("parts")
def test_clustering_gives_speech_to_the_voices_of_the_nearest_windows(diarized):
    second = np.full(8000, 0.1)
    waves = {
        "two": np.concatenate([0 * second, *[second] * 4, *[3 * second] * 4, 0 * second]),
        "short": np.concatenate([0 * second, second, 3 * second[:4000]]),
        "silence": np.zeros(8000),
        "tail": np.concatenate([0 * second, np.tile(second, 2)[:10_400], 3 * np.tile(second, 2)[:7_600], 0 * second]),
        "click": np.concatenate([*[3 * second] * 4, 0 * second, 3 * second[:1600], 0 * second]),
    }
    found = diarized("clustering_peer.py", waves)
    (first, second_turn) = found["two"]
    assert first == (pytest.approx(1, abs=0.02), pytest.approx(5, abs=0.3), "0")
    assert second_turn == (first[1], pytest.approx(9, abs=0.02), "1")
    assert [turn[2] for turn in found["short"]] == ["0"]
    assert found["silence"] == []
    # From its last window on, though one before it goes on for longer.
    assert [turn[0] for turn in found["tail"]] == pytest.approx([1.0, 2.4], abs=0.05)
    # What is short is embedded with what surrounds it, here silence.
    assert [turn[2] for turn in found["click"]] == ["1", "0"]
    alone = diarized("clustering_peer.py", waves, "--one-speaker")
    assert alone["two"] == [(first[0], second_turn[1], "0")]
