"""Voice banks: LibriSpeech's utterances, and single-speaker stretches of recordings; the simulator loads them."""

import runpy
from pathlib import Path

import pytest

from sortformer.errors import InputError
from sortformer.formats import uem
from sortformer.manifests import Entry
from sortformer.manifests.voices import Utterance, from_librispeech, voices_of, write_bank
from sortformer.simulate import VoiceBank
from tests.audio.makers import chirp, piped_flac
from tests.manifests.trees import librispeech, sound, truth

MAKE_VOICES = Path(__file__).resolve().parents[2] / "recipes/overfit_one/make_voices.py"


def test_librispeech_gives_a_voice_a_reader(tmp_path: Path):
    corpus = librispeech(tmp_path)
    sound(corpus / "mine" / "9-1-0000.flac")  # in no subset
    found = {each.speaker: each for each in from_librispeech(corpus)}
    assert {name: (each.split, each.gender) for name, each in found.items()} == {
        "librispeech_103": ("train", "f"),
        "librispeech_84": ("dev", "m"),
        "librispeech_61": ("test", ""),
    }
    assert (found["librispeech_103"].start_s, found["librispeech_103"].end_s) == (0.0, 1.0)


def test_what_is_not_librispeech_is_refused(tmp_path: Path):
    with pytest.raises(InputError, match=r"SPEAKERS.TXT does not exist"):
        from_librispeech(tmp_path)
    (tmp_path / "SPEAKERS.TXT").write_text("")
    with pytest.raises(InputError, match="none of LibriSpeech's subsets"):
        from_librispeech(tmp_path)


def test_a_name_is_one_person_in_one_recording_or_in_all(tmp_path: Path):
    reference = truth(tmp_path / "one.rttm", (0, 2, "anna"), (1.9, 4, "bert"))
    entry = Entry("one", sound(tmp_path / "one.wav", 3.5), rttm=reference)
    found = voices_of([entry], "train", "own")
    assert [(each.speaker, each.start_s, each.end_s) for each in found] == [
        ("own_one_anna", 0.0, 1.9),
        ("own_one_bert", 2.0, 3.5),  # the recording ends there
    ]
    assert [each.speaker for each in voices_of([entry], "train", "own", shared_names=True)] == ["own_anna", "own_bert"]
    with pytest.raises(InputError, match="nobody speaks alone for 9 s"):
        voices_of([entry], "train", "own", 9)
    with pytest.raises(InputError, match="names no RTTM"):
        voices_of([Entry("two", tmp_path / "one.wav")], "train", "own")


def test_a_voice_is_one_in_all_windows_of_a_recording(tmp_path: Path):
    reference = truth(tmp_path / "one.rttm", (0, 3, "anna"), (3, 6, "bert"))
    audio = sound(tmp_path / "one.wav", 6.0)
    windows = [Entry(f"one_{at}", audio, at, 3.0, reference) for at in (0.0, 1.5, 3.0)]
    found = voices_of(windows, "train", "own")
    assert [each.speaker for each in found] == ["own_one_0.0_anna"] * 2 + ["own_one_0.0_bert"] * 2


def test_speakers_without_a_name_are_never_shared(tmp_path: Path):
    turns = (0, 2, "Ada"), (2, 3, "17"), (3, 5, "speaker_1"), (5, 6, "SPEAKER_00")
    entries = [
        Entry(name, sound(tmp_path / f"{name}.wav", 6.0), 0, 6, truth(tmp_path / f"{name}.rttm", *turns))
        for name in ("one", "two")
    ]
    found = {each.speaker for each in voices_of(entries, "train", "own", shared_names=True)}
    apart = {f"own_{name}_{label}" for name in ("one", "two") for label in ("speaker_1", "SPEAKER_00")}
    assert found == {"own_Ada", "own_17"} | apart  # a corpus may number the people in it


def test_what_the_uem_leaves_out_is_nobodys_voice(tmp_path: Path):
    reference = truth(tmp_path / "one.rttm", (0, 5, "anna"), (5, 10, "bert"))
    uem.write(tmp_path / "one.uem", {"one": [(1, 3), (2.5, 6.5), (9.5, 10)]})
    audio = sound(tmp_path / "one.wav", 10.0)
    whole = Entry("one", audio, 0, 10, reference, tmp_path / "one.uem")
    window = Entry("one", audio, 2, 4, reference, tmp_path / "one.uem")
    for entry, expected in ((whole, [(1, 5), (5, 6.5)]), (window, [(2, 5), (5, 6)])):
        assert [(each.start_s, each.end_s) for each in voices_of([entry], "train", "own")] == expected
    outside = Entry("one", audio, 7, 2, reference, tmp_path / "one.uem")
    with pytest.raises(InputError, match="nobody speaks alone"):
        voices_of([outside], "train", "own")


def test_a_bank_of_ones_own_recordings_loads(tmp_path: Path):
    runpy.run_path(str(MAKE_VOICES))["main"](tmp_path / "voices")
    reference = truth(tmp_path / "bass.rttm", (0, 6, "him"))
    entry = Entry("bass", tmp_path / "voices/bass.ogg", rttm=reference)
    write_bank(tmp_path / "bank", voices_of([entry], "train", "own"))
    bank = VoiceBank.load(tmp_path / "bank", "train", (1.0,))
    assert [(voice.speaker, voice.corpus) for voice in bank.voices] == [("own_bass_him", "own")]
    assert bank.activity.mean() > 0.3
    with pytest.raises(InputError, match="exists already"):
        write_bank(tmp_path / "bank", [])


def test_a_recording_without_a_duration_in_its_header_is_measured(tmp_path: Path):
    reference = truth(tmp_path / "one.rttm", (0, 3, "anna"))
    audio = piped_flac(tmp_path / "one.flac", chirp(2.0, 16_000), 16_000)
    (utterance,) = voices_of([Entry("one", audio, rttm=reference)], "train", "own")
    assert (utterance.start_s, utterance.end_s) == (0, 2)


def test_a_link_to_itself_is_no_voice(tmp_path: Path):
    reference = truth(tmp_path / "one.rttm", (0, 2, "anna"))
    (tmp_path / "loop.wav").symlink_to("loop.wav")
    with pytest.raises(InputError, match="Too many levels of symbolic links"):
        voices_of([Entry("one", tmp_path / "loop.wav", rttm=reference)], "train", "own")
    write_bank(tmp_path / "bank", [Utterance(tmp_path / "loop.wav", "own_anna", "train", "", 0.0, 2.0)])
    assert str(tmp_path / "loop.wav") in (tmp_path / "bank" / "segments.tsv").read_text()
