import itertools
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortformer.config.simulation import CastingConfig, TurnTakingConfig
from sortformer.errors import InputError
from sortformer.simulate import TurnPatterns
from sortformer.simulate.casting import Caster, VoiceTape
from sortformer.simulate.outline import Outline, parametric_outline
from sortformer.simulate.voice import Voice

REAL = Path(__file__).resolve().parents[2] / "../shared/data/turns"


@given(seed=st.integers(0, 10**6), speakers=st.integers(1, 6), hops=st.integers(1, 9000))
def test_parametric_turns_are_possible(seed, speakers, hops):
    outline = parametric_outline(np.random.default_rng(seed), speakers, hops, TurnTakingConfig())
    assert (outline.start >= 0).all()
    assert (outline.length > 0).all()
    assert ((outline.speaker >= 0) & (outline.speaker < speakers)).all()


def _overlap(outline, hops: int) -> float:
    """Share of the speech in which two or more speak, counted hop by hop."""
    count = np.zeros(hops, dtype=int)
    for start, length in zip(outline.start, outline.length, strict=True):
        count[start : start + length] += 1
    return (count > 1).sum() / max(1, (count > 0).sum())


def test_overlap_follows_the_config():
    def mean_overlap(**settings):
        config = TurnTakingConfig(**settings)
        rngs = map(np.random.default_rng, range(30))
        return np.mean([_overlap(parametric_outline(rng, 3, 6000, config), 6000) for rng in rngs])

    never = mean_overlap(overlap_probability=(0, 0), backchannel_probability=(0, 0))
    often = mean_overlap(overlap_probability=(0.7, 0.7), backchannel_probability=(0.5, 0.5))
    assert never == 0
    assert often > 0.15


def test_dominance_follows_the_config():
    def largest_share(concentration: float) -> float:
        config = TurnTakingConfig(dominance=(concentration, concentration), same_speaker_probability=0)
        shares = []
        for seed in range(30):
            outline = parametric_outline(np.random.default_rng(seed), 4, 30000, config)
            shares.append(np.bincount(outline.speaker, minlength=4).max() / len(outline.speaker))
        return float(np.mean(shares))

    assert largest_share(0.3) > largest_share(50.0) + 0.05


def outlines(speakers: int, count: int = 30, hops: int = 6000, **settings: Any) -> list[Outline]:
    config = TurnTakingConfig(**settings)
    return [parametric_outline(np.random.default_rng(seed), speakers, hops, config) for seed in range(count)]


def test_nobody_follows_themselves_but_as_often_as_asked_for():
    def share(probability: float) -> float:
        drawn = outlines(3, same_speaker_probability=probability, backchannel_probability=(0, 0))
        return float(np.mean(np.concatenate([np.diff(outline.speaker) == 0 for outline in drawn])))

    assert share(0.0) == 0
    assert share(0.4) == pytest.approx(0.4, abs=0.05)


def test_anybody_may_begin():
    assert {outline.speaker[0] for outline in outlines(3, same_speaker_probability=1.0)} == {0, 1, 2}


def test_who_has_said_nothing_yet_is_soon_heard_however_one_speaker_dominates():
    drawn = outlines(4, dominance=(0.1, 0.1), backchannel_probability=(0, 0), same_speaker_probability=0.0)
    heard = [len(np.unique(outline.speaker[:10])) for outline in drawn]
    assert np.mean(heard) > 3.7


def test_back_channels_are_short_and_of_somebody_else_within_the_turn():
    settings = {"overlap_probability": (0, 0), "pause_median_s": (0.3, 0.3), "backchannel_s": (0.3, 0.6)}
    for outline in outlines(3, turn_median_s=(3, 3), turn_spread=0.1, backchannel_probability=(1, 1), **settings):
        turn, answer = (np.arange(first, len(outline.speaker), 2) for first in (0, 1))
        turn = turn[: len(answer)]
        assert (outline.speaker[answer] != outline.speaker[turn]).all()
        assert ((outline.length[answer] >= 30) & (outline.length[answer] <= 60)).all()
        where = (outline.start[answer] - outline.start[turn]) / outline.length[turn]
        assert (np.abs(where - 0.5) <= 0.41).all()


