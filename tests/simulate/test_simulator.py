from collections import defaultdict
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sortformer.config.simulation import CastingConfig, ChannelConfig, SimulationConfig, TurnTakingConfig
from sortformer.errors import ConfigError, InputError
from sortformer.simulate import BurstPool, Pauses, Simulator, TurnPatterns, VoiceBank, dev_set
from sortformer.simulate.channel import CLEAN
from sortformer.simulate.events import Delivery
from sortformer.simulate.outline import Outline, parametric_outline
from sortformer.simulate.stage import Stage
from tests.simulate.makers import PITCHES_HZ

REAL = Path(__file__).resolve().parents[2] / "../shared/data"
DRY = SimulationConfig(channel=CLEAN, casting=CastingConfig(voice_gain_db=3))


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def simulator(bank, rooms) -> Simulator:
    return Simulator(bank, SimulationConfig(), rooms=rooms)


@settings(max_examples=15)
@given(seed=st.integers(0, 10**9), batch_size=st.integers(1, 3), duration_s=st.floats(0.01, 12))
def test_every_batch_is_valid(simulator, seed, batch_size, duration_s):
    made = simulator.batch(seeded(seed), batch_size, duration_s)
    samples = round(16000 * duration_s)
    frames = -(-(samples // 160) // 8)
    assert made.wave.shape == (batch_size, samples)
    assert made.wave.dtype == torch.float32
    assert made.activity.shape == (batch_size, frames, 4)
    assert made.num_samples.tolist() == [samples] * batch_size
    assert torch.isfinite(made.wave).all()
    assert made.wave.abs().max() <= 1
    assert set(made.activity.unique().tolist()) <= {0.0, 1.0}
    present = made.activity.any(dim=1)
    assert torch.equal(present, made.voice >= 0)
    for row in range(batch_size):
        heard = made.voice[row][present[row]].tolist()
        assert len({simulator.bank.voices[voice].speaker for voice in heard}) == len(heard)
        arrivals = [int(made.activity[row, :, slot].argmax()) for slot in range(4) if present[row, slot]]
        assert arrivals == sorted(arrivals)
        assert present[row].tolist() == sorted(present[row].tolist(), reverse=True)


@settings(max_examples=5)
@given(seed=st.integers(0, 10**9))
def test_the_same_seed_gives_the_same_bits(simulator, seed):
    first, second = (simulator.batch(seeded(seed), 2, 5.0) for _ in range(2))
    for name in ("wave", "activity", "voice"):
        assert torch.equal(getattr(first, name), getattr(second, name))
    assert not torch.equal(first.wave[0], first.wave[1])


@settings(max_examples=5)
@given(seed=st.integers(0, 10**9), rows=st.permutations(range(4)).map(lambda rows: rows[:2]))
def test_a_row_does_not_depend_on_the_others(simulator, seed, rows):
    whole, part = (simulator.render(simulator.script(seeded(seed), 4, 5.0, each)) for each in (None, rows))
    for name in ("activity", "voice", "num_samples"):
        assert torch.equal(getattr(part, name), getattr(whole, name)[rows])
    differs = (part.wave - whole.wave[rows]).abs() > 1e-5  # where quantisation rounds the other way
    assert float(differs.float().mean()) < 1e-3


def test_the_generator_moves_on(simulator):
    generator = seeded(0)
    first, second = (simulator.batch(generator, 1, 5.0) for _ in range(2))
    assert not torch.equal(first.wave, second.wave)


def _frame_levels_db(wave: torch.Tensor, frames: int) -> torch.Tensor:
    whole = torch.nn.functional.pad(wave, (0, frames * 1280 - wave.shape[1])).view(len(wave), frames, 1280)
    return 10 * torch.log10(whole.square().mean(-1) + 1e-12)


def test_speech_is_heard_where_it_is_labelled_and_nowhere_else(bank):
    made = Simulator(bank, replace(DRY, shortest_pause_s=0.0)).batch(seeded(3), 6, 30.0)
    level = _frame_levels_db(made.wave, made.activity.shape[1])
    active = made.activity.any(-1)
    quiet = ~active & ~active.roll(1, 1) & ~active.roll(-1, 1)
    assert level[active].quantile(0.02) > -60
    assert level[quiet].max() < -60


def test_short_pauses_are_labelled_as_annotators_do(bank):
    exact, usual = (
        Simulator(bank, replace(DRY, shortest_pause_s=pause)).batch(seeded(3), 6, 30.0) for pause in (0, 0.5)
    )
    assert torch.equal(exact.wave, usual.wave)
    assert (usual.activity.sum((1, 2)) >= exact.activity.sum((1, 2))).all()
    pauses = [_pauses(made.activity) for made in (exact, usual)]
    assert sum(pause < 5 for pause in pauses[0]) > 10
    assert sum(pause < 5 for pause in pauses[1]) == 0  # frames of 80 ms; 0.5 s may be cut to 5 of them


def test_turns_are_tilted_only_where_asked_for(bank):
    def made(tilt: float):
        casting = replace(DRY.casting, turn_tilt=tilt)
        return Simulator(bank, replace(DRY, casting=casting)).batch(seeded(3), 3, 20.0)

    plain, tilted = made(0.0), made(0.8)
    assert plain.wave.shape == tilted.wave.shape
    bright = [made.wave.diff(dim=1).square().sum(1) / made.wave.square().sum(1) for made in (plain, tilted)]
    assert (bright[0] - bright[1]).abs().max() > 1e-3
    with pytest.raises(ConfigError, match="turn_tilt"):
        made(1.0)


def test_what_a_device_plays_all_at_once_sounds_the_same(bank, rooms, monkeypatch: pytest.MonkeyPatch):
    channel = ChannelConfig(burst_probability=1.0, noise_swing_db=(0.0, 0.0))
    casting = CastingConfig(turn_tilt=0.5, turn_speed=0.1)
    config = SimulationConfig(channel=channel, casting=casting)
    simulator = Simulator(bank, config, rooms=rooms, bursts=BurstPool.make(Pauses(bank), 3))
    script = simulator.script(seeded(2), 4, 6.0)
    expected = simulator.render(script).wave
    monkeypatch.setattr("sortformer.simulate.simulator._audio", lambda sounds, _: torch.from_numpy(sounds.audio))
    power = expected.square().mean(dim=1)
    assert ((simulator.render(script).wave - expected).square().mean(dim=1) < 1e-4 * power).all()


def test_turns_of_another_speed_keep_their_place(bank):
    def made(speed: float):
        casting = replace(DRY.casting, turn_speed=speed)
        return Simulator(bank, replace(DRY, casting=casting)).batch(seeded(3), 4, 20.0).activity.sum(1)

    plain, varied = made(0.0), made(0.05)
    assert not torch.equal(plain, varied)
    assert ((plain - varied).sum(1).abs() < 0.1 * plain.sum(1)).all()
    with pytest.raises(ConfigError, match="turn_speed"):
        made(1.0)


def test_what_a_voice_says_slower_is_over_before_it_says_more(bank, monkeypatch: pytest.MonkeyPatch):
    said, play = list[tuple[int, int, float, float]](), Stage.play

    def noted_down(stage: Stage, row: int, slot: int, source: int, at: int, length: int, delivery: Delivery) -> None:
        said.append((row, slot, at, at + length / delivery.speed))
        play(stage, row, slot, source, at, length, delivery)

    monkeypatch.setattr(Stage, "play", noted_down)
    casting = replace(DRY.casting, turn_speed=0.4)
    Simulator(bank, replace(DRY, casting=casting)).batch(seeded(3), 8, 30.0)
    said.sort()
    assert len(said) > 50
    for (row, slot, _, end), (next_row, next_slot, start, _) in pairwise(said):
        assert (row, slot) != (next_row, next_slot) or end < start + 2


def _pauses(activity: torch.Tensor) -> list[int]:
    """Return the frames of each pause between two stretches of a slot."""
    lengths = []
    for column in activity.transpose(1, 2).flatten(0, 1):
        spoken = column.nonzero().flatten()
        lengths += [int(step) - 1 for step in spoken.diff() if step > 1]
    return lengths


def test_each_slot_is_the_voice_it_names(bank):
    """The voices of this bank are harmonic: a frame with one speaker must have that voice's pitch."""
    alone = SimulationConfig(channel=CLEAN, turn_taking=TurnTakingConfig(turn_median_s=(2.0, 3.0)))
    made = Simulator(bank, alone).batch(seeded(4), 3, 15.0)
    checked = 0
    for row, slot in np.ndindex(3, 4):
        if made.voice[row, slot] < 0:
            continue
        single = (made.activity[row].sum(-1) == 1) & (made.activity[row, :, slot] == 1)
        voice = bank.voices[int(made.voice[row, slot])]
        for frame in range(2, made.activity.shape[1] - 2):
            if single[frame - 2 : frame + 3].all():
                cut = made.wave[row, (frame - 2) * 1280 : (frame + 3) * 1280].numpy()
                spectrum = np.abs(np.fft.rfft(cut * np.hanning(len(cut)), 64000))
                assert spectrum.argmax() / 4 == pytest.approx(PITCHES_HZ[voice.speaker] * voice.speed, abs=6)
                checked += 1
    assert checked > 100


def test_speaker_counts_follow_the_weights(bank):
    quick = TurnTakingConfig(turn_median_s=(0.5, 0.6), pause_median_s=(0.1, 0.2))
    simulator = Simulator(bank, replace(DRY, speaker_weights=(0.5, 0.0, 0.5), turn_taking=quick))
    counts = (simulator.batch(seeded(0), 50, 8.0).voice >= 0).sum(1).bincount(minlength=5)
    assert counts[4] == 0
    assert 15 <= counts[1] <= 35
    assert 10 <= counts[3] <= 35


def test_without_speech_there_are_sounds_and_no_labels(bank):
    noisy = replace(CLEAN, noise_probability=1.0, burst_probability=1.0)
    made = Simulator(bank, replace(DRY, channel=noisy, speechless_probability=0.4)).batch(seeded(0), 40, 4.0)
    empty = ~made.activity.any(2).any(1)
    assert 8 <= empty.sum() <= 24
    assert (made.voice[empty] == -1).all()
    assert made.wave[empty].abs().amax(1).min() > 1e-4


def test_a_bystander_talks_far_away_now_and_then_and_is_not_labelled(bank):
    standing = replace(CLEAN, bystander_probability=1.0, bystander_snr_db=(30.0, 30.0))
    simulator = Simulator(bank, replace(DRY, channel=standing, shortest_pause_s=0.0, speechless_probability=0.2))
    made = simulator.batch(seeded(3), 12, 30.0)
    level = _frame_levels_db(made.wave, made.activity.shape[1])
    active = made.activity.any(-1)
    talking = active.any(1)
    quiet = (~active & ~active.roll(1, 1) & ~active.roll(-1, 1))[talking]
    heard = (level[talking][quiet] > -75).float().mean()
    assert 0.05 < heard < 0.6
    assert level[talking][quiet].max() < level[active].median() - 12
    assert 0 < (~talking).sum() < 12
    assert not made.wave[~talking].any()


def test_replayed_turns_shape_the_activity(bank, tmp_path):
    lines = [f"SPEAKER m 1 {4 * i}.00 2.00 <NA> <NA> s{i % 2} <NA> <NA>" for i in range(60)]
    (tmp_path / "m.rttm").write_text("\n".join(lines))
    config = replace(DRY, replay_probability=1.0, speaker_weights=(0.0, 1.0))
    made = Simulator(bank, config, TurnPatterns.from_rttm([tmp_path])).batch(seeded(0), 4, 40.0)
    assert (made.activity.sum(-1) <= 1).all()
    assert float(made.activity.sum(-1).mean()) == pytest.approx(0.5, abs=0.08)
    assert ((made.voice >= 0).sum(1) == 2).all()


@pytest.fixture
def played_by(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int, float]]:
    """Row, slot and gain of all that is said."""
    said = []
    monkeypatch.setattr(Stage, "play", lambda _stage, row, slot, *place: said.append((row, slot, place[-1].gain)))
    return said


def test_voices_are_as_loud_as_they_are_and_turns_around_it(bank, played_by):
    def levels_db(**casting: float) -> list[np.ndarray]:
        played_by.clear()
        Simulator(bank, replace(DRY, casting=CastingConfig(**casting))).script(seeded(0), 20, 30.0)
        gains = defaultdict(list)
        for row, slot, gain in played_by:
            gains[row, slot].append(20 * np.log10(gain))
        return [np.array(levels) for levels in gains.values()]

    voices = levels_db(voice_gain_db=6.0, turn_gain_db=0.0)
    assert all(np.ptp(levels) < 1e-6 for levels in voices)
    assert np.std([levels[0] for levels in voices]) == pytest.approx(6 / 3**0.5, rel=0.2)
    assert len({round(float(levels[0]), 6) for levels in voices}) == len(voices)
    turns = levels_db(voice_gain_db=0.0, turn_gain_db=2.0)
    assert np.std(np.concatenate(turns)) == pytest.approx(2.0, rel=0.2)


@pytest.mark.parametrize(("bystander", "most"), [(0.0, 2), (1.0, 1)])
def test_who_murmurs_is_nobody_of_the_conversation(bank, monkeypatch, bystander, most):
    heard = defaultdict(set)

    def note(_stage: Stage, row: int, source: int, _at: int, _length: int) -> None:
        utterance = np.searchsorted(bank.utterance_end, source, side="right")
        heard[row].add(int(bank.utterance_voice[utterance]))

    monkeypatch.setattr(Stage, "murmur", note)
    channel = replace(CLEAN, babble_probability=1.0, babble_voices=(1, 2), bystander_probability=bystander)
    script = Simulator(bank, replace(DRY, channel=channel)).script(seeded(0), 30, 20.0)
    assert max(map(len, heard.values())) == most
    assert len(heard) > 15
    assert not any(heard[row] & set(voices) for row, voices in enumerate(script.voice.tolist()))


def test_windows_of_meetings_are_as_frequent_and_as_lively_as_asked_for(bank):
    asked = []

    def window(rng: np.random.Generator, count: int, num_hops: int, lively: bool) -> Outline:
        asked.append(lively)
        return parametric_outline(rng, count, num_hops, TurnTakingConfig())

    patterns: Any = SimpleNamespace(window=window)
    config = replace(DRY, replay_probability=0.7, lively_probability=0.2)
    Simulator(bank, config, patterns).script(seeded(0), 200, 2.0)
    assert len(asked) / 200 == pytest.approx(0.7, abs=0.1)
    assert np.mean(asked) == pytest.approx(0.2, abs=0.08)


def test_nobody_talks_over_themselves(bank, monkeypatch):
    spoken: dict[tuple[int, int], np.ndarray] = {}

    def note(_stage, row, slot, _source, at, length, _delivery):
        spoken.setdefault((row, slot), np.zeros(3000 + 2000, dtype=int))[at : at + length] += 1

    monkeypatch.setattr(Stage, "play", note)
    busy = TurnTakingConfig(overlap_probability=(0.6, 0.65), backchannel_probability=(0.9, 1.0))
    Simulator(bank, replace(DRY, turn_taking=busy)).batch(seeded(0), 6, 30.0)
    assert len(spoken) > 6
    assert max(count.max() for count in spoken.values()) == 1


def test_more_slots_than_rooms_have_positions(bank, rooms):
    config = SimulationConfig(num_slots=6, speaker_weights=(0, 0, 0, 0, 1.0))
    made = Simulator(bank, config, rooms=rooms).batch(seeded(0), 2, 20.0)
    assert made.activity.shape[2] == 6


def test_a_bank_that_is_too_small_is_refused(bank_folder):
    dev = VoiceBank.load(bank_folder, split="dev", speeds=(0.9, 1.0))
    with pytest.raises(InputError, match="the bank has 1 speaker, but"):
        Simulator(dev, SimulationConfig())


@pytest.mark.parametrize(("batch_size", "duration_s"), [(0, 5.0), (1, 0.0), (1, -1.0)])
def test_an_empty_batch_is_refused(simulator, batch_size, duration_s):
    with pytest.raises(InputError, match="at least one conversation"):
        simulator.batch(seeded(0), batch_size, duration_s)


@pytest.mark.parametrize("kind", ["near", "alike", "rooms", "calls"])
def test_a_dev_set_is_fixed_and_has_the_speakers_asked_for(bank, rooms, kind):
    whole = dev_set(bank, kind, num_speakers=3, count=3, duration_s=15.0, seed=7, rooms=rooms)
    part = dev_set(bank, kind, num_speakers=3, count=2, duration_s=15.0, seed=7, rooms=rooms)
    assert torch.equal(whole.wave[:2], part.wave)
    assert torch.equal(whole.activity[:2], part.activity)
    assert ((whole.voice >= 0).sum(1) == 3).all()


def test_voices_that_are_alike_are_of_one_corpus(bank, rooms):
    made = dev_set(bank, "alike", num_speakers=2, count=12, duration_s=15.0, seed=7, rooms=rooms)
    for row in made.voice:
        who = [bank.voices[int(voice)] for voice in row if voice >= 0]
        assert len({voice.speaker for voice in who}) == 2
        assert len({voice.corpus for voice in who}) == 1


@pytest.mark.parametrize("kind", ["near", "rooms"])
def test_the_rooms_of_a_dev_set_are_heard(bank, rooms, kind):
    others = replace(rooms, responses=np.roll(rooms.responses, 1, axis=2))
    one, other = (dev_set(bank, kind, 1, 1, 5.0, 7, each) for each in (rooms, others))
    assert one.activity.equal(other.activity)
    assert not one.wave.equal(other.wave)


def test_calls_have_nothing_above_4_khz(bank, rooms):
    made = dev_set(bank, "calls", num_speakers=2, count=3, duration_s=15.0, seed=7, rooms=rooms)
    power = torch.fft.rfft(made.wave).abs().square()
    assert (power[:, power.shape[1] * 21 // 40 :].sum(dim=1) < 1e-6 * power.sum(dim=1)).all()


def test_a_dev_set_of_sounds_is_loud_and_has_no_speaker(bank, rooms):
    made = dev_set(bank, "sounds", num_speakers=0, count=3, duration_s=15.0, seed=7, rooms=rooms)
    assert not made.activity.any()
    assert (made.voice == -1).all()
    assert (made.wave.std(dim=1) > 10 ** (-50 / 20)).all()
    with pytest.raises(InputError, match="0 to 0 speakers"):
        dev_set(bank, "sounds", 1, 1, 10.0, 0, rooms)


def test_an_impossible_dev_set_is_refused(bank, rooms):
    with pytest.raises(InputError, match="'near', 'alike', 'rooms', 'calls' or 'sounds'"):
        dev_set(bank, "cave", 2, 1, 10.0, 0, rooms)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match="make it longer"):
        dev_set(bank, "near", 4, 1, 0.05, 0, rooms)
    with pytest.raises(InputError, match="1 to 4 speakers"):
        dev_set(bank, "near", 5, 1, 10.0, 0, rooms)
    with pytest.raises(InputError, match="one conversation or more, got 0"):
        dev_set(bank, "near", 1, 0, 10.0, 0, rooms)


@pytest.mark.data
@pytest.mark.skipif(not REAL.is_dir(), reason="../shared/data is absent")
def test_real_voices_in_real_turns_overlap_as_meetings_do(tmp_path):
    lines = (REAL / "bank/segments.tsv").read_text().splitlines()
    (tmp_path / "segments.tsv").write_text("\n".join([lines[0], *(line for line in lines if "\tdev\t" in line)][:40]))
    for name in {line.split("\t")[0] for line in lines}:
        (tmp_path / name).symlink_to(REAL / "bank" / name)
    bank = VoiceBank.load(tmp_path, "dev", speeds=(1.0,))
    patterns = TurnPatterns.from_rttm([REAL / "turns/ami/train"], exclude=("EN200*", "IS*", "TS*"))
    config = SimulationConfig(speaker_weights=(0, 0, 0, 1.0), replay_probability=1, lively_probability=1)
    talking = Simulator(bank, config, patterns).batch(seeded(0), 8, 30.0).activity.sum(-1)
    assert 0.15 < float((talking > 1).sum() / (talking > 0).sum()) < 0.45
