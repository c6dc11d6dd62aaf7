"""The recipe of returning speakers in miniature: streams with and without memory, and the plot of both."""

import json
import re
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

from sortformer import Diarizer, audio
from tests.simulate.makers import make_bank_folder

RECIPE = Path(__file__).resolve().parents[2] / "recipes/returning_speakers"


def run(monkeypatch: pytest.MonkeyPatch, name: str, *arguments: object) -> dict[str, Any]:
    monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
    return runpy.run_path(str(RECIPE / name), run_name="__main__")


def test_returns_are_counted_and_drawn(tmp_path, monkeypatch, capsys):
    bank = make_bank_folder(tmp_path / "bank") / "segments.tsv"
    bank.write_text(
        re.sub(r"\t([abc])_(\w+)\t(train|dev)", r"\tone_\1\2\tdev", bank.read_text())
    )  # voices of one corpus
    short = ("--hours", 0.06, "--gaps", 3, 5, "--cache", tmp_path / "cache")
    found = [tmp_path / "found.json", tmp_path / "forgetful.json"]
    run(monkeypatch, "returning.py", bank.parent, found[0], *short)
    run(monkeypatch, "returning.py", bank.parent, found[1], *short, "--no-cache")
    for path, remembers in zip(found, (True, False), strict=True):
        written = json.loads(path.read_text())
        assert (written["cache"], written["slots"], written["gaps"]) == (remembers, 8, [3, 5])
        assert {event["gap_s"] for event in written["returns"]} == {3, 5}
    assert "| 3 s | " in capsys.readouterr().out
    run(monkeypatch, "plot.py", tmp_path / "drawn.svg", *found)
    assert (tmp_path / "drawn.svg").stat().st_size > 1000


def test_a_forgetful_stream_remembers_the_fifo_only(monkeypatch):
    monkeypatch.syspath_prepend(str(RECIPE))
    from returning import forgetful

    diarizer = Diarizer.load()
    session = diarizer.stream(forgetful(diarizer.stream("1s").config))
    session.push(audio.read("demos/meeting.wav")[: 15 * 16_000])
    memory = session._position.memory
    assert memory.fifo.length
    assert not memory.cache.length
    assert not memory.voices.length
