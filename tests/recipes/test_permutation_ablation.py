"""The ablation in miniature: synthetic voices, two arms, a few steps; and its counts against loops."""

import json
import runpy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from sortformer.config.data import DataConfig
from sortformer.config.model import EncoderConfig, HeadConfig, ModelConfig
from sortformer.config.simulation import SimulationConfig
from sortformer.config.train import OptimizerConfig, StageConfig, TrainConfig
from sortformer.data import Sources
from sortformer.model import Sortformer
from sortformer.model.head import Head
from tests.recipes.script import run_script

RECIPE = Path(__file__).resolve().parents[2] / "recipes/permutation_ablation"
CELL = """
steps = 3
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
[model.head]
num_slots = 2
dim = 64
layers = 2
heads = 1
ff_dim = 64
estimate_layers = [1]
"""
OPTIONS = ["--question", "arms", "--arms", "none", "A", "--pools", "3", "--seeds", "1"]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], dict[str, Any]]:
    monkeypatch.syspath_prepend(str(RECIPE))
    return lambda name: runpy.run_path(str(RECIPE / f"{name}.py"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
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
    (tmp_path / "cell.toml").write_text(CELL)
    return tmp_path


def test_the_ablation_in_miniature(script, folder, capsys):
    out = folder / "cells"
    given = ["--recipe", str(folder / "cell.toml"), "--held-out", str(folder / "held_out"), *OPTIONS]
    given += ["--trained", "4", "--measured", "3"]
    main = script("ablation")["main"]
    main([str(out), *given, "--minutes", "-1"])
    assert "no cell is finished" in capsys.readouterr().out

    said = run_script(RECIPE / "run.sh", folder, *given, OUT=out)
    assert "| 3 | A - none |" in (out / "tables.md").read_text()
    assert "2 of 2" in said
    assert "| 3 | A - none |" in said
    results = [json.loads(path.read_text()) for path in out.glob("*.json")]
    assert {result["cell"]["arm"] for result in results} == {"none", "A"}
    for split in ("fit", "train", "dev", "real"):
        one, other = (result[split] for result in results)
        assert len(one["errors"]) == 3
        assert one["total"] == other["total"]  # the same conversations
    drawn = {path.name: path.stat().st_mtime_ns for path in out.glob("*.json")}

    of = {path.stem: script("encoded")["kept"](path, None).activity for path in out.glob("encoded/pool3-*.pt")}
    assert not of["pool3-parametric-seed1"][:3].equal(of["pool3-new-seed1"])  # measured on conversations that are new

    main([str(out), *given])
    assert "of 2:" not in capsys.readouterr().out
    assert drawn == {path.name: path.stat().st_mtime_ns for path in out.glob("*.json")}
    assert [path.name for path in out.glob("*.svg")] == ["arms.svg"]  # nothing else was asked
    assert "<svg" in (out / "arms.svg").read_text()


def test_fewer_conversations_than_a_batch_has_are_refused(script, tmp_path, capsys):
    with pytest.raises(SystemExit):
        script("ablation")["main"]([str(tmp_path), "--trained", "31", "--minutes", "-1"])
    assert "--trained must be at least 32" in capsys.readouterr().err


def test_the_recipe_gives_arms_of_one_size(script):
    ablation = script("ablation")
    recipe, model = ablation["TrainConfig"].read(RECIPE / "cell.toml"), Sortformer(ModelConfig())
    sizes = ablation["parameters"](ablation["Bench"](recipe, model, RECIPE, 0, 0, (), 1.0), list(ablation["ARMS"]))
    assert set(sizes) == {"none", "label", "A", "B", "C"}
    assert max(sizes.values()) < 1.01 * min(sizes.values())


def test_the_plan_asks_each_cell_once_and_seeds_in_turn(script):
    ablation = script("ablation")
    cells = ablation["plan"](ablation["QUESTIONS"], list(ablation["ARMS"]), (25, 100, 400), 3)
    assert len(cells) == len({cell.name for cell in cells}) == 3 * (5 * 3 + 2 * 9 - 2 + 3 - 1)
    arms = cells[:45]
    assert {(cell.loss, cell.deep, cell.turns) for cell in arms} == {("hybrid", "PIT", "parametric")}
    assert [cell.seed for cell in arms] == sorted(cell.seed for cell in arms)
    assert ablation["MEASURED_SEED"] not in {cell.seed for cell in cells}


def test_what_is_encoded_is_what_the_rest_of_the_model_takes(script, folder):
    """The later blocks of the model's own head compute the model's own logits from it."""
    head = HeadConfig(num_slots=2, dropout=0.0, permutation="none", layers=2, estimate_layers=(1,))
    model = Sortformer(ModelConfig(head=head, encoder=EncoderConfig(dropout=0.0, layers=1))).eval()
    config = replace(TrainConfig.read(folder / "cell.toml"), model=None)
    found = script("encoded")["encode"](model, config, "train", 3, seed=5)
    simulator = Sources.load(config.data).simulator(config.simulation, model.config)
    batch = simulator.batch(torch.Generator().manual_seed(5), 3, config.stages[-1].duration_s)
    emb, activity, valid = found.rows(slice(None))
    with torch.inference_mode():
        whole = model(batch.wave, batch.num_samples)
        logits = model.head.output(model.head.section(1, emb, valid).out, valid)
    assert valid.equal(whole.valid)
    assert activity.equal(batch.activity)
    torch.testing.assert_close(logits, whole.logits, atol=1e-2, rtol=0)  # it is kept in float16


def test_a_head_learns_to_tell_channels_apart(script):
    """Conversations with one channel per speaker are learnt quickly, without errors."""
    heads, encoded = script("heads"), script("encoded")
    generator = torch.Generator().manual_seed(0)
    first = torch.randint(1, 10, (64,), generator=generator)
    time = torch.arange(20)
    activity = torch.stack([time < first[:, None] + 4, time >= first[:, None]], dim=2)
    material = encoded["Encoded"](activity.repeat(1, 1, 4).half(), activity)
    config = TrainConfig(
        DataConfig(bank="none"),
        (StageConfig(100, 1.6, 16),),
        100,
        simulation=SimulationConfig(num_slots=2, speaker_weights=(1.0,)),
        optimizer=OptimizerConfig(learning_rate=1e-2, warmup_steps=5, ema_decay=0.9),
        evaluate_conversations=0,
    )
    torch.manual_seed(0)
    fresh = Head(8, HeadConfig(num_slots=2, dim=16, layers=1, heads=1, ff_dim=16, estimate_layers=(), dropout=0.0))
    head, losses = heads["fit"](fresh, material, config)
    assert losses[-1] < 0.05 * losses[0]
    counted = heads["measure"](head, material)
    assert sum(counted["errors_in_order"]) == 0
    assert counted["order_right"] == counted["count_right"] == [1.0] * 64
    # A single speaker for all speech misses the second voice in overlap, and confuses the shorter turn.
    shorter = torch.minimum(activity[..., 0].sum(1), activity[..., 1].sum(1))
    assert counted["one_speaker_errors"] == shorter.tolist()


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
    assert script("heads")["order_right"](active, target) is right


def result(seed: int, errors: list[float], training: list[float]) -> dict[str, Any]:
    def split(wrong: list[float]) -> dict[str, list[float]]:
        right = {"order_right": [1, 0, 1], "count_right": [1, 0, 1]}
        return {"total": [10.0, 20.0, 30.0], "errors": wrong, "errors_in_order": wrong} | right

    measured = {"dev": split(errors), "fit": split(training), "train": split(training), "real": split(errors)}
    return {"cell": {"seed": seed}, **measured}


def test_a_cell_counts_for_every_question_that_asks_it(script, tmp_path):
    summary = script("summary")
    basic = summary["Settings"]("A", 100, *summary["BASIC"])
    few, sort, half = basic._replace(pool=25), basic._replace(loss="sort"), basic._replace(turns="half")
    found = summary["questions"]([few, basic, sort, half])
    assert found == {"arms": [few, basic], "losses": [basic, sort], "turns": [basic, half]}
    groups = dict.fromkeys((few, basic, sort, half), summary["Group"]({0: result(0, [3, 4, 5], [1, 1, 1])}))
    summary["plot"](groups, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"arms.svg", "losses.svg", "turns.svg"}


def test_rates_are_sums_over_sums_and_differences_are_paired(script):
    summary = script("summary")
    one = summary["Group"]({0: result(0, [3, 4, 5], [1, 1, 1]), 1: result(1, [4, 5, 6], [2, 2, 2])})
    other = summary["Group"]({0: result(0, [2, 2, 2], [1, 1, 1]), 2: result(2, [9, 9, 9], [0, 0, 0])})
    assert summary["value"](one, "dev DER") == pytest.approx(100 * 27 / 120)
    assert summary["value"](one, "gap") == pytest.approx(100 * (27 - 9) / 120)
    assert summary["value"](one, "order right") == pytest.approx(100 * 2 / 3)
    middle, low, high = summary["difference"](one, other, "dev DER")
    assert middle == pytest.approx(100 * (12 - 6) / 60)  # of the common seed
    # Single conversations differ by 1/10, 2/20 and 3/30: the difference is the same for any draw.
    assert (low, high) == pytest.approx((middle, middle))
    assert summary["difference"](one, summary["Group"]({2: result(2, [1, 1, 1], [0, 0, 0])}), "gap") is None


def test_losses_are_compared_with_those_of_the_first_question(script):
    """Of four groups, each is compared with those that differ in the last column only."""
    summary = script("summary")
    kinds = [("A", 100, loss, deep, "parametric") for loss in ("hybrid", "sort") for deep in ("PIT", "off")]
    groups = {
        summary["Settings"](*kind): summary["Group"]({0: result(0, [10 + number, 10, 10], [1, 1, 1])})
        for number, kind in enumerate(kinds)
    }
    rows = summary["_differences"](groups, ("arm", "deep", "loss"), list(groups))
    assert rows[0].startswith("| arm | deep | loss: difference | dev DER |")
    assert [row.split(" [")[0] for row in rows[2:-1]] == [
        "| A | PIT | sort - hybrid | +3.3",  # 2 of 60
        "| A | off | sort - hybrid | +3.3",
    ]
    rows = summary["_differences"](groups, ("arm", "loss", "deep"), list(groups))
    assert [row.split(" [")[0] for row in rows[2:-1]] == [
        "| A | hybrid | off - PIT | +1.7",
        "| A | sort | off - PIT | +1.7",
    ]
