import dataclasses
import itertools
import pickle
import shutil

import numpy as np
import pytest

from sortformer.errors import ConfigError, InputError
from sortformer.simulate import VoiceBank
from tests.simulate.makers import PHRASES_S


def test_phrases_partition_the_activity(bank):
    rebuilt = np.zeros(len(bank.activity), dtype=bool)
    for start, end, utterance in zip(bank.phrase_start, bank.phrase_end, bank.phrase_utterance, strict=True):
        assert bank.utterance_start[utterance] <= start < end <= bank.utterance_end[utterance]
        rebuilt[start:end] = True
    assert np.array_equal(rebuilt, bank.activity)
    assert len(bank.audio) == 160 * len(bank.activity)


def test_the_phrases_of_a_voice_are_its_own(bank):
    for voice in range(len(bank.voices)):
        phrases = slice(bank.voice_phrases[voice], bank.voice_phrases[voice + 1])
        assert set(bank.utterance_voice[bank.phrase_utterance[phrases]]) == {voice}
        assert len(bank.phrase_start[phrases]) == 2 * len(PHRASES_S)


@pytest.mark.parametrize("cached", [True, False])
def test_a_bank_goes_to_another_process_by_its_cache_if_it_has_one(bank_folder, tmp_path, cached):
    """As to the workers of a training on Windows and macOS, which are not forked."""
    bank = VoiceBank.load(bank_folder, cache=tmp_path if cached else None).pool(2)
    sent = pickle.dumps(bank)
    found = pickle.loads(sent)
    assert (len(sent) < bank.audio.nbytes, isinstance(found.audio, np.memmap)) == (cached, cached)
    for field in dataclasses.fields(bank):
        assert np.array_equal(getattr(found, field.name), getattr(bank, field.name)), field.name


def phrases_of(bank: VoiceBank) -> dict[tuple[str, float], list[bytes]]:
    """The sound of each phrase of each voice."""
    return {
        (voice.speaker, voice.speed): [
            bank.audio[160 * bank.phrase_start[p] : 160 * bank.phrase_end[p]].tobytes()
            for p in range(bank.voice_phrases[v], bank.voice_phrases[v + 1])
        ]
        for v, voice in enumerate(bank.voices)
    }


@pytest.fixture(scope="module")
def uneven(bank_folder, tmp_path_factory) -> VoiceBank:
    """A bank whose first speaker has one utterance, of two phrases, and the others two, of four each."""
    folder = tmp_path_factory.mktemp("uneven") / "bank"
    shutil.copytree(bank_folder, folder)
    lines = (folder / "segments.tsv").read_text().splitlines()
    own = [line for line in lines if line.startswith("a_high")]
    others = [line for line in lines if line not in own]
    (folder / "segments.tsv").write_text("\n".join([*others, own[0].replace("7.500", "3.700")]))
    return VoiceBank.load(folder, speeds=(1.0, 1.1))


@pytest.mark.parametrize("count", range(1, 6))
def test_the_voices_of_a_pool_say_what_they_say_in_the_bank(uneven, count):
    pool = uneven.pool(count, seed=3)
    said, whole = phrases_of(pool), phrases_of(uneven)
    assert len({speaker for speaker, _ in said}) == count
    assert len(said) == 2 * count
    assert said == {name: whole[name] for name in said}
    for voice in range(len(pool.voices)):
        phrases = slice(pool.voice_phrases[voice], pool.voice_phrases[voice + 1])
        utterances = pool.phrase_utterance[phrases]
        assert set(pool.utterance_voice[utterances]) == {voice}
        assert (pool.utterance_start[utterances] <= pool.phrase_start[phrases]).all()
        assert (pool.phrase_end[phrases] <= pool.utterance_end[utterances]).all()
    utterances = [set(zip(each.utterance_start, each.utterance_end, strict=True)) for each in (pool, uneven)]
    assert utterances[0] <= utterances[1]


def test_pools_of_one_seed_hold_one_another_and_seeds_differ(bank):
    pools = [{voice.speaker for voice in bank.pool(count, seed=1).voices} for count in range(1, 6)]
    assert all(small < large for small, large in itertools.pairwise(pools))
    assert len({tuple(sorted(v.speaker for v in bank.pool(2, seed).voices)) for seed in range(10)}) > 1
    assert {voice.speaker for voice in bank.pool(2, seed=3).voices} == {"b_high", "b_mid"}  # in every process


@pytest.mark.parametrize("count", [0, 6])
def test_a_pool_is_no_larger_than_the_bank(bank, count):
    with pytest.raises(InputError, match=f"a pool of {count} speakers cannot be drawn from a bank of 5"):
        bank.pool(count)


@pytest.mark.parametrize("factors", [(0,), (), (-1.0,), (float("nan"),), ("fast",), 1.1])
@pytest.mark.parametrize("name", ["speeds", "formants"])
def test_factors_that_make_no_voice_are_refused(bank_folder, name, factors):
    with pytest.raises(ConfigError, match=f"{name} of a voice bank must be one or more positive numbers, got"):
        VoiceBank.load(bank_folder, **{name: factors})
