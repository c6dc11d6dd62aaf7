"""The script that measures the calibration of confidence."""

import runpy
import shutil
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "recipes/benchmark"


def test_it_tells_how_far_each_folder_is_off(tmp_path, monkeypatch, capsys):
    for name in ("meeting.wav", "meeting.rttm"):
        shutil.copy(Path("demos", name), tmp_path)
    monkeypatch.setattr(sys, "path", [str(FOLDER), *sys.path])
    monkeypatch.setattr(sys, "argv", ["confidence.py", str(tmp_path)])
    runpy.run_path(str(FOLDER / "confidence.py"))["main"]()
    line, last = capsys.readouterr().out.splitlines()
    assert line.startswith(tmp_path.name)
    assert 0 < float(line.split(" % right")[0].split()[-1]) <= 100
    assert line.count("off by") == 1
    assert last == "too few turns to fit by"
