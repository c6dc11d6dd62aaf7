"""Bursts drawn from a pool are like newly made ones."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from sortformer.config.simulation import ChannelConfig, SimulationConfig
from sortformer.errors import InputError
from sortformer.simulate import BurstPool, Pauses, Simulator
from sortformer.simulate.bursts import KINDS, LEVEL_SPREAD_DB, burst_of_kind
from sortformer.simulate.events import noted, played

RATE = 16_000
NOISY = SimulationConfig(channel=ChannelConfig(burst_probability=1.0, burst_hz=(2.0, 3.0), burst_snr_db=(0.0, 1.0)))


@pytest.fixture(scope="module")
def pool(bank) -> BurstPool:
    return BurstPool.make(Pauses(bank), 20)


def test_it_holds_bursts_of_each_kind_as_they_were_made(pool, bank):
    rng, pauses = np.random.default_rng(20), Pauses(bank)
    made = [burst_of_kind(rng, kind, pauses) for kind in range(KINDS) for _ in range(20)]
    assert len(pool.gain) == len(made)
    for sound, first, last, gain in zip(made, pool.start[:-1], pool.start[1:], pool.gain, strict=True):
        stored = gain * (pool.audio[first:last] / 32_768)
        np.testing.assert_allclose(stored[100:-100], sound, atol=1e-4 * np.abs(sound).max())
        assert not stored[:100].any()
        assert not stored[-100:].any()


def test_the_shortest_clicks_are_heard(pool):
    notes = pool.draw(np.random.default_rng(3), 0, 400 * RATE, 1.0, np.zeros(6))
    notes = [note for note in notes if note.at + note.length < 400 * RATE]
    assert min(note.stored for note in notes) < 360, "one of less than 10 ms is among them"
    for note in notes:
        events = noted([replace(note, row=0, at=0)])
        heard = played(events, pool.audio, 1, 1, note.length).square().sum().item()
        stored = pool.audio[note.source : note.source + note.stored] / 32_768
        power = np.square(stored).sum() * note.delivery.gain**2 / note.delivery.speed
        assert 0.4 < heard / power < 1.05  # linear interpolation attenuates high frequencies


def test_a_burst_is_drawn_as_loud_as_it_was_made_give_or_take(pool):
    notes = pool.draw(np.random.default_rng(1), 0, 400 * RATE, 1.0, np.full(6, 1 / 7))
    chosen = np.searchsorted(pool.start, [note.source for note in notes], side="right") - 1
    levels = [20 * np.log10(note.delivery.gain / pool.gain[burst]) for note, burst in zip(notes, chosen, strict=True)]
    assert np.mean(levels) == pytest.approx(0, abs=1.5)
    assert np.std(levels) == pytest.approx(LEVEL_SPREAD_DB, rel=0.2)


def test_a_burst_is_played_to_its_end_unless_the_recording_ends_before(pool):
    notes = pool.draw(np.random.default_rng(1), 0, 100 * RATE, 1.0, np.zeros(6))
    cut = [note.at + note.length == 100 * RATE for note in notes]
    whole = [note for note, ends in zip(notes, cut, strict=True) if not ends]
    assert {note.delivery.speed > 1 for note in whole} == {False, True}
    assert all(abs(note.length * note.delivery.speed - note.stored) < 1 for note in whole)


def test_the_kinds_are_those_that_are_asked_for(pool):
    music = np.eye(6, dtype=np.float32)[4]
    notes = pool.draw(np.random.default_rng(1), 3, 60 * RATE, 2.0, music)
    assert {int(np.searchsorted(pool.start, note.source, side="right")) - 1 for note in notes} <= set(range(80, 100))
    assert {note.row for note in notes} == {3}
    assert 80 < len(notes) < 160


def test_the_cache_gives_the_same_bursts_and_other_voices_others(bank, pool, tmp_path):
    made = BurstPool.make(Pauses(bank), 20, cache=tmp_path)
    read = BurstPool.make(Pauses(bank), 20, cache=tmp_path)
    for found in (made, read):
        assert np.array_equal(found.audio, pool.audio)
        assert np.array_equal(found.start, pool.start)
        assert np.array_equal(found.gain, pool.gain)
    assert len(list(tmp_path.iterdir())) == 1
    BurstPool.make(Pauses(bank.pool(2)), 20, cache=tmp_path)
    assert len(list(tmp_path.iterdir())) == 2
    BurstPool.make(Pauses(replace(bank, audio=bank.audio[::-1].copy())), 20, cache=tmp_path)
    assert len(list(tmp_path.iterdir())) == 3


def test_a_damaged_cache_is_named(bank, tmp_path):
    BurstPool.make(Pauses(bank), 1, cache=tmp_path)
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:1000])
    with pytest.raises(InputError, match=f"{file} is damaged: delete it"):
        BurstPool.make(Pauses(bank), 1, cache=tmp_path)


def test_conversations_are_the_same_but_for_their_bursts(bank, rooms, pool):
    anew, drawn = (Simulator(bank, NOISY, rooms=rooms, bursts=each) for each in (None, pool))
    first, second = (each.batch(torch.Generator().manual_seed(5), 6, 8.0) for each in (anew, drawn))
    assert first.activity.equal(second.activity)
    assert first.voice.equal(second.voice)
    assert not first.wave.equal(second.wave)
    quiet = Simulator(bank, replace(NOISY, channel=replace(NOISY.channel, burst_probability=0.0)), rooms=rooms)
    without = Simulator(bank, quiet.config, rooms=rooms, bursts=pool)
    third, fourth = (each.batch(torch.Generator().manual_seed(5), 6, 8.0) for each in (quiet, without))
    torch.testing.assert_close(third.wave, fourth.wave)
    louder = (second.wave - third.wave).square().mean(1) / (first.wave - third.wave).square().mean(1)
    assert 0.1 < float(louder.log().mean().exp()) < 10
