"""The script of duller and thinner microphones: the output is as long, with the same peak."""

import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sortformer import audio

FOLDER = Path(__file__).parents[2] / "recipes/benchmark"


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(FOLDER)
        return runpy.run_path(str(FOLDER / "tilts.py"))


@pytest.mark.parametrize("decibels", [-6, 3])
def test_each_octave_is_so_much_louder_than_the_one_below(script: dict[str, Any], decibels: int):
    samples = audio.read("demos/meeting.wav")
    found = script["tilted"](samples, decibels)
    assert found.dtype == np.int16
    assert np.abs(found).max() == pytest.approx(32767 * np.abs(samples).max(), abs=1)
    change = [
        np.abs(np.fft.rfft(found)[low : 2 * low]).mean() / np.abs(np.fft.rfft(samples)[low : 2 * low]).mean()
        for low in (6_000, 12_000, 24_000)
    ]
    np.testing.assert_allclose(20 * np.diff(np.log10(change)), decibels, atol=1)


def test_recordings_are_scored_at_every_tilt(
    script: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    for name in ("meeting.wav", "meeting.rttm"):
        (tmp_path / name).write_bytes(Path("demos", name).read_bytes())
    monkeypatch.setattr(sys, "argv", ["tilts.py", str(tmp_path)])
    monkeypatch.syspath_prepend(FOLDER)
    runpy.run_path(str(FOLDER / "tilts.py"), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(script["TILTS"])
    for decibels, line in zip(script["TILTS"], lines, strict=True):
        assert f"{decibels:+} dB an octave  DER" in line