def test_long_silences_are_as_frequent_and_as_long_as_asked_for():
    def pauses(probability: float) -> np.ndarray:
        settings = {"long_silence_probability": probability, "long_silence_s": (6.0, 7.0), "pause_spread": 0.0}
        drawn = outlines(2, overlap_probability=(0, 0), backchannel_probability=(0, 0), **settings)
        return np.concatenate([outline.start[1:] - (outline.start + outline.length)[:-1] for outline in drawn])

    assert pauses(0.0).max() <= 90
    some = pauses(0.3)
    assert np.mean(some > 90) == pytest.approx(0.3, abs=0.06)
    assert ((some[some > 90] >= 600) & (some[some > 90] <= 700)).all()


@pytest.mark.parametrize("median_s", [0.3, 1.0])
def test_overlaps_last_as_long_as_asked_for(median_s):
    settings = {"overlap_median_s": median_s, "turn_median_s": (6, 6), "turn_spread": 0.0}
    drawn = outlines(2, overlap_probability=(1, 1), backchannel_probability=(0, 0), **settings)
    overlaps = [(outline.start + outline.length)[:-1] - outline.start[1:] for outline in drawn]
    assert np.median(np.concatenate(overlaps)) == pytest.approx(100 * median_s, rel=0.2)


@pytest.fixture
def patterns(tmp_path) -> TurnPatterns:
    lines = [f"SPEAKER m 1 {2 * i}.00 1.50 <NA> <NA> s{i % 3} <NA> <NA>" for i in range(100)]
    (tmp_path / "m.rttm").write_text("\n".join(lines))
    (tmp_path / "EN2001.rttm").write_text("SPEAKER EN2001 1 0.00 500.00 <NA> <NA> alone <NA> <NA>\n")
    return TurnPatterns.from_rttm([tmp_path], exclude=("EN200*",))


@given(seed=st.integers(0, 1000), speakers=st.integers(1, 5), lively=st.booleans())
def test_a_window_shows_at_most_the_speakers_asked_for(tmp_path_factory, seed, speakers, lively):
    folder = tmp_path_factory.mktemp("rttm")
    lines = [f"SPEAKER m 1 {2 * i}.00 2.50 <NA> <NA> s{i % 4} <NA> <NA>" for i in range(50)]
    (folder / "m.rttm").write_text("\n".join(lines))
    outline = TurnPatterns.from_rttm([folder]).window(np.random.default_rng(seed), speakers, 2000, lively)
    assert len(np.unique(outline.speaker)) == min(speakers, 4)
    assert outline.speaker.max() < speakers
    assert (outline.start >= 0).all()
    assert (outline.start + outline.length <= 2000).all()


def test_a_window_is_the_real_turn_taking(patterns):
    outline = patterns.window(np.random.default_rng(0), 3, 3000)
    inner = outline.length[1:-1]
    assert set(inner) == {150}
    assert set(np.diff(outline.start)[1:-1]) == {200}
    assert (np.diff(outline.speaker[1:-1]) != 0).all()


def windows_of(recordings: list[list[tuple[int, int, int]]], speakers: int, lively: bool = False) -> list[Outline]:
    """Windows of 1,000 hops from recordings as (speaker, start, end)."""
    tables = tuple(np.array(turns, dtype=np.int64) for turns in recordings)
    patterns = TurnPatterns(tables, np.array([table[:, 2].max() for table in tables], dtype=np.float64))
    return [patterns.window(np.random.default_rng(seed), speakers, 1000, lively) for seed in range(20)]


def test_long_recordings_are_drawn_more_often_and_windows_stay_inside():
    long = [(0, 100 * turn, 100 * turn + 90) for turn in range(90)]
    short = [(0, 0, 1000)]
    windows = windows_of([short, long], 1)
    assert np.mean([len(window.start) > 1 for window in windows]) == pytest.approx(0.9, abs=0.1)
    assert all((window.start + window.length).max() >= 890 for window in windows)


