"""The benchmark of training in miniature: steps of a tiny recipe, with one row per stage."""

import re
import runpy
import sys
from pathlib import Path

import pytest
import torch

from tests.cli.test_train import RECIPE
from tests.simulate.makers import make_bank_folder

SCRIPT = Path(__file__).resolve().parents[2] / "recipes/benchmark/training.py"


def test_each_stage_of_a_step_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    make_bank_folder(tmp_path / "bank")
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(RECIPE.replace("duration_s = 3", "duration_s = 2"))
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), str(recipe), "--device", "cpu", "--steps", "1"])
    runpy.run_path(str(SCRIPT), run_name="__main__")
    torch.set_flush_denormal(False)  # a script would change its own process only, here it is the tests'
    said = capsys.readouterr().out
    assert "1 x 2 s on cpu" in said
    rows = re.findall(r"^\| (.+?) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| (\d+) \|$", said, re.MULTILINE)
    assert [row[0] for row in rows] == ["drafting", "rendering", "features", "a step, features included"]
    assert all(float(wall) > 0 for _, _, wall, _, _ in rows)
    assert re.search(r"workers that keep up: \d+\.\d+", said)
    assert re.search(r"arithmetic of a step: \d+ GFLOP", said)
