"""The script of telephone lines and codecs: the output is as long, aligned, and band-limited."""

import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.signal import correlate

from sortformer import audio

FOLDER = Path(__file__).resolve().parents[2] / "recipes/benchmark"
WAYS = ("line, mu-law", "AMR, 12.2 kbit/s", "Opus, 12 kbit/s", "MP3, 16 kbit/s")


@pytest.fixture
def script(monkeypatch) -> dict[str, Any]:
    monkeypatch.setattr(sys, "path", [str(FOLDER), *sys.path])
    return runpy.run_path(str(FOLDER / "telephone.py"))


@pytest.mark.parametrize("way", WAYS)
def test_a_call_is_the_recording_without_its_upper_half(script, way: str):
    meeting = audio.read("demos/meeting.wav")[: 10 * 16_000 + 7]
    codec = getattr(script["WAYS"][way], "keywords", {}).get("codec")
    if codec is not None and not script["written"](codec):
        pytest.skip(f"FFmpeg has no {codec} here")
    call = script["WAYS"][way](meeting)
    assert call.shape == meeting.shape
    power = np.abs(np.fft.rfft(call)) ** 2
    assert power[len(power) // 2 :].sum() < 1e-3 * power.sum()
    late = int(np.argmax(correlate(call, meeting))) - (len(meeting) - 1)
    assert abs(late) < 0.02 * 16_000


def test_recordings_are_scored_in_every_way(script, tmp_path, monkeypatch, capsys):
    for name in ("meeting.wav", "meeting.rttm"):
        (tmp_path / name).write_bytes(Path("demos", name).read_bytes())
    monkeypatch.setattr(sys, "argv", ["telephone.py", str(tmp_path)])
    script["main"]()
    lines = capsys.readouterr().out.splitlines()
    for way, line in zip(("as it is", *WAYS), lines, strict=True):
        assert way in line
        assert "DER" in line or "not measured: FFmpeg has no lib" in line
    assert "DER" in lines[0]
    assert "DER" in lines[1]