def test_who_says_next_to_nothing_in_a_window_is_not_of_it():
    often = [(0, 100 * turn, 100 * turn + 90) for turn in range(10)]
    assert {len(np.unique(each.speaker)) for each in windows_of([[*often, (1, 0, 29)]], 2)} == {1}
    assert {len(np.unique(each.speaker)) for each in windows_of([[*often, (1, 0, 30)]], 2)} == {2}


def test_a_window_with_just_so_many_speakers_is_preferred():
    pair = [(turn % 2, 100 * turn, 100 * turn + 90) for turn in range(10)]
    crowd = [(turn % 4, 100 * turn, 100 * turn + 50) for turn in range(10)]
    assert {int(each.length[0]) for each in windows_of([pair, crowd], 2)} == {90}
    assert {int(each.length[0]) for each in windows_of([pair, crowd], 3)} == {50}


@pytest.mark.parametrize("speakers", [1, 2])
def test_of_a_crowd_anybody_is_kept(speakers):
    crowd = [(turn % 4, 100 * turn + turn % 4, 100 * turn + 90) for turn in range(12)]
    kept = np.concatenate([each.start % 100 for each in windows_of([crowd], speakers)])
    assert len(np.unique(kept)) > 2 * speakers


@pytest.mark.parametrize("speakers", [1, 2, 3])
def test_of_a_crowd_only_the_turns_of_those_who_are_kept_are_said(speakers):
    crowd = [(turn % 4, 100 * turn, 100 * turn + 40 + turn % 4) for turn in range(9)]  # the length tells who speaks
    for each in windows_of([crowd], speakers):
        said = set(zip(each.speaker.tolist(), each.length.tolist(), strict=True))
        assert sorted(who for who, _ in said) == list(range(speakers))


def test_lively_windows_have_overlap_or_else_many_turns_and_enough_speakers():
    calm = [(turn % 2, 500 * turn, 500 * turn + 490) for turn in range(2)]
    quick = [(turn % 2, 50 * turn, 50 * turn + 49) for turn in range(20)]
    over = [(0, 0, 700), (1, 500, 1000)]
    little = [(0, 0, 545), (1, 455, 1000)]
    under = [(0, 0, 1000), *((1, 100 * turn, 100 * turn + 40) for turn in range(3, 6))]
    alone = [(0, 10 * turn, 10 * turn + 500) for turn in range(40)]
    assert {len(each.start) for each in windows_of([calm, quick], 2, lively=True)} == {20}
    assert {int(each.length[0]) for each in windows_of([calm, over], 2, lively=True)} == {700}
    assert {len(np.unique(each.speaker)) for each in windows_of([calm, alone], 2, lively=True)} == {2}
    assert {len(each.start) for each in windows_of([under, little], 2, lively=True)} == {4}
    much, most_of_it = [(0, 0, 1000), (1, 100, 400)], [(0, 750, 950), (1, 800, 1000)]
    assert {int(each.length[0]) for each in windows_of([much, most_of_it], 2, lively=True)} == {200}


def test_the_liveliest_window_is_never_an_empty_one():
    seldom = [(0, 0, 1000), (0, 2500, 3500)]
    assert all(len(each.start) == 1 for each in windows_of([seldom], 2, lively=True))


def test_excluded_recordings_are_left_out_of_every_folder(patterns, tmp_path):
    assert len(patterns.recordings) == 1
    assert patterns.lengths.tolist() == [19950]
    both = tmp_path / "both"
    both.mkdir()
    (both / "all.rttm").write_text((tmp_path / "m.rttm").read_text() + "\n" + (tmp_path / "EN2001.rttm").read_text())
    (both / "EN2002.rttm").write_text("SPEAKER audio 1 0.00 500.00 <NA> <NA> alone <NA> <NA>\n")
    (both / "again.rttm").write_text("SPEAKER audio 1 0.00 199.50 <NA> <NA> alone <NA> <NA>\n")
    assert len(TurnPatterns.from_rttm([tmp_path, both]).recordings) == 6
    assert TurnPatterns.from_rttm([tmp_path, both], exclude=("EN200?",)).lengths.tolist() == [19950] * 3


@pytest.mark.usefixtures("patterns")
def test_a_pattern_that_leaves_nothing_out_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"no recording matches 'EN200', which should be excluded"):
        TurnPatterns.from_rttm([tmp_path], exclude=("EN200",))


