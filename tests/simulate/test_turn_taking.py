from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortformer.config.simulation import CastingConfig, TurnTakingConfig
from sortformer.errors import InputError
from sortformer.simulate import TurnPatterns
from sortformer.simulate.casting import Caster, VoiceTape
from sortformer.simulate.outline import parametric_outline

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
    with pytest.raises(InputError, match=r"no recording matches 'EN200', which is to be left out"):
        TurnPatterns.from_rttm([tmp_path], exclude=("EN200",))


def test_a_window_longer_than_the_recording_ends_in_silence(patterns):
    outline = patterns.window(np.random.default_rng(0), 3, 50_000)
    assert outline.start.max() + 150 <= 19950


def test_a_folder_without_rttm_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"has no \.rttm files"):
        TurnPatterns.from_rttm([tmp_path])
    (tmp_path / "silence.rttm").write_text("")
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
