"""Pieces of words, as recognisers part them, and pieces that are none: combining marks, and punctuation."""

from itertools import pairwise

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


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("在2025年，OpenAI", ["在", "2025", "年，", "OpenAI"]),
        (" GPT 4 の", ["GPT", "4", "の"]),
        ("x在2025年", [*"在2025年"]),  # of another text: left as they are
    ],
)
def test_letters_that_whisperx_parts_amid_chinese_are_joined_as_in_the_text(text, words):
    first, *others = "".join(words)
    aligned = {"word": first, "start": 0.0, "end": 0.5}
    parts = [aligned, *({"word": letter} for letter in others)]  # WhisperX does not align digits
    said = assign_speakers([{"start": 0.0, "end": 2.0, "text": text, "words": parts}], Diarization((), 2))
    assert [word.text for word in said] == words
    assert (said[0].start, said[-1].end) == (0.0, 2.0)
    assert all(before.end <= after.start for before, after in pairwise(said))


@pytest.mark.parametrize(
    "words", [["Hello", " big", " world"], ["Hello ", "big ", "world"], [" Hello ", "big", " world"]]
)
def test_words_that_bring_their_spaces_are_not_joined(words):
    pieces = [{"word": word, "start": at, "end": at + 1} for at, word in enumerate(words)]
    recording = Diarization((Turn(0, 1, "ada"), Turn(1, 3, "bob")), 3)
    said = assign_speakers([{"start": 0.0, "end": 3.0, "text": "Hello big world", "words": pieces}], recording)
    assert [(word.text, word.speaker) for word in said] == list(zip(words, ("ada", "bob", "bob"), strict=True))


def test_a_word_without_text_is_joined_to_none():
    pieces = [{"word": text, "start": 0.0, "end": 1.0} for text in ("5", "")]
    said = assign_speakers([{"start": 0.0, "end": 1.0, "text": "5", "words": pieces}], Diarization((), 1))
    assert [word.text for word in said] == ["5", ""]


@pytest.mark.parametrize("words", [["...", " Hello"], ["\u0301", "Hello"], [" Hello", ""]])
def test_punctuation_with_no_word_before_it_and_no_text_at_all_are_words(words):
    timed = [(at, at + 1, word) for at, word in enumerate(words)]
    assert [word.text for word in assign_speakers(timed, Diarization((), 2))] == words


def test_a_word_of_joined_digits_lasts_from_the_first_to_the_last_that_has_times():
    times = {"在": (0.0, 0.4), "0": (0.5, 0.7), "2": (0.7, 0.9), "年": (1.5, 2.0)}
    pieces = [("在", True), ("2", False), ("0", True), ("2", True), ("5", False), ("年", True)]
    words = [
        {"word": text, **dict(zip(("start", "end"), times[text] if timed else (), strict=False))}
        for text, timed in pieces
    ]
    said = assign_speakers([{"start": 0.0, "end": 2.0, "text": "在2025年", "words": words}], Diarization((), 2))
    assert [word[:3] for word in said] == [(0.0, 0.4, "在"), (0.5, 0.9, "2025"), (1.5, 2.0, "年")]


def test_a_segment_that_whisperx_could_not_align_leaves_the_words_beside_it_apart():
    recording = Diarization((Turn(0, 3, "ada"),), 3)
    words = [{"word": "sold", "start": 0.1, "end": 0.4}, {"word": "in", "start": 0.5, "end": 0.9}]
    segments = [
        {"start": 0.1, "end": 0.9, "text": " sold in", "words": words},
        {"start": 1.0, "end": 2.0, "text": " 2014", "words": []},
    ]
    said = assign_speakers({"segments": segments}, recording)
    assert "ada: sold in 2014\n" in subtitles.format(said)


def test_a_segment_without_words_keeps_its_space_beside_words_that_bring_theirs():
    recording = Diarization((Turn(0, 3, "ada"),), 3)
    words = [{"word": " sold", "start": 0.1, "end": 0.4}, {"word": ".", "start": 0.4, "end": 0.4}]
    segments = [{"text": " sold.", "words": words}, {"start": 1.0, "end": 2.0, "text": " In 2014", "words": []}]
    said = assign_speakers({"segments": segments}, recording)
    assert "ada: sold. In 2014\n" in subtitles.format(said)


def test_pieces_of_a_word_that_whisper_parts_have_one_speaker():
    recording = Diarization((Turn(0, 1.5, "ada"), Turn(1.5, 4, "bob")), 4)
    pieces = [" I", " paid", " 1", ",000", ",000", " and", " 10", "%", " Python", "写", "了", "5"]
    words = [{"word": piece, "start": at / 4, "end": at / 4 + 0.25} for at, piece in enumerate(pieces)]
    whole = [" I", " paid", " 1,000,000", " and", " 10%", " Python", "写", "了", "5"]
    for transcript in ({"segments": [{"words": words}]}, words):
        said = assign_speakers(transcript, recording)
        assert [word.text for word in said] == whole
        assert said[2] == (0.5, 1.25, " 1,000,000", "ada")
        assert (said[4].start, said[4].end) == (1.5, 2.0)


@pytest.mark.parametrize("each", [False, True], ids=["segments", "words"])
def test_a_segment_that_begins_with_a_dash_goes_not_on_in_a_word(each):
    spoken = [[" Is", " it", " you?"], [" Yes."], ["-", " No."], ["so", " am", " I"], ["Oh"], [" 用"], ["我", "们"]]
    segments = [
        {
            "start": 0.0,
            "end": 1.0,
            "text": "".join(words),
            "words": [{"word": word, "start": 0.0, "end": 1.0} for word in words] if each else None,
        }
        for words in spoken
    ]
    said = assign_speakers({"segments": segments}, Diarization((Turn(0, 3, "ada"),), 3))
    assert "ada: Is it you? Yes. - No. so am I Oh 用我们\n" in subtitles.format(said)
    assert len(said) == len([word for words in spoken for word in words] if each else spoken)


def test_a_word_that_whisper_cpp_cuts_between_two_segments_is_whole():
    parts = [" to the sta", "tion", " of", "fice and"]
    segments = [{"start": at / 2, "end": at / 2 + 0.5, "text": text} for at, text in enumerate(parts)]
    said = assign_speakers(segments, Diarization((Turn(0, 3, "ada"),), 3))
    assert "ada: to the station office and\n" in subtitles.format(said)
    assert len(said) == len(parts)  # segments keep their times
    pieces = [[" the", " sta"], ["tion", " and"], ["-", " No"]]
    tokens = [[{"text": piece, "offsets": {"from": 0, "to": 900}} for piece in each] for each in pieces]
    said = assign_speakers({"transcription": [{"tokens": each} for each in tokens]}, Diarization((), 3))
    assert [word.text for word in said] == [" the", " station", " and", " -", " No"]


def test_pieces_that_whisper_cpp_gives_as_segments_are_a_list_of_words():
    pieces = [" Okay", ",", " you", "'re", " right", ".", " (loud music)", *[" 5", ",000"] * 3]
    segments = [{"offsets": {"from": 100 * at, "to": 100 * at + 90}, "text": text} for at, text in enumerate(pieces)]
    said = assign_speakers({"transcription": segments}, Diarization((), 9))
    assert "".join(word.text for word in said) == " Okay, you're right. (loud music) 5,000 5,000 5,000"
    assert len(said) == 7
