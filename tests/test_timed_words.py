"""Words as recognisers return them (Whisper, WhisperX, whisper.cpp, transformers, OpenAI), and their times."""

from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest

from sortformer import Diarization, InputError, Turn, assign_speakers
from sortformer.formats import subtitles


def test_segments_of_whisperx_are_taken_apart():
    recording = Diarization((Turn(0, 1, "ada"), Turn(1, 3, "bob")), 3)
    words = [{"word": "Hello", "start": 0.1, "end": 0.6, "score": 0.9}, {"word": "2"}]
    said = assign_speakers([{"start": 0.1, "end": 2.9, "text": "Hello 2", "words": words}], recording)
    assert said == [(0.1, 0.6, "Hello", "ada"), (0.6, 2.9, "2", "bob")]


LONG = {"start": 0.0, "end": 3.0, "text": "Hello 2"}
WORDS = [{"word": "Hello", "start": 0.1, "end": 0.6}, {"word": "2", "start": 1.5, "end": 2.0}]


class Spoken(NamedTuple):
    """A word in the format of faster-whisper."""

    start: float
    end: float | None
    word: str
    probability: float = 0.9


@pytest.mark.parametrize(
    "transcript",
    [
        [{"id": 0, "seek": 0, "start": 0.1, "end": 0.6, "text": "Hello"}, {"start": 1.5, "end": 2.0, "text": "2"}],
        [{"start": 0.1, "end": 0.6, "word": "Hello"}, {"start": 1.5, "end": 2.0, "word": "2"}],
        [Spoken(0.1, 0.6, "Hello"), Spoken(1.5, 2.0, "2")],
        [SimpleNamespace(start=0.1, end=0.6, text="Hello", words=None), SimpleNamespace(start=1.5, end=2.0, text="2")],
        [SimpleNamespace(start=0, end=3, text="", words=[Spoken(0.1, 0.6, "Hello"), Spoken(1.5, 2.0, "2")])],
        {"text": "Hello 2", "segments": [(0.1, 0.6, "Hello"), (1.5, 2.0, "2")], "language": "en"},
        {
            "text": "Hello 2",
            "chunks": [{"text": t, "timestamp": at} for t, at in (("Hello", (0.1, 0.6)), ("2", (1.5, 2)))],
        },
        {
            "systeminfo": "AVX = 1",
            "transcription": [
                {"offsets": {"from": 100, "to": 600}, "text": "Hello"},
                {"offsets": {"from": 1500, "to": 2000}, "text": "2"},
            ],
        },
        {
            "transcription": [
                {
                    "offsets": {"from": 0, "to": 3000},
                    "text": "Hello 2",
                    "tokens": [
                        {"text": "[_BEG_]", "offsets": {"from": 0, "to": 0}},
                        {"text": "Hel", "offsets": {"from": 100, "to": 300}},
                        {"text": "lo", "offsets": {"from": 300, "to": 600}},
                        {"text": " 2", "offsets": {"from": 1500, "to": 2000}},
                        {"text": "[_TT_100]", "offsets": {"from": 2000, "to": 2000}},
                    ],
                }
            ],
        },
        {"text": "Hello 2", "segments": [LONG], "words": WORDS},
        SimpleNamespace(text="Hello 2", segments=None, words=[SimpleNamespace(**word) for word in WORDS]),
        {"segments": [LONG | {"words": WORDS}], "words": [LONG]},
        {"segments": [LONG], "word_segments": WORDS},
        {"word_segments": WORDS},
        {"segments": WORDS, "words": None},
        {"segments": [], "words": [], "word_segments": WORDS},
    ],
    ids=[
        "segments of Whisper",
        "words",
        "words of faster-whisper",
        "its segments",
        "its segments with words",
        "all that Whisper gives",
        "all that transformers gives",
        "all that whisper.cpp gives",
        "its tokens",
        "segments and words of OpenAI",
        "its words, as an object",
        "segments with words go first",
        "segments without words and all words of WhisperX",
        "all words of WhisperX",
        "no words but those of the segments",
        "all words beside lists without any",
    ],
)
def test_transcripts_of_others_are_taken_too(transcript):
    recording = Diarization((Turn(0, 1, "ada"), Turn(1, 3, "bob")), 3)
    said = [(start, end, text.strip(), who) for start, end, text, who in assign_speakers(transcript, recording)]
    assert said == [(0.1, 0.6, "Hello", "ada"), (1.5, 2.0, "2", "bob")]


