"""The claims in miniature: synthetic voices, a tiny encoder, a step of training a cell; and what is made of results."""

import json
import runpy
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from sortformer.config.train import TrainConfig
from tests.tiny import tiny_model

RECIPE = Path(__file__).resolve().parents[2] / "recipes/paper_claims"
SMALL = """
steps = 1
[data]
bank = "voices"
speeds = [1.0]
cache = "cache"
[simulation]
speaker_weights = [0.0, 1.0]
replay_probability = 0.0
[[stages]]
until_step = 1
duration_s = 9.6
batch_size = 2
[model.head]
dim = 8
layers = 1
heads = 2
ff_dim = 8
permutation = "none"
estimate_layers = []
"""
GAPS = ("silence", "another speaker")
SOME = ("axial", "combiner_axial", "compressive conv")


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], dict[str, Any]]:
    monkeypatch.syspath_prepend(str(RECIPE))
    return lambda name: runpy.run_path(str(RECIPE / f"{name}.py"))


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "recipe.toml"
    path.write_text(SMALL)
    return path


@pytest.fixture
def voices(tmp_path: Path) -> None:
    """The voices that the recipe names, all of them in both splits."""
    runpy.run_path(str(RECIPE.parent / "overfit_one/make_voices.py"))["main"](tmp_path / "voices")
    table = tmp_path / "voices/segments.tsv"
    text = table.read_text()
    table.write_text(text + "".join(f"{line.replace('train', 'dev')}\n" for line in text.splitlines()[1:]))


@pytest.mark.usefixtures("voices")
def test_all_cells_in_miniature(script, recipe, tmp_path, capsys):
    out = tmp_path / "out"
    given = ["--recipe", recipe, "--model", tiny_model(tmp_path / "model"), "--steps", 1, "--train", 2, "--dev", 2]
    arguments = [str(part) for part in (out, *given, "--trios", 1, "--seeds", 1, "--mechanisms", *SOME)]
    main = script("claims")["main"]
    main(arguments)
    results = [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]
    assert [found["mechanism"] for found in results[2:]] == list(SOME)
    assert len({tuple(found["total"]) for found in results}) == 1  # the same conversations
    assert [set(found["probe"]) for found in results if "probe" in found] == [{*GAPS, "state_values"}]

    capsys.readouterr()
    main(arguments)
    assert capsys.readouterr().out == ""  # all is done

    summary = script("summary")
    said = summary["report"](out)
    assert "| combiner_axial - axial | 1 |" in said
    assert "| silence in the gap | 10 s | 60 s | 300 s | 1200 s |" in said
    summary["plot"](out, tmp_path / "reentry.svg")
    assert "<svg" in (tmp_path / "reentry.svg").read_text()


def test_a_head_takes_the_weights_of_another_and_keeps_its_own_where_there_are_none(script, recipe):
    claims, mechanisms = script("claims"), script("mechanisms")
    config = TrainConfig.read(recipe)
    start = claims["build"](config, 8, mechanisms["START"], 0)
    head = claims["build"](config, 8, mechanisms["STREAMED"]["compressive conv"], 1, start)
    own = {name for name in head.state_dict() if name not in start.state_dict()}
    assert own == {f"blocks.0.attention.memory.compression.conv.{part}" for part in ("weight", "bias")}
    for name, value in start.state_dict().items():
        assert torch.equal(head.state_dict()[name], value)


@pytest.mark.parametrize(("remembers", "kept"), [(True, 1.0), (False, 0.0)])
def test_the_probe_counts_who_has_the_slot(script, remembers, kept):
    """A head that knows voices by heart, and one for which whoever returns is new."""
    reentry = script("reentry")
    voice = {"a": 0, "c": 1, "gap": 3}

    def piece(*parts: str) -> torch.Tensor:
        length = {"a": 38, "c": 19, "gap": 40}
        return torch.cat([torch.eye(4)[voice[part]].expand(1, length[part], -1) for part in parts], dim=1)

    class Heard:
        def init_state(self, emb: torch.Tensor) -> torch.Tensor:
            return torch.zeros(len(emb), 1)

        def step(self, emb: torch.Tensor, _valid: torch.Tensor, state: torch.Tensor) -> Any:
            gap = emb[..., 3:].amax(dim=1)
            shift = 0 if remembers else int((state + gap).amax() > 0) * 2
            probs = emb.roll(shift, dims=2) * (1 - emb[..., 3:])
            return SimpleNamespace(logits=10 * probs - 5, state=state + gap)

    made = reentry["Probes"](
        piece("a", "gap", "a")[:, :100],
        piece("a", "gap", "c"),
        piece("a", "gap"),
        piece("gap", "gap")[:, :75],
        piece("gap", "a")[:, :60],
        piece("gap", "c"),
    )
    found = reentry["probe"](Heard(), made)
    assert [np.mean(found.kept[gap]) for gap in reentry["GAPS_S"]] == [kept] * 4
    assert not any(any(found.lost[gap]) for gap in reentry["GAPS_S"])


def test_intervals_hold_what_they_are_of(script):
    summary = script("summary")
    line = {"total": [10.0, 20.0, 30.0], "errors": [1.0, 2.0, 3.0], "swapped": {"alone": [2.0] * 3, "wrong": [1.0] * 3}}
    mechanism = summary["Mechanism"]({0: line, 1: line | {"errors": [2.0, 4.0, 6.0]}})
    value, low, high = summary["interval"](mechanism.rate([0, 1], "DER"), 2, 3)
    assert value == pytest.approx(15.0)
    assert (low, high) == pytest.approx((10.0, 20.0))  # whatever is drawn of conversations, each seed has one rate
    swapped = summary["interval"](mechanism.rate([0, 1], "wrong", "swapped"), 2, 3)
    assert swapped == pytest.approx((50.0, 50.0, 50.0))


def test_who_is_wrong_needs_no_threshold(script):
    activity = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0]]])
    probs = torch.tensor([[[0.2, 0.1], [0.2, 0.1], [0.0, 0.0], [0.9, 0.0]]])
    found = script("claims")["counted"](probs, activity)
    assert (found["alone"], found["wrong"]) == ([2], [1])
    assert found["total"] == [4.0]
