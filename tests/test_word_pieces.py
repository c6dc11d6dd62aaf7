"""Pieces that are no words of their own: combining marks, and punctuation that ends what is before it."""

import pytest

from sortformer import Diarization, Turn, assign_speakers
from sortformer.formats import subtitles

RECORDING = Diarization((Turn(0, 1, "ada"), Turn(1, 9, "bob")), 9)


def pieces(texts: list[str]) -> list[dict[str, object]]:
    """Return words of half a second each; the third begins as ``bob`` does."""
    return [{"word": text, "start": at / 2, "end": at / 2 + 0.5} for at, text in enumerate(texts)]


@pytest.mark.parametrize(
    ("texts", "whole"),
    [
        (["ส", "ด", "ี", "ค", "ร", "ั", "บ"], ["ส", "ดี", "ค", "รั", "บ"]),  # Whisper parts Thai by tokens
        (["ท", "น", "้ำ"], ["ท", "น้ำ"]),
        (["ท", "น", "ำ"], ["ท", "นำ"]),
        (["a", "cafe", "\u0301", "noir"], ["a", "cafe\u0301", "noir"]),
        ([" a", " cafe", "\u0301", " noir"], [" a", " cafe\u0301", " noir"]),
    ],
)
def test_a_combining_mark_stays_with_its_letter(texts, whole):
    for transcript in (pieces(texts), {"segments": [{"words": pieces(texts)}]}):
        said = assign_speakers(transcript, RECORDING)
        assert [word.text for word in said] == whole
        assert said[1].end == 1.5  # a vowel has a sound


@pytest.mark.parametrize(
    ("texts", "whole", "read"),
    [
        ([" Tu", " viens", " ?", " Non", " !"], [" Tu", " viens ?", " Non !"], ["Tu viens ?", "Non !"]),
        (["今天", "去", "。", "好", "！"], ["今天", "去。", "好！"], ["今天去。", "好！"]),
        (["مرحبا", "بك", "؟", "نعم"], ["مرحبا", "بك ؟", "نعم"], ["مرحبا بك ؟", "نعم"]),
        ([" I", " go", "?!", " Well"], [" I", " go?!", " Well"], ["I go?!", "Well"]),
        ([" the", " 10", " %", " then"], [" the", " 10", " %", " then"], ["the 10", "% then"]),
        ([" He", " said", " ¿", "Qué", "?"], [" He", " said", " ¿Qué?"], ["He said", "¿Qué?"]),
        ([" ♪", " la", " ♪", " la"], [" ♪", " la", " ♪", " la"], ["♪ la", "♪ la"]),
        ([" 1", " 2", " -", " 3"], [" 1", " 2", " -", " 3"], ["1 2", "- 3"]),
    ],
)
def test_punctuation_has_the_speaker_of_the_word_before_it(texts, whole, read):
    said = assign_speakers(pieces(texts), RECORDING)
    assert [word.text for word in said] == whole
    assert [line.partition(": ")[2] for line in subtitles.format(said).split("\n")[2::4]] == read


def test_punctuation_makes_no_word_longer():
    tokens = [(" five", 500, 900), (".", 900, 4000), (" No", 4000, 4300)]  # whisper.cpp
    timed = [{"text": text, "offsets": {"from": start, "to": end}} for text, start, end in tokens]
    words = [{"word": text, "start": start / 1000, "end": end / 1000} for text, start, end in tokens]
    for transcript in ({"transcription": [{"tokens": timed}]}, {"segments": [{"words": words}]}, words):
        said = assign_speakers(transcript, RECORDING)
        assert said == [(0.5, 0.9, " five.", "ada"), (4.0, 4.3, " No", "bob")]
    untimed = [{"word": "5", "start": 0.5}, {"word": "."}, {"word": "No", "start": 2.0, "end": 2.5}]
    assert [word[:2] for word in assign_speakers(untimed, RECORDING)] == [(0.5, 1.5), (2.0, 2.5)]


def test_punctuation_that_is_a_whole_subtitle_stays_one():
    said = assign_speakers([(0.0, 0.9, "Come to me now"), (1.0, 2.0, "?!"), (2.0, 3.0, "He ran away")], RECORDING)
    assert [word.text for word in said] == ["Come to me now", "?!", "He ran away"]


@pytest.mark.parametrize(("letter", "after"), [("ด", "ี"), ("去", "、")])
def test_a_long_subtitle_is_not_cut_before_a_mark_or_punctuation(letter, after):
    texts = ["บ", *50 * ["บ", letter, after]]  # of 84 letters, the last is one with something after it
    timed = [{"word": text, "start": 0.05 * at, "end": 0.05 * at + 0.05} for at, text in enumerate(texts)]
    lines = subtitles.format(assign_speakers(timed, Diarization((), 20))).split("\n")[2::4]
    assert len(lines) == 2
    assert not lines[1].startswith(after)