@pytest.mark.parametrize(
    ("text", "words", "whole"),
    [
        (
            'Well, twenty-five. "$5,000," he said - yes...',
            ["Well", "twenty", "five", "5", "000", "he", "said", "yes"],
            ["Well,", " twenty-five.", ' "$5,000,"', " he", " said", " - yes..."],
        ),
        ("\u201cHello.\u201d", ["Hello"], ["\u201cHello.\u201d"]),
        ("今天，我们去。", ["今天", "我们", "去"], ["今天，", "我们", "去。"]),
        ("Hello, Ada.", ["Hello", "ada"], ["Hello", "ada"]),  # of another text: left as they are
        ("Hello, dear Ada.", ["Hello", "Ada"], ["Hello", "Ada"]),
        ("Hello, Ada. Yes", ["Hello", "Ada"], ["Hello", "Ada"]),
        ("Hello, Ada.", [" Hello,", " Ada"], [" Hello,", " Ada"]),
        ("Hello 2", ["Hello", 2], ["Hello", "2"]),
        (None, ["Hello", "Ada"], ["Hello", "Ada"]),
    ],
)
def test_words_of_openai_have_the_punctuation_of_their_text(text, words, whole):
    timed = [{"word": word, "start": float(at), "end": at + 1.0} for at, word in enumerate(words)]
    segments = [{"start": 0.0, "end": 9.0, "text": "not read"}]
    for transcript in ({"text": text, "words": timed}, {"text": text, "segments": segments, "words": timed}):
        said = assign_speakers(transcript, Diarization((), 9))
        assert [word.text for word in said] == whole
        assert (said[0].start, said[-1].end) == (0.0, len(words))


@pytest.mark.parametrize("tokens", [np.array([50364, 2425]), [50364, 2425], [{"text": 5, "offsets": {}}], [{"id": 5}]])
def test_tokens_that_have_no_text_or_times_leave_the_segment(tokens):
    recording = Diarization((Turn(0, 1, "ada"),), 1)
    segment = {"start": 0.0, "end": 0.5, "text": "hi", "tokens": tokens}
    assert assign_speakers([segment], recording) == [(0.0, 0.5, "hi", "ada")]


def test_what_a_recogniser_puts_in_brackets_is_a_word():
    tokens = [("[_BEG_]", 0, 0), ("[", 100, 200), ("laughs", 200, 500), ("]", 500, 600)]
    segment = {"tokens": [{"text": text, "offsets": {"from": start, "to": end}} for text, start, end in tokens]}
    said = assign_speakers({"transcription": [segment]}, Diarization((Turn(0, 1, "ada"),), 1))
    assert said == [(0.1, 0.5, "[laughs]", "ada")]


def test_tokens_of_a_script_without_spaces_are_words():
    said = ["我们", "用", "Py", "thon", "。", "20", "25", "年"]
    tokens = [{"text": text, "offsets": {"from": 500 * at, "to": 500 * at + 500}} for at, text in enumerate(said)]
    recording = Diarization((Turn(0, 2.5, "ada"), Turn(2.5, 4, "bob")), 4)
    found = assign_speakers([{"text": "".join(said), "tokens": tokens}], recording)
    spoken = [("我们", "ada"), ("用", "ada"), ("Python。", "ada"), ("2025", "bob"), ("年", "bob")]
    assert [(word.text, word.speaker) for word in found] == spoken


def test_words_without_times_are_spoken_between_their_neighbours():
    recording = Diarization((Turn(0, 2, "ada"), Turn(2, 20, "bob")), 20)
    texts = ("12", "of", "2", "0", "them", "in", "7")
    times = {"of": (0.5, 0.7), "them": (1.5, 1.8), "in": (2.2, 2.4)}
    words = [{"word": text, **dict(zip(("start", "end"), times.get(text, ()), strict=False))} for text in texts]
    inside = [(0.5, 0.7), (0.7, 1.1), (1.1, 1.5), (1.5, 1.8), (2.2, 2.4)]
    said = assign_speakers({"segments": [{"start": 0.1, "end": 19.0, "text": "", "words": words}]}, recording)
    assert [word[:2] for word in said] == [(0.1, 0.5), *inside, (2.4, 19.0)]
    assert [word.speaker for word in said] == ["ada"] * 5 + ["bob"] * 2
    for transcript in (words, {"word_segments": words}):
        said = assign_speakers(transcript, recording)
        assert [word[:2] for word in said] == [(0.5, 0.5), *inside, (2.4, 2.4)]
        assert [word.speaker for word in said] == ["ada"] * 5 + ["bob"] * 2


