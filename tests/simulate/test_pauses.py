"""Pauses: real sounds, away from speech, each from one recording."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sortformer.simulate import VoiceBank
from sortformer.simulate.bursts import bursts
from sortformer.simulate.pauses import Pauses

RATE = 16_000
HOP = 160
ONLY_PAUSES = (0.0, 0.0, 0.0, 0.0, 0.0, 1.0)


def test_there_is_no_speech_in_them_nor_next_to_them(bank: VoiceBank):
    pauses = Pauses(bank)
    assert len(pauses.start) > 3
    for start, end in zip(pauses.start, pauses.end, strict=True):
        assert not bank.activity[start - 4 : end + 4].any()
        assert end - start >= 12


@pytest.mark.parametrize(("hops", "found"), [(19, []), (20, [(14, 26)])])
def test_the_shortest_lasts_for_120_ms_without_40_ms_at_either_end(hops: int, found: list[tuple[int, int]]):
    activity = np.ones(100, dtype=bool)
    activity[10 : 10 + hops] = False
    one: Any = SimpleNamespace(activity=activity, utterance_start=[0], utterance_end=[100], audio=None)
    pauses = Pauses(one)
    assert list(zip(pauses.start.tolist(), pauses.end.tolist(), strict=True)) == found


def test_none_reaches_from_one_recording_into_the_next(bank: VoiceBank):
    pauses = Pauses(bank)
    first = np.searchsorted(bank.utterance_end, pauses.start, side="right")
    last = np.searchsorted(bank.utterance_end, pauses.end - 1, side="right")
    assert (first == last).all()


def test_those_of_a_pool_are_of_its_recordings(bank: VoiceBank):
    whole = Pauses(bank)
    for size in (1, 2, 3):
        pool = bank.pool(size)
        pauses = Pauses(pool)
        inside = (pool.utterance_start <= pauses.start[:, None]) & (pauses.end[:, None] <= pool.utterance_end)
        assert inside.any(axis=1).all()
        assert set(pauses.start.tolist()) <= set(whole.start.tolist())


def test_what_is_drawn_is_what_the_bank_holds_there(bank: VoiceBank):
    """Speech is a constant of 1,000 and each pause another constant, so a drawn sound shows its pause."""
    pauses = Pauses(bank)
    audio = np.full(len(bank.audio), 1000, dtype=np.int16)
    for number, (start, end) in enumerate(zip(pauses.start, pauses.end, strict=True)):
        audio[start * HOP : end * HOP] = number + 1
    marked = Pauses(replace(bank, audio=audio))
    drawn = [marked.draw(np.random.default_rng(seed)) for seed in range(200)]
    values = {round(float(sound[len(sound) // 2])) for sound in drawn}
    assert all(sound.max() <= len(pauses.start) for sound in drawn)
    assert len(values) > len(pauses.start) / 2
    assert all(len(sound) / RATE + 1e-3 >= 0.12 / 1.4 and len(sound) / RATE <= 2 / 0.7 for sound in drawn)
    assert all(abs(sound[0]) == abs(sound[-1]) == 0 for sound in drawn)


def test_as_bursts_they_have_unit_power(bank: VoiceBank):
    sounds = [bursts(np.random.default_rng(s), 20 * RATE, 0.03, ONLY_PAUSES, Pauses(bank)) for s in range(40)]
    power = [np.mean(sound[sound != 0].astype(float) ** 2) for sound in sounds if sound.any()]
    assert 0.1 < np.median(power) < 10


@pytest.mark.parametrize("pauses", ["none given", "none in the bank"])
def test_without_pauses_there_are_other_bursts(bank: VoiceBank, pauses: str):
    given = Pauses(replace(bank, activity=np.ones_like(bank.activity))) if pauses == "none in the bank" else None
    sounds = [bursts(np.random.default_rng(s), 20 * RATE, 0.5, ONLY_PAUSES, given) for s in range(5)]
    assert all(np.isfinite(sound).all() and sound.any() for sound in sounds)
