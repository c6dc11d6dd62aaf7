"""Split batches: micro-batches and processes change only the rounding."""

import json
import os
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch

from sortformer.config.attention import AttentionConfig
from sortformer.config.cores import FavorCore
from sortformer.config.data import DataConfig, RecordingsConfig
from sortformer.config.memories import CompressiveMemory
from sortformer.config.stream import SpeakerCacheConfig, StreamConfig
from sortformer.config.train import TrainConfig
from sortformer.data import Batches, Sources, part_rows
from sortformer.errors import ConfigError, InputError, SortformerError
from sortformer.train import train
from sortformer.train.initial import initial_checkpoint
from tests.data.corpora import corpus
from tests.small_models import small_config
from tests.train.forks import forked
from tests.train.runs import after, log_of, state_of, write_counting_network, write_voice_table

STEPS = 3
DRAWING = AttentionConfig(FavorCore(features=5, redraw_every=1), "rope")


@pytest.fixture
def config(run_config: TrainConfig, tmp_path: Path) -> TrainConfig:
    """A run without dropout, with teachers, redrawn features, streams and short real recordings in the batches."""
    manifest = str(corpus(tmp_path, {"a": (1.3, ((0.1, 1.0, "ann"), (0.5, 1.2, "bob")))}))
    config = replace(
        run_config,
        data=replace(run_config.data, recordings=(RecordingsConfig(manifest, weight=0.7),)),
        model=small_config({"dropout": 0.0}, {"num_slots": 2, "dropout": 0.0, "attention": (DRAWING,)}),
        steps=STEPS,
        stages=(replace(run_config.stages[0], until_step=STEPS, batch_size=5, streamed_probability=0.5),),
        evaluate_conversations=3,
    )
    return write_counting_network(tmp_path / "counts.npz", write_voice_table(tmp_path / "voices.npz", config))