def test_speakers_are_numbered_by_name_so_that_every_process_draws_the_same(tmp_path):
    lines = [f"SPEAKER m 1 {turn}.00 1.00 <NA> <NA> {name} <NA> <NA>" for turn, name in enumerate("hgfedcba")]
    (tmp_path / "m.rttm").write_text("\n".join(lines))
    assert TurnPatterns.from_rttm([tmp_path]).recordings[0][:, 0].tolist() == [7, 6, 5, 4, 3, 2, 1, 0]


def test_a_window_longer_than_the_recording_ends_in_silence(patterns):
    outline = patterns.window(np.random.default_rng(0), 3, 50_000)
    assert outline.start.max() + 150 <= 19950


def test_a_folder_without_rttm_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"has no \.rttm files"):
        TurnPatterns.from_rttm([tmp_path])
    (tmp_path / "silence.rttm").write_text("SPEAKER silence 1 1.00 0.00 <NA> <NA> nobody <NA> <NA>\n")
    with pytest.raises(InputError, match="no turns"):
        TurnPatterns.from_rttm([tmp_path])


@pytest.mark.data
@pytest.mark.skipif(not REAL.is_dir(), reason="../shared/data/turns is absent")
def test_lively_windows_of_real_meetings_overlap_more():
    patterns = TurnPatterns.from_rttm([REAL / "ami/train"], exclude=("EN200*", "IS*", "TS*"))
    overlap = {
        lively: np.mean([
            _overlap(patterns.window(np.random.default_rng(seed), 4, 3000, lively), 3000) for seed in range(40)
        ])
        for lively in (False, True)
    }  # fmt: skip
    assert overlap[True] > overlap[False] > 0.02


@given(seed=st.integers(0, 1000), turns=st.lists(st.integers(1, 1500), min_size=1, max_size=5))
def test_a_tape_plays_only_speech_of_its_voice_and_fills_the_turn(bank, seed, turns):
    voice = seed % len(bank.voices)
    tape = VoiceTape(bank, voice, np.random.default_rng(seed))
    for length in turns:
        at = 0
        for piece in tape.read(length):
            assert piece.at >= at
            assert piece.at - at <= 35
            at = piece.at + piece.length
            assert bank.activity[piece.source : piece.source + piece.length].all()
            utterance = np.searchsorted(bank.utterance_end, piece.source, side="right")
            assert bank.utterance_voice[utterance] == voice
        assert at <= length
        assert length - at <= 35


def test_a_tape_repeats_nothing_before_its_end(bank):
    own = slice(bank.voice_phrases[0], bank.voice_phrases[1])
    speech = int((bank.phrase_end[own] - bank.phrase_start[own]).sum())
    played = np.zeros(len(bank.activity), dtype=int)
    total = 0
    tape = VoiceTape(bank, 0, np.random.default_rng(3))
    while total < speech - 300:
        for piece in tape.read(120):
            played[piece.source : piece.source + piece.length] += 1
            total += piece.length
    assert played.max() == 1


def tape_of(phrases: list[tuple[int, int, int]], seed: int = 0) -> VoiceTape:
    """A tape of the only voice of a bank with phrases (start, end, utterance)."""
    start, end, utterance = np.array(phrases).T
    bank: Any = SimpleNamespace(
        voice_phrases=[0, len(phrases)], phrase_start=start, phrase_end=end, phrase_utterance=utterance
    )
    return VoiceTape(bank, 0, np.random.default_rng(seed))


def test_pauses_of_a_reading_are_kept_up_to_a_third_of_a_second_and_others_are_drawn():
    pauses = defaultdict(set)
    for seed in range(20):
        pieces = tape_of([(0, 100, 0), (135, 200, 0), (236, 300, 0), (320, 400, 1)], seed).read(2000)
        for one, other in itertools.pairwise(pieces):
            pauses[one.source, other.source].add(other.at - one.at - one.length)
    assert pauses.pop((0, 135)) == {35}
    assert pauses.pop((236, 320), {20}) == {20}  # where the next utterance happens to come next
    assert set(pauses) == {(135, 236), (320, 0)}
    assert all(len(drawn) > 3 and min(drawn) >= 8 and max(drawn) < 30 for drawn in pauses.values())


