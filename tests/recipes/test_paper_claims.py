"""The claims in miniature: synthetic voices, a tiny encoder, one training step per cell; and the summary."""

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
from tests.recipes.script import run_script
from tests.tiny import tiny_model

RECIPE = Path(__file__).resolve().parents[2] / "recipes/paper_claims"
SMALL = """
steps = 1
[data]
bank = "voices"
speeds = [1.0]
cache = "cache"
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
    """The voices named in the recipe, all of them in both splits."""
    runpy.run_path(str(RECIPE.parent / "overfit_one/make_voices.py"))["main"](tmp_path / "voices")
    table = tmp_path / "voices/segments.tsv"
    text = table.read_text()
    table.write_text(text + "".join(f"{line.replace('train', 'dev')}\n" for line in text.splitlines()[1:]))


@pytest.mark.usefixtures("voices")
def test_all_cells_in_miniature(script, recipe, tmp_path, capsys):
    out = tmp_path / "out"
    given = ["--recipe", recipe, "--model", tiny_model(tmp_path / "model"), "--steps", 1, "--heard-s", 8, "--dev", 2]
    given += ["--speech-s", 3.2, "--trios", 1, "--seeds", 0, "--mechanisms", *SOME]
    run_script(RECIPE / "run.sh", tmp_path, *given, OUT=out)
    results = [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]
    assert [found["mechanism"] for found in results] == ["always the first slot", "nearest mean", *SOME]
    assert len({tuple(found["spoken"]) for found in results}) == 1  # the same conversations
    assert [set(found["probe"]) for found in results if "probe" in found] == [{*GAPS, "state_values"}]

    script("claims")["main"]([str(part) for part in (out, *given)])
    assert capsys.readouterr().out == ""  # all is done

    said = (out / "tables.md").read_text()
    assert "| combiner_axial - axial | 1 |" in said
    assert "| silence in the gap | 10 s | 60 s | 300 s | 1200 s |" in said
    assert "<svg" in (out / "reentry.svg").read_text()


def test_a_summary_before_any_streamed_cell_has_no_picture(script, tmp_path, capsys):
    said = {"group": "reference", "mechanism": "nearest mean", "seed": 0, "spoken": [9, 8], "wrong": [1, 2]}
    (tmp_path / "results.jsonl").write_text(json.dumps(said | {"away": [3, 4], "wrong_away": [0, 1]}))
    script("summary")["main"]([str(tmp_path), "--plot", str(tmp_path / "reentry.svg")])
    assert "reentry.svg is not drawn: no streamed cell is finished" in capsys.readouterr().err
    assert not (tmp_path / "reentry.svg").exists()


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
    """With a head that recognises voices, and with one that treats returning speakers as new."""
    reentry = script("reentry")

    class Heard:
        def init_state(self, emb: torch.Tensor) -> torch.Tensor:
            return torch.zeros(len(emb), 1)

        def __call__(self, emb: torch.Tensor, _valid: torch.Tensor, state: torch.Tensor) -> Any:
            gap = emb[..., 3].amax(dim=1, keepdim=True)
            shift = 0 if remembers else int((state + gap).amax() > 0) * 2
            probs = emb[..., :4].roll(shift, dims=2) * (1 - emb[..., 3:4])
            return SimpleNamespace(logits=10 * probs - 5, state=state + gap)

    def piece(voice: int, steps: int) -> torch.Tensor:
        return torch.eye(4)[voice].expand(1, steps, -1)

    stream = torch.cat((piece(0, reentry["TALK"]), piece(3, 1875)), dim=1)
    found = reentry["probe"](Heard(), reentry["Probes"](stream, piece(0, 9), piece(1, 9)))
    assert [np.mean(found.kept[gap]) for gap in reentry["GAPS_S"]] == [kept] * 4
    assert not any(any(found.lost[gap]) for gap in reentry["GAPS_S"])


def test_probes_are_of_three_voices(script):
    """Each voice is one channel, and silence none, so a trio can be read from the stream."""
    reentry, voices = script("reentry"), script("voices")
    speech = torch.eye(5)[:, None].expand(-1, 7, -1)
    made = reentry["probes"](voices["Voices"](speech, torch.zeros(3, 5)), np.random.default_rng(0), 6)
    talk = reentry["TALK"]
    for gap, found in made.items():
        assert torch.equal(found.stream[:, :talk], found.stream[:, :1].expand(-1, talk, -1))
        assert torch.equal(found.stream[:, 0].argmax(dim=1), torch.arange(6) % 5)
        assert torch.equal(found.returned, found.stream[:, :1].expand_as(found.returned))
        others = [found.stranger[:, 0], *([] if gap == "silence" else [found.stream[:, talk]])]
        assert torch.stack([found.stream[:, 0], *others]).sum(dim=0).max() == 1  # all of them are different
        assert found.stream[:, talk:].sum(dim=2).eq(0 if gap == "silence" else 1).all()


def test_conversations_number_speakers_by_arrival(script):
    """Each voice is one channel, so speakers can be read from the embeddings, and slots from speakers."""
    conversations, voices = script("conversations"), script("voices")
    speech = torch.eye(6)[:, None].expand(-1, 7, -1)
    made = conversations["compose"](voices["Voices"](speech, torch.zeros(3, 6)), np.random.default_rng(0), 20, 150, 4)
    people = set()
    for emb, slots in zip(made.emb[..., :6], made.slot, strict=True):
        who = [int(step.argmax()) if step.any() else None for step in emb]
        order = [voice for voice in dict.fromkeys(who) if voice is not None]
        assert slots.tolist() == [-1 if voice is None else order.index(voice) for voice in who]
        people.add(len(order))
    assert people == {2, 3, 4}
    assert torch.equal(made.activity(4).sum(dim=2), (made.slot >= 0).float())


def test_a_voice_goes_on_where_it_was_broken_off(script):
    voices = script("voices")
    speech = torch.arange(20.0).reshape(2, 10, 1)
    heard = voices["Voices"](speech, torch.zeros(1, 1)).compose(np.array([[0, 0, 1, -1, 0]]), np.random.default_rng(0))
    steps = heard[0, :, 0]
    assert ((steps[[1, 4]] - steps[[0, 1]]) % 10).tolist() == [1, 1]
    assert 10 <= steps[2] < 20


def test_absence_is_the_time_since_the_last_turn(script):
    conversations = script("conversations")
    made = conversations["Conversations"](torch.zeros(1, 8, 1), torch.tensor([[0, 0, 1, -1, 0, 0, 1, 0]]))
    assert made.absence().tolist() == [[0, 0, 0, 0, 3, 3, 4, 2]]


def test_intervals_hold_what_they_are_of(script):
    summary = script("summary")
    swapped = {"spoken": [2.0] * 3, "wrong": [1.0] * 3}
    line = {"spoken": [10.0, 20.0, 30.0], "wrong": [1.0, 2.0, 3.0], "swapped": swapped}
    mechanism = summary["Mechanism"]({0: line, 1: line | {"wrong": [2.0, 4.0, 6.0]}})
    value, low, high = summary["interval"](mechanism.rate([0, 1], "wrong"), 2, 3)
    assert value == pytest.approx(15.0)
    assert (low, high) == pytest.approx((10.0, 20.0))  # each seed has the same rate for any draw of conversations
    swapped = summary["interval"](mechanism.rate([0, 1], "wrong", "swapped"), 2, 3)
    assert swapped == pytest.approx((50.0, 50.0, 50.0))


def test_those_who_were_away_are_counted_apart(script):
    claims, conversations = script("claims"), script("conversations")
    slot = torch.tensor([[0, 1, *[-1] * 40, 0, 0, 1]])
    given = torch.tensor([[0, 0, *[0] * 40, 0, 1, 0]])
    found = claims["counted"](given, conversations["Conversations"](torch.zeros(1, 45, 1), slot))
    assert found == {"spoken": [5], "wrong": [3], "away": [3], "wrong_away": [2]}


def test_the_nearest_mean_knows_voices_that_do_not_vary(script):
    claims, conversations, voices = (script(name) for name in ("claims", "conversations", "voices"))
    bank = voices["Voices"](torch.eye(6)[:, None].expand(-1, 7, -1), torch.zeros(3, 6))
    made = conversations["compose"](bank, np.random.default_rng(0), 4, 60, 4)
    spoken = made.slot >= 0
    assert torch.equal(claims["nearest"](made)[spoken], made.slot[spoken])
