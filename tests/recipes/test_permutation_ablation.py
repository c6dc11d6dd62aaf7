"""The ablation in miniature: synthetic voices, two arms, a few steps; and its counts against loops."""

import json
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

RECIPE = Path(__file__).resolve().parents[2] / "recipes/permutation_ablation"
COMMON = """
steps = 3
workers = 0
evaluate_conversations = 0
[data]
bank = "voices"
speeds = [1.0]
cache = "cache"
turns = ["turns"]
[simulation]
num_slots = 2
speaker_weights = [0.0, 1.0]
[simulation.channel]
clean_probability = 1.0
[[stages]]
until_step = 3
duration_s = 2
batch_size = 2
"""
MODEL = """
[model.encoder]
kind = "transformer"
subsampling = "stacking"
dim = 8
layers = 1
heads = 1
ff_dim = 8
[model.head]
num_slots = 2
dim = 128
layers = 2
heads = 1
ff_dim = 128
estimate_layers = [1]
"""
OPTIONS = ["--question", "arms", "--arms", "none", "A", "--pools", "3", "--seeds", "1", "--conversations", "3"]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], dict[str, Any]]:
    monkeypatch.syspath_prepend(str(RECIPE))
    return lambda name: runpy.run_path(str(RECIPE / f"{name}.py"))


@pytest.fixture
def recipes(tmp_path: Path) -> Path:
    voices = runpy.run_path(str(RECIPE.parent / "overfit_one/make_voices.py"))["main"]
    voices(tmp_path / "voices")
    table = tmp_path / "voices/segments.tsv"
    *others, last = table.read_text().splitlines()
    dev = "\n".join(row.replace("\ttrain\t", "\tdev\t") for row in (others[-1], last))
    table.write_text("\n".join([*others, last]) + "\n" + dev + "\n")
    for folder in ("turns", "held_out"):
        (tmp_path / folder).mkdir()
        lines = [f"SPEAKER {folder} 1 {at} 1.5 <NA> <NA> {'ab'[at % 2]} <NA> <NA>" for at in range(12)]
        (tmp_path / folder / "meeting.rttm").write_text("\n".join(lines) + "\n")
    (tmp_path / "encoder.toml").write_text(COMMON + MODEL)
    (tmp_path / "cell.toml").write_text(COMMON)
    return tmp_path


def test_the_ablation_in_miniature(script, recipes, tmp_path, capsys):
    out = tmp_path / "cells"
    given = [str(out), "--recipes", str(recipes), "--held-out", str(tmp_path / "held_out"), *OPTIONS]
    main = script("ablation")["main"]
    main([*given, "--minutes", "-1"])
    assert "no cell is finished" in capsys.readouterr().out

    main(given)
    said = capsys.readouterr().out
    assert "2 of 2" in said
    assert "| 3 | A - none |" in said
    results = [json.loads(path.read_text()) for path in out.glob("*/result.json")]
    assert {result["cell"]["arm"] for result in results} == {"none", "A"}
    for split in ("train", "dev", "real"):
        one, other = (result[split] for result in results)
        assert len(one["errors"]) == 3
        assert one["total"] == other["total"]  # the same conversations
    drawn = {path.parent.name: path.stat().st_mtime_ns for path in out.glob("*/result.json")}

    main(given)
    assert "of 2:" not in capsys.readouterr().out
    assert drawn == {path.parent.name: path.stat().st_mtime_ns for path in out.glob("*/result.json")}
    script("summary")["plot"](script("summary")["load"](out), tmp_path / "plots")
    assert "<svg" in (tmp_path / "plots/arms.svg").read_text()


def test_the_recipe_gives_arms_of_one_size(script):
    ablation = script("ablation")
    sizes = ablation["parameters"](ablation["Recipes"].read(RECIPE), list(ablation["ARMS"]))
    assert set(sizes) == {"none", "label", "A", "B", "C"}
    assert max(sizes.values()) < 1.01 * min(sizes.values())


def test_the_plan_asks_each_cell_once_and_seeds_in_turn(script):
    ablation = script("ablation")
    cells = ablation["plan"](ablation["QUESTIONS"], list(ablation["ARMS"]), (25, 100, 400), 3)
    assert len(cells) == len({cell.name for cell in cells}) == 3 * (5 * 3 + 2 * 9 - 2 + 3 - 1)
    assert [cell.seed for cell in cells] == sorted(cell.seed for cell in cells)


@pytest.mark.parametrize(
    ("slots", "right"),
    [([0, 1, None], True), ([1, 0, None], False), ([0, None, None], False), ([0, 2, None], False)],
)
def test_the_order_is_right_if_every_speaker_is_found_in_their_slot(script, slots, right):
    target = np.zeros((20, 3), dtype=bool)
    target[:8, 0] = target[6:20, 1] = True
    active = np.zeros_like(target)
    for speaker, slot in enumerate(slots):
        if slot is not None:
            active[:, slot] = target[:, speaker]
    assert script("ablation")["order_right"](active, target) is right


def result(seed: int, errors: list[float], training: list[float]) -> dict[str, Any]:
    def split(wrong: list[float]) -> dict[str, list[float]]:
        return {"total": [10.0, 20.0, 30.0], "errors": wrong, "errors_in_order": wrong, "order_right": [1, 0, 1]}

    return {"cell": {"seed": seed}, "dev": split(errors), "train": split(training), "real": split(errors)}


def test_rates_are_sums_over_sums_and_differences_are_paired(script):
    summary = script("summary")
    one = summary["Group"]({0: result(0, [3, 4, 5], [1, 1, 1]), 1: result(1, [4, 5, 6], [2, 2, 2])})
    other = summary["Group"]({0: result(0, [2, 2, 2], [1, 1, 1]), 2: result(2, [9, 9, 9], [0, 0, 0])})
    assert summary["value"](one, "dev DER") == pytest.approx(100 * 27 / 120)
    assert summary["value"](one, "gap") == pytest.approx(100 * (27 - 9) / 120)
    assert summary["value"](one, "order right") == pytest.approx(100 * 2 / 3)
    middle, low, high = summary["difference"](one, other, "dev DER")
    assert middle == pytest.approx(100 * (12 - 6) / 60)  # of the seed that both have
    # Conversations drawn alone give 1/10, 2/20 and 3/30 more: whatever is drawn, the difference is the same.
    assert (low, high) == pytest.approx((middle, middle))
    assert summary["difference"](one, summary["Group"]({2: result(2, [1, 1, 1], [0, 0, 0])}), "gap") is None
