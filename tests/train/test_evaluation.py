"""Evaluation during training: fixed conversations, and errors as in the metric."""

import shutil
from dataclasses import replace

import pytest
import torch

from sortformer.audio.loudness import alike_loud
from sortformer.config.data import DataConfig, RecordingsConfig
from sortformer.errors import InputError
from sortformer.model import SortformerOutput
from sortformer.simulate import Conversations
from sortformer.train.evaluation import dev_conversations, dev_der
from sortformer.train.processes import Processes
from tests.data.corpora import corpus


class Parrot(torch.nn.Module):
    """A model that returns given logits."""

    def __init__(self, *answers: torch.Tensor) -> None:
        super().__init__()
        self.answers = list(answers)

    def forward(self, wave: torch.Tensor, num_samples: torch.Tensor) -> SortformerOutput:
        logits = self.answers.pop(0)
        valid = torch.ones(logits.shape[:2], dtype=torch.bool)
        assert wave.shape[1] == num_samples.max()
        return SortformerOutput(logits, (), logits, valid)


def conversation(activity: torch.Tensor) -> Conversations:
    samples = activity.shape[1] * 1280
    return Conversations(torch.zeros(1, samples), activity, torch.tensor([samples]), torch.tensor([[0, 1]]))


ACTIVITY = torch.tensor([[[1, 0], [1, 0], [0, 1], [0, 1], [0, 0]]], dtype=torch.float32)


def look(*answers: torch.Tensor) -> dict[str, float]:
    alone = Processes(torch.device("cpu"))
    return dev_der(Parrot(*answers), [conversation(ACTIVITY) for _ in answers], alone)  # pyright: ignore


def test_a_perfect_answer_has_no_error():
    assert look(9 * ACTIVITY - 4) == {"der": 0, "der_sorted": 0, "miss": 0, "false_alarm": 0, "confusion": 0}


def test_swapped_speakers_are_wrong_in_order_of_arrival_alone():
    found = look(9 * ACTIVITY.flip(2) - 4)
    assert (found["der"], found["der_sorted"]) == (0, 1)


def test_errors_add_up_over_conversations():
    silence, chatter = torch.full_like(ACTIVITY, -4), torch.full_like(ACTIVITY, 4)
    found = look(silence, chatter)
    assert found["miss"] == pytest.approx(4 / 8)
    assert found["false_alarm"] == pytest.approx(6 / 8)
    assert found["der"] == pytest.approx(10 / 8)


def test_a_run_on_real_recordings_alone_can_look_at_simulated_ones(run_config):
    real = (RecordingsConfig("meetings.jsonl"),)
    data = replace(run_config.data, recordings=real, simulated_weight=0.0)
    found = dev_conversations(replace(run_config, data=data, evaluate_conversations=1), run_config.model)
    assert len(found) == 1


@pytest.mark.parametrize("source", ["recordings", "bank"])
def test_the_conversations_are_as_loud_as_diarize_hears_them(run_config, tmp_path, source):
    data = run_config.data
    if source == "recordings":
        data = replace(data, dev=str(corpus(tmp_path, {"a": (9.0, ((0.5, 4.0, "ann"),))})))
    config = replace(run_config, data=data, evaluate_conversations=2)
    ours = replace(run_config.model, features=replace(run_config.model.features, normalize="fixed"))
    raw, heard = (dev_conversations(config, model) for model in (run_config.model, ours))
    for one, other in zip(raw, heard, strict=True):
        assert other.wave[0].numpy() == pytest.approx(alike_loud(one.wave[0].numpy()))
        assert not other.wave.equal(one.wave)
        assert other.activity.equal(one.activity)


def test_the_conversations_are_fixed(run_config):
    config = replace(run_config, evaluate_conversations=3)
    first, again = (dev_conversations(config, config.model) for _ in range(2))
    assert [batch.wave.shape for batch in first] == [(1, 48_000)] * 3
    for one, other in zip(first, again, strict=True):
        assert one.wave.equal(other.wave)
        assert one.activity.equal(other.activity)
    assert not first[0].wave.equal(first[1].wave)
    assert dev_conversations(replace(config, evaluate_conversations=0), config.model) == []


def test_without_voices_to_evaluate_on_it_says_what_to_do(run_config, bank_folder, tmp_path):
    shutil.copytree(bank_folder, tmp_path / "bank")
    listing = tmp_path / "bank" / "segments.tsv"
    listing.write_text(listing.read_text().replace("\tdev\t", "\ttrain\t"))
    config = replace(run_config, data=DataConfig(str(tmp_path / "bank")), evaluate_conversations=1)
    with pytest.raises(
        InputError, match=r"no recording of the split 'dev'; evaluation needs .* or set evaluate_conversations = 0"
    ):
        dev_conversations(config, config.model)