def test_words_without_times_have_equal_parts_of_a_segment():
    recording = Diarization((Turn(0, 13, "ada"), Turn(13, 20, "bob")), 20)
    segment = {"start": 10.0, "end": 19.0, "words": [{"word": text} for text in ("one", "two", "three")]}
    said = assign_speakers([segment], recording)
    assert said == [(10.0, 11.0, "one", "ada"), (13.0, 16.0, "two", "bob"), (16.0, 19.0, "three", "bob")]


def test_a_word_without_an_end_lasts_a_second_unless_the_next_one_or_the_end_comes_first():
    recording = Diarization((Turn(0, 2, "ada"), Turn(2, 60, "bob")), 60)
    times = {"Hello": (0.0, None), "there": (0.5, None), "Bye": (1.2, None)}
    chunks = [{"text": text, "timestamp": at} for text, at in times.items()]
    said = assign_speakers({"text": "Hello there Bye", "chunks": chunks}, recording)
    assert said == [(0.0, 0.5, "Hello", "ada"), (0.5, 1.2, "there", "ada"), (1.2, 2.2, "Bye", "ada")]
    for long in ("and three words more than that", "然后还有三个词"):
        words = [{"text": long, "timestamp": (57.0, None)}]
        assert [word[:2] for word in assign_speakers(words, recording)] == [(57.0, 60.0)]


def test_a_time_before_the_beginning_is_the_beginning():
    said = assign_speakers([(-0.01, 1.0, "yes")], Diarization((Turn(0, 2, "a"),), 2))
    assert said[0][:3] == (0.0, 1.0, "yes")
    assert "00:00:00,000 --> 00:00:01,000" in subtitles.format(said)
    said = assign_speakers([(-0.9, -0.2, "oh")], Diarization((Turn(0, 2, "a"),), 2))
    assert said == [(0.0, 0.0, "oh", "a")]
    assert assign_speakers([(-1.5, 0.5, "oh")], Diarization((Turn(0, 2, "a"),), 2)) == [(0.0, 0.5, "oh", "a")]


def test_a_time_that_is_looked_for_makes_no_word_run_backwards():
    recording = Diarization((Turn(0, 9, "ada"),), 9)
    late, early = ({"start": start, "text": "x", "words": [{"word": "x"}]} for start in (5.0, 1.0))
    assert [word[:2] for word in assign_speakers([late, early], recording)] == [(5.0, 5.0), (1.0, 2.0)]
    for between in (1, 2):
        within = between * [{"word": "2"}]
        words = [{"word": "x", "start": 5.0, "end": 6.0}, *within, {"word": "y", "start": 4.0, "end": 4.5}]
        found = [word[:2] for word in assign_speakers(words, recording)]
        assert found == [(5.0, 6.0), *between * [(4.0, 4.0)], (4.0, 4.5)]
    after_the_end = {"text": "x", "timestamp": (12.0, None)}
    with pytest.warns(UserWarning, match=r"1 of 1 words begin after the end of audio \(9 s\)"):
        assert [word[:2] for word in assign_speakers([after_the_end], recording)] == [(12.0, 12.0)]


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        ((2.0, 1.0, "x"), "needs start <= end"),
        ((-9.0, -8.0, "x"), "'x' ends at -8 s, before the recording begins"),
        ((0.0, float("nan"), "x"), "needs start <= end"),
        ((0.0, 1e308, "x"), "needs start <= end in seconds, got 0.0 to 1e"),  # in milliseconds it is infinite
        ((0.0, "x"), "a word must be"),
        ({"text": "x"}, "a word must be"),
        ({"text": "x", "end": 1.0}, "a word must be"),
        ({"start": 0.0, "end": 1.0}, "a word must be"),
        ("word", "a word must be"),
        ({"text": "x", "timestamp": (None, 1.0)}, "a word must be"),
        ({"text": "x", "start": 0, "end": 10**400}, "a word must be"),
        ({"text": "x", "offsets": {"from": 0, "to": 10**400}}, "a word must be"),
    ],
)
def test_what_is_no_word_is_refused(item, reason):
    with pytest.raises(InputError, match=reason):
        assign_speakers([item], Diarization((), 1))