@pytest.fixture
def cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streams that show a part of their conversation; what is drawn would show all of the two seconds."""
    small = StreamConfig(4, right_context_frames=1, fifo_frames=3, speaker_cache=SpeakerCacheConfig(frames=8))
    monkeypatch.setattr("sortformer.train.step.draw_stream", lambda *_: small)


def assert_close(found: Path, expected: Path) -> None:
    """The same weights and the same log, to rounding."""
    ours, theirs = state_of(found)["model"], state_of(expected)["model"]
    torch.testing.assert_close(ours, theirs, atol=2e-5, rtol=1e-4)
    for one, other in zip(log_of(found), log_of(expected), strict=True):
        assert one == pytest.approx(other, rel=1e-3, abs=1e-5)


def _run(config: TrainConfig, out: Path, stop_after: int | None) -> tuple[str, str] | None:
    """Train, and return the exception."""
    try:
        train(config, out, stop=None if stop_after is None else after(stop_after))
    except SortformerError as error:
        return type(error).__name__, str(error)
    return None


def in_two_processes(*runs: tuple[TrainConfig, Path, int | None]) -> list[tuple[int, str, str]]:
    """Train in two processes that communicate by Gloo; return their exceptions."""
    return [(rank, *said) for rank, said in forked(2, *(partial(_run, *run) for run in runs)) if said]


@pytest.mark.usefixtures("cut")
@pytest.mark.parametrize("accumulate", [2, 5])
def test_micro_batches_take_the_step_of_the_whole_batch(config, tmp_path, accumulate):
    train(config, tmp_path / "whole")
    train(replace(config, accumulate=accumulate), tmp_path / "parts")
    assert_close(tmp_path / "parts", tmp_path / "whole")


@pytest.mark.parametrize("loss", ["attention", "autoencoding"])
def test_micro_batches_share_the_loss_of_a_memory(config, tmp_path, loss):
    memory = CompressiveMemory(frames=3, compressed_frames=2, ratio=2, chunk_frames=5, loss=loss)
    head = replace(config.model.head, attention=(AttentionConfig(position="none", memory=memory),))
    stages = (replace(config.stages[0], streamed_probability=0.0),)  # stateful layers are not shown streams
    config = replace(config, model=replace(config.model, head=head), stages=stages)
    train(config, tmp_path / "whole")
    train(replace(config, accumulate=3), tmp_path / "parts")
    assert_close(tmp_path / "parts", tmp_path / "whole")


@pytest.mark.usefixtures("cut")
def test_two_processes_train_as_one_and_resume_to_the_bit(config, tmp_path):
    train(config, tmp_path / "one")
    two = replace(config, accumulate=2)
    raised = in_two_processes(
        (two, tmp_path / "two", None), (two, tmp_path / "resumed", 2), (two, tmp_path / "resumed", None)
    )
    assert raised == []
    assert_close(tmp_path / "two", tmp_path / "one")
    assert [line["step"] for line in log_of(tmp_path / "two")] == [1, 2, 3, 3]
    assert log_of(tmp_path / "resumed") == log_of(tmp_path / "two")
    resumed, whole = (state_of(tmp_path / name) for name in ("resumed", "two"))
    for name in ("begun_as", "trained"):
        assert resumed.pop(name) == whole.pop(name) == state_of(tmp_path / "one")[name]
    torch.testing.assert_close(resumed, whole, atol=0, rtol=0)


def test_what_only_one_process_uses_is_learned_by_all(config, tmp_path):
    """The silence embedding of speaker caches: with this seed one row of each batch, alternately, has a full cache."""
    model = replace(config.model, encoder=replace(config.model.encoder, learned_silence=True))
    stage = replace(config.stages[0], until_step=2, duration_s=40.0, batch_size=2, streamed_probability=1.0)
    data = replace(config.data, recordings=())
    silent = replace(config, data=data, model=model, stages=(stage,), steps=2, teacher=None, seed=7)
    silent = replace(silent, optimizer=replace(silent.optimizer, warmup_steps=1), evaluate_conversations=0)
    train(silent, tmp_path / "one")
    assert in_two_processes((silent, tmp_path / "two", None)) == []
    assert_close(tmp_path / "two", tmp_path / "one")
    begun = initial_checkpoint(silent)[0].model.encoder.silence
    assert begun is not None
    assert not state_of(tmp_path / "two")["model"]["encoder.silence"].equal(begun)


def test_if_one_process_is_to_stop_both_do(config, tmp_path):
    said = forked(2, lambda: _run(config, tmp_path, 1 if os.environ["RANK"] == "1" else STEPS))
    assert said == [(0, None), (1, None)]
    assert state_of(tmp_path)["step"] == 1


def test_processes_whose_states_are_not_the_same_are_refused(config, tmp_path):
    train(config, tmp_path / "0", stop=after(1))
    (_, refused), (_, cancelled) = forked(2, lambda: _run(config, tmp_path / os.environ["RANK"], None))
    assert refused[0] == "InputError"
    assert refused[1].endswith("differs between processes: put it on a disk that all of them share")
    assert cancelled[0] == "Cancelled"


def test_an_error_of_one_process_ends_both_and_only_it_says_why(config, tmp_path):
    turns = ((0.1, 1.0, "ann"),)
    gone = corpus(tmp_path / "gone", {"a": (9.0, turns)})
    real = replace(config, data=DataConfig(recordings=(RecordingsConfig(str(gone)),)), evaluate_conversations=0)
    real = replace(real, teacher=None, workers=1)
    wave, rate = soundfile.read(gone.parent / "a.wav", dtype="float32")
    wave[rate:] = np.nan  # this can only be found in crops
    soundfile.write(gone.parent / "a.wav", wave, rate, subtype="FLOAT")
    raised = in_two_processes((real, tmp_path / "run", None))
    assert {rank for rank, _, _ in raised} == {0, 1}
    assert sorted(kind for _, kind, _ in raised) == ["Cancelled", "InputError"]
    sentences = [sentence for _, kind, sentence in raised if kind == "InputError"]
    assert "NaN" in sentences[0]
    assert "\n" not in sentences[0]


def test_what_fails_everywhere_is_said_once(config, tmp_path):
    absent = replace(config, data=replace(config.data, bank=str(tmp_path / "nowhere")))
    raised = in_two_processes((absent, tmp_path / "run", None))
    assert [(rank, kind) for rank, kind, _ in raised] == [(0, "InputError"), (1, "Cancelled")]


@pytest.mark.parametrize("parts", [1, 2, 3, 5])
def test_parts_are_the_batch(config, parts):
    sources = Sources.load(config.data)
    whole = Batches(sources, config, config.model)
    shared = Batches(sources, config, config.model, parts)
    for step in range(STEPS):
        found = [shared[step * parts + part] for part in range(parts)]
        assert max(len(part.wave) for part in found) - min(len(part.wave) for part in found) <= 1
        assert torch.cat([part.activity for part in found]).equal(whole[step].activity)
        torch.testing.assert_close(torch.cat([part.wave for part in found]), whole[step].wave, atol=1e-2, rtol=0)


def test_rows_are_shared_out_whole():
    for size in range(1, 20):
        for parts in range(1, size + 1):
            rows = [row for part in range(parts) for row in part_rows(size, part, parts)]
            assert rows == list(range(size))


def test_a_batch_that_is_too_small_is_refused(config, tmp_path):
    stages = (replace(config.stages[0], until_step=1, batch_size=6), *config.stages)
    with pytest.raises(ConfigError, match="a batch of 5 cannot be split into the 6 micro-batches"):
        train(replace(config, stages=stages, accumulate=6), tmp_path / "run")


def test_one_process_of_torchrun_is_alone(config, tmp_path, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "1")
    train(config, tmp_path, stop=after(1))
    assert len((tmp_path / "log.jsonl").read_text().splitlines()) == 1
    assert json.loads((tmp_path / "config.json").read_text())["accumulate"] == 1


def test_several_processes_need_a_device_each(config, tmp_path, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(InputError, match="CPUs or CUDA devices, not mps"):
        train(config, tmp_path, device=torch.device("mps"))
    monkeypatch.setenv("LOCAL_RANK", str(torch.cuda.device_count()))
    with pytest.raises(InputError, match="start fewer processes"):
        train(config, tmp_path, device=torch.device("cuda"))