@pytest.mark.parametrize(("said", "next_at"), [(80, 80), (85, 85), (86, 0)])
def test_a_phrase_goes_on_in_the_next_turn_unless_too_little_of_it_is_left(said, next_at):
    tape = tape_of([(0, 100, 0)])
    assert [(piece.source, piece.length) for piece in tape.read(said)] == [(0, said)]
    assert tape.read(10)[0].source == next_at


def test_tapes_begin_anywhere_and_shuffle_the_utterances(bank):
    own = slice(bank.voice_phrases[0], bank.voice_phrases[1])
    orders = set()
    for seed in range(40):
        pieces = VoiceTape(bank, 0, np.random.default_rng(seed)).read(2000)
        sources = [piece.source for piece in pieces if piece.source in bank.phrase_start[own]]
        orders.add(tuple(sources[:4]))
    assert {order[0] for order in orders} == set(bank.phrase_start[own].tolist())


@given(seed=st.integers(0, 10**6), count=st.integers(1, 5))
def test_cast_voices_are_different_speakers(bank, seed, count):
    cast = Caster(bank, CastingConfig()).choose(np.random.default_rng(seed), count)
    assert len({bank.voices[voice].speaker for voice in cast}) == count


def test_corpora_and_genders_are_mixed_or_not_as_configured(bank):
    def pairs(config):
        caster = Caster(bank, config)
        return [[bank.voices[v] for v in caster.choose(np.random.default_rng(seed), 2)] for seed in range(60)]

    same = pairs(CastingConfig(same_corpus_probability=1, same_gender_probability=0))
    mixed = pairs(CastingConfig(same_corpus_probability=0, same_gender_probability=0))
    gender = pairs(CastingConfig(same_corpus_probability=0, same_gender_probability=1))
    assert all(a.corpus == b.corpus for a, b in same)
    assert 15 < sum(a.corpus != b.corpus for a, b in mixed) < 45
    assert all(a.gender == b.gender for a, b in gender)


def cast_of(voices: list[tuple[str, str, str]], count: int, **settings: float) -> list[list[int]]:
    """Voices (speaker, corpus, gender) as they are chosen from a bank that has nothing else."""
    never = {"same_corpus_probability": 0.0, "same_gender_probability": 0.0}
    bank: Any = SimpleNamespace(voices=[Voice(name, 1.0, 1.0, corpus, gender) for name, corpus, gender in voices])
    caster = Caster(bank, CastingConfig(**never | settings))
    return [caster.choose(np.random.default_rng(seed), count).tolist() for seed in range(100)]


def test_a_small_corpus_is_heard_as_often_as_a_large_one():
    voices = [(f"large_{number}", "large", "f") for number in range(9)] + [("small", "small", "f")]
    assert np.mean([chosen == [9] for chosen in cast_of(voices, 1)]) == pytest.approx(0.5, abs=0.12)


def test_who_is_of_unknown_gender_is_of_neither():
    voices = [("one", "a", "f"), ("two", "a", "f"), ("three", "a", "m"), ("four", "a", "m"), ("five", "a", "")]
    pairs = {tuple(sorted(chosen)) for chosen in cast_of(voices, 2, same_gender_probability=1.0)}
    assert pairs == {(0, 1), (2, 3)}


def test_a_corpus_without_a_gender_is_still_the_only_one():
    voices = [("one", "a", ""), ("two", "a", ""), ("three", "b", ""), ("four", "b", "")]
    both = {"same_corpus_probability": 1.0, "same_gender_probability": 1.0}
    assert {tuple(sorted(chosen)) for chosen in cast_of(voices, 2, **both)} == {(0, 1), (2, 3)}


def test_a_corpus_of_too_few_speakers_is_not_alone_however_many_voices_they_have():
    voices = [("one", "a", "f"), ("one", "a", "f"), ("one", "a", "f"), ("two", "b", "f")]
    for chosen in cast_of(voices, 2, same_corpus_probability=1.0):
        assert len({voices[voice][0] for voice in chosen}) == 2
