"""Training batches: a function of seed and step only, on the model's grid, in order of arrival."""

import pickle
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from sortformer.config.data import DataConfig, RecordingsConfig
from sortformer.config.simulation import SimulationConfig
from sortformer.config.train import StageConfig, TrainConfig
from sortformer.data import Batches, Sources, batches
from sortformer.errors import InputError
from sortformer.losses import align
from sortformer.simulate import Conversations
from sortformer.simulate.bursts import KINDS
from sortformer.simulate.rooms import ROOM_SAMPLES
from tests.data.corpora import corpus
from tests.simulate.makers import make_bank_folder
from tests.train.runs import small_run

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create 2 worker processes")  # on a single core


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> TrainConfig:
    folder = make_bank_folder(tmp_path_factory.mktemp("bank"))
    return small_run(folder, tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def sources(config: TrainConfig) -> Sources:
    return Sources.load(config.data)


def assert_same(found: Conversations, expected: Conversations) -> None:
    for name in ("wave", "activity", "num_samples", "voice"):
        assert getattr(found, name).equal(getattr(expected, name)), name


def test_a_batch_depends_on_seed_and_step_alone(config, sources):
    torch.manual_seed(5)
    batch = Batches(sources, config, config.model)[4]
    torch.manual_seed(6)
    assert_same(Batches(sources, config, config.model)[4], batch)
    assert not Batches(sources, config, config.model)[5].wave.equal(batch.wave)
    assert not Batches(sources, replace(config, seed=4), config.model)[4].wave.equal(batch.wave)


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_come_in_the_order_of_steps_whoever_prepares_them(workers, config, sources):
    expected = Batches(sources, config, config.model)
    steps = range(2, config.steps)
    found = list(batches(sources, replace(config, workers=workers), config.model, first_step=2))
    assert len(found) == len(steps)
    for step, (batch,) in zip(steps, found, strict=True):
        assert_same(batch, expected[step])


def test_stages_set_size_length_and_number_of_speakers(config, sources):
    dataset = Batches(sources, config, config.model)
    assert [tuple(dataset[step].wave.shape) for step in (0, 2, 3, 5)] == [(2, 32_000)] * 2 + [(1, 48_000)] * 2
    assert all((dataset[step].voice >= 0).sum(dim=1).max() <= 2 for step in range(6))


def test_targets_lie_on_the_models_grid_in_order_of_arrival(config, sources):
    for step in range(config.steps):
        batch = Batches(sources, config, config.model)[step]
        frames = config.model.grid.output_frames(batch.wave.shape[1])
        assert batch.activity.shape == (len(batch.wave), frames, 2)
        valid = torch.ones(batch.activity.shape[:2], dtype=torch.bool)
        assert align(9 * batch.activity, batch.activity, valid, by_arrival=True).equal(batch.activity)
        assert (batch.voice >= 0).equal(batch.activity.any(dim=1))
        assert torch.isfinite(batch.wave).all()


@pytest.fixture(scope="module")
def mixed(config: TrainConfig, tmp_path_factory: pytest.TempPathFactory) -> TrainConfig:
    """Two thirds of the conversations are real."""
    turns = ((0.5, 4.0, "ann"), (3.0, 6.0, "bob"))
    manifest = corpus(tmp_path_factory.mktemp("corpus"), {"a": (12.0, turns), "b": (9.0, turns[:1])})
    recordings = RecordingsConfig(str(manifest), weight=2.0, channel_probability=0.5)
    return replace(config, data=replace(config.data, recordings=(recordings,)))


def test_real_and_simulated_conversations_mix_by_weight(mixed):
    stage = replace(mixed.stages[-1], until_step=1, batch_size=90, duration_s=1.5)
    many = replace(mixed, steps=1, stages=(stage,))
    batch = Batches(Sources.load(many.data), many, many.model)[0]
    known = (batch.voice >= 0).any(dim=1)
    assert float((~known).float().mean()) == pytest.approx(2 / 3, abs=0.15)
    assert not ((batch.voice < 0) & batch.activity.any(dim=1))[known].any()


def test_mixed_batches_depend_on_seed_and_step_alone(mixed):
    sources = Sources.load(mixed.data)
    expected = Batches(sources, mixed, mixed.model)
    found = list(batches(sources, replace(mixed, workers=2), mixed.model, first_step=0))
    for step, (batch,) in enumerate(found):
        assert_same(batch, expected[step])
    assert not expected[1].wave.equal(expected[0].wave)


@pytest.mark.parametrize("workers", [0, 2])
def test_drafts_that_a_device_renders_are_the_batches_of_the_workers(workers, mixed):
    sources = Sources.load(mixed.data)
    expected = Batches(sources, mixed, mixed.model)
    drafted = replace(mixed, workers=workers)
    found = batches(sources, drafted, mixed.model, first_step=1, device=torch.device("cpu"))
    for step, (batch,) in enumerate(found, start=1):
        assert_same(batch, expected[step])


def test_drafts_hold_notes_and_no_sound_also_of_bursts(config):
    channel = replace(config.simulation.channel, burst_probability=1.0, burst_hz=(2.0, 2.0))
    noisy = replace(config, data=replace(config.data, bursts=2), simulation=replace(config.simulation, channel=channel))
    dataset = Batches(Sources.load(noisy.data), noisy, noisy.model)
    draft, batch = dataset.draft(0), dataset[0]
    assert draft.script is not None
    assert len(draft.script.bursts.row) > 0
    assert len(pickle.dumps(draft)) < batch.wave.nbytes / 2  # two seconds each, so that the fixed size dominates
    assert_same(dataset.finish(draft), batch)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
def test_a_gpu_renders_the_same_conversations_with_noise_of_its_own(mixed):
    dataset = Batches(Sources.load(mixed.data), mixed, mixed.model)
    for step in range(mixed.steps):
        here, there = dataset[step], dataset.finish(dataset.draft(step), "cuda")
        assert there.wave.is_cuda
        assert here.activity.equal(there.activity.cpu())
        torch.testing.assert_close(here.wave.std(1), there.wave.cpu().std(1), rtol=0.1, atol=1e-3)


def test_without_a_bank_all_conversations_are_real(mixed):
    real = replace(mixed, data=replace(mixed.data, bank=None))
    sources = Sources.load(real.data)
    assert sources.bank is None
    batch = Batches(sources, real, real.model)[0]
    assert (batch.voice == -1).all()
    assert batch.wave.shape == (2, 32_000)
    with pytest.raises(InputError, match="cannot be simulated without a bank"):
        sources.simulator(real.simulation, real.model)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_recording_that_is_gone_is_one_sentence_whoever_reads_it(workers, config, tmp_path):
    manifest = corpus(tmp_path, {"a": (12.0, ((0.5, 4.0, "ann"),))})
    real = replace(config, data=DataConfig(recordings=(RecordingsConfig(str(manifest)),)), workers=workers)
    made = batches(Sources.load(real.data), real, real.model, first_step=0)
    (tmp_path / "a.wav").unlink()
    with pytest.raises(InputError, match=r"a\.wav"):
        next(made)


def test_each_corpus_goes_through_other_channels_as_often_as_it_says(mixed):
    (corpus,) = mixed.data.recordings

    def wave(seldom: float, often: float) -> torch.Tensor:
        of_both = ((1e-9, seldom), (1.0, often))
        recordings = tuple(replace(corpus, weight=weight, channel_probability=share) for weight, share in of_both)
        real = replace(mixed, data=replace(mixed.data, bank=None, recordings=recordings))
        return Batches(Sources.load(real.data), real, real.model)[0].wave

    assert wave(1.0, 0.0).equal(wave(0.0, 0.0))
    assert not wave(0.0, 1.0).equal(wave(0.0, 0.0))


def test_what_a_stage_changes_of_the_simulation_holds_for_its_conversations_and_crops(mixed):
    (corpus,) = mixed.data.recordings
    data = replace(mixed.data, recordings=(replace(corpus, channel_probability=1.0),))
    plain = StageConfig(1, 2.0, 6)
    changed = replace(plain, speaker_weights=(0.0, 1.0), clean_probability=1.0)
    run = replace(mixed, steps=1, data=data, stages=(changed,))
    whole = replace(run, stages=(plain,), simulation=changed.simulation(mixed.simulation))
    sources = Sources.load(data)
    found = Batches(sources, run, run.model)[0]
    simulated = (found.voice >= 0).any(dim=1)
    assert 0 < simulated.sum() < 6
    assert_same(found, Batches(sources, whole, run.model)[0])
    as_in_the_run = Batches(sources, replace(run, stages=(plain,)), run.model)[0]
    assert all(not ours.equal(theirs) for ours, theirs in zip(found.wave, as_in_the_run.wave, strict=True))


def test_a_batch_leaves_torch_the_threads_that_it_had(config, sources):
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        Batches(sources, config, config.model)[0]
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


def test_a_repeating_run_sees_its_first_batch_for_ever(config, sources):
    repeating = Batches(sources, replace(config, repeat=True), config.model)
    assert_same(repeating[2], repeating[0])
    assert_same(repeating[0], Batches(sources, config, config.model)[0])


def test_voices_to_evaluate_on_are_as_they_are(config):
    data = replace(config.data, speeds=(0.9, 1.1), formants=(0.9, 1.1))
    assert {(voice.speed, voice.formants) for voice in Sources.load(data).bank.voices} == {
        (speed, formants) for speed in (0.9, 1.1) for formants in (0.9, 1.1)
    }
    assert {(voice.speed, voice.formants) for voice in Sources.load(data, "dev").bank.voices} == {(1.0, 1.0)}


def test_a_pool_limits_training_voices_and_no_others(config):
    data = replace(config.data, pool=2, pool_seed=1)
    pool = {voice.speaker for voice in Sources.load(data).bank.voices}
    assert len(pool) == 2
    assert pool != {voice.speaker for voice in Sources.load(replace(data, pool_seed=2)).bank.voices}
    assert Sources.load(data, "dev").bank.voices == Sources.load(config.data, "dev").bank.voices
    assert Sources.load(data).content != Sources.load(config.data).content


def test_real_turn_taking_is_gathered_from_all_folders(config, tmp_path):
    for name, shift in (("one", 0.0), ("two", 1.0)):
        folder = tmp_path / name
        folder.mkdir()
        lines = [
            f"SPEAKER {name} 1 {start + shift:.2f} 1.50 <NA> <NA> {speaker} <NA> <NA>"
            for start, speaker in ((0.0, "a"), (1.0, "b"), (3.0, "a"), (5.0, "b"), (7.0, "a"))
        ]
        (folder / f"{name}.rttm").write_text("\n".join(lines) + "\n")
    data = replace(config.data, turns=(str(tmp_path / "one"), str(tmp_path / "two")))
    sources, single = Sources.load(data), Sources.load(replace(data, turns=data.turns[:1]))
    both, alone = sources.patterns, single.patterns
    assert sources.content == Sources.load(data).content != single.content
    assert both is not None
    assert alone is not None
    assert len(both.recordings) == len(alone.recordings) + 1


def test_rooms_and_bursts_are_made_once_and_kept_in_the_cache(config, tmp_path, monkeypatch):
    made: Counter[str] = Counter()

    def ones(name: str, *shape: int) -> np.ndarray:
        made[name] += 1
        return np.ones(shape, np.float32)

    monkeypatch.setattr("sortformer.simulate.rooms._room", lambda *_: ones("rooms", 5, ROOM_SAMPLES))
    monkeypatch.setattr("sortformer.simulate.burst_pool.burst_of_kind", lambda *_: ones("bursts", 200))
    data = replace(config.data, rooms=1, bursts=1, cache=str(tmp_path))
    for _ in range(2):
        Sources.load(data)
    assert made == {"rooms": 1, "bursts": KINDS}
    assert {path.name.split("-")[0] for path in tmp_path.iterdir()} == {"voices", "rooms", "bursts"}


def test_other_voices_and_voices_that_speak_elsewhere_are_another_source(sources):
    bank = sources.bank
    assert bank is not None
    for others in (replace(bank, activity=~bank.activity), replace(bank, voices=bank.voices[::-1])):
        assert replace(sources, bank=others).content != sources.content == replace(sources).content


def test_a_simulator_has_all_that_its_sources_hold(config, sources, monkeypatch):
    monkeypatch.setattr("sortformer.data.sources.Simulator", lambda *given: given)
    held = Sources(sources.bank, *(object() for _ in range(2)), (), object())  # pyright: ignore[reportArgumentType]
    given = held.simulator(config.simulation, config.model)
    assert given == (held.bank, config.simulation, held.patterns, held.rooms, config.model, held.bursts)


def test_too_few_voices_are_refused_before_training(config):
    crowd = SimulationConfig(num_slots=8, speaker_weights=(1.0,) * 8)
    with pytest.raises(InputError, match="the bank has 5 speakers, but conversations need up to 8"):
        Sources.load(config.data).simulator(crowd, config.model)


def test_a_bank_that_is_not_there_is_one_sentence():
    with pytest.raises(InputError, match=r"segments.tsv is missing"):
        Sources.load(DataConfig(str(Path("nowhere"))))