def test_a_word_that_runs_backwards_costs_no_other_one():
    recording = Diarization((Turn(0, 5, "ada"), Turn(5, 10, "bob")), 10)
    words = [(index / 2, index / 2 + 0.4, f"w{index}") for index in range(20)]
    words[13] = (6.5, 4.0, "w13")
    with pytest.warns(UserWarning, match="1 of 20 words for audio end before they begin"):
        found = assign_speakers(words, recording)
    assert [word.speaker for word in found] == 10 * ["ada"] + 10 * ["bob"]
    assert found[13] == (6.5, 6.5, "w13", "bob")
    with pytest.warns(UserWarning, match="1 of 10 words for audio end before they begin"):
        assert len(assign_speakers(words[10:], recording)) == 10
    words[1:3] = [(index, 0.4, "as if they were durations") for index in (1.0, 2.0)]
    with pytest.raises(
        InputError, match=r"'as if they were durations' needs start <= end in seconds, got 1\.0 to 0\.4"
    ):
        assign_speakers(words, recording)


@pytest.mark.parametrize("span", [(0.0, np.nan), (0.0, np.inf), (1e300, 1e300), (-1e300, 1.0)])
def test_a_time_that_is_none_is_refused_even_among_many_that_are(span):
    words = [(index, index + 0.4, "yes") for index in range(20)]
    with pytest.raises(InputError, match="'no' needs start <= end in seconds"):
        assign_speakers([*words, (*span, "no")], Diarization((), 20))


def test_long_segments_in_whole_seconds_are_in_seconds_late_in_a_recording_too():
    segments = [(start, start + 25, "as many words as are said in such a time") for start in (3600, 3625, 3650)]
    said = assign_speakers(segments, Diarization((Turn(3600, 3700, "ada"),), 3700))
    assert [word[:2] for word in said] == [(3600, 3625), (3625, 3650), (3650, 3675)]


def test_half_a_character_costs_no_other_word():
    recording = Diarization((Turn(0, 1, "ada"),), 1)
    assert assign_speakers([(0.0, 0.5, "hi \ud83d")], recording) == [(0.0, 0.5, "hi ?", "ada")]


@pytest.mark.parametrize("transcript", [5, None, {"segments": 5}, {"text": "x", "chunks": 5}, {"words": 5}])
def test_what_is_no_transcript_is_refused(transcript):
    with pytest.raises(
        InputError, match="a transcript must be a list of words or segments, or a mapping with one, got "
    ):
        assign_speakers(transcript, Diarization((), 1))


@pytest.mark.parametrize("path", ["talk.json", b"talk", Path("talk.json"), {"segments": "talk.json"}])
def test_a_path_is_no_transcript(path):
    with pytest.raises(InputError, match=r"a list of words .*: read a file with sortformer\.formats\.transcript\.read"):
        assign_speakers(path, Diarization((), 1))


@pytest.mark.parametrize(
    ("transcript", "has"),
    [
        ({"text": "Hello 2", "language": "en"}, "text, language"),
        ({"text": "Hello 2", "segments": None, "words": None}, "text:"),
        ({}, "nothing"),
    ],
)
def test_a_transcript_without_times_is_refused(transcript, has):
    with pytest.raises(InputError, match=f"needs segments, chunks or words with times, but this one has {has}"):
        assign_speakers(transcript, Diarization((), 1))


@pytest.mark.parametrize("words", [[{"word": "12"}], [{"text": "x", "start": None, "end": None}, {"word": "y"}]])
def test_words_of_which_none_has_a_time_are_refused(words):
    with pytest.raises(InputError, match=r"a word must be .* none here has a time, not even"):
        assign_speakers(words, Diarization((Turn(0, 1, "ada"),), 1))
    assert assign_speakers([], Diarization((), 1)) == []
