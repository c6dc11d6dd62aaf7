"""Words and their speakers: the speaker with most common time, and the nearest one in silence."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortformer import Diarization, InputError, Turn, assign_speakers
from sortformer.formats import subtitles
from tests.strategies import diarizations

TICKS = 100  # a second, the grid of the strategy
times = st.tuples(st.integers(0, 25 * TICKS), st.integers(0, 2 * TICKS)).map(
    lambda at: (at[0] / TICKS, (at[0] + at[1]) / TICKS, "word")
)


def ticks(start: float, end: float) -> set[int]:
    return set(range(round(start * TICKS), round(end * TICKS)))


@pytest.mark.filterwarnings("ignore:words begin after the end")
@given(diarizations(), st.lists(times, max_size=5))
def test_a_word_is_of_who_shares_most_time_with_it_else_of_the_nearest(recording, words):
    said = assign_speakers(words, recording)
    assert [(word.start, word.end, word.text) for word in said] == words
    for word in said:
        if not recording.turns:
            assert word.speaker is None
            continue
        shared = {
            name: len(
                ticks(word.start, word.end)
                & set().union(*(ticks(turn.start, turn.end) for turn in recording if turn.speaker == name))
            )
            for name in recording.speakers
        }
        if any(shared.values()):
            assert word.speaker == max(recording.speakers, key=lambda name: shared[name])  # of equals the first
        elif word.start < word.end:
            away = {
                name: min(
                    round(max(turn.start - word.end, word.start - turn.end), 6)
                    for turn in recording
                    if turn.speaker == name
                )
                for name in recording.speakers
            }
            assert word.speaker == min(recording.speakers, key=lambda name: away[name])


def test_time_in_which_two_turns_of_one_speaker_overlap_counts_once():
    recording = Diarization((Turn(0, 2, "ada"), Turn(1, 2, "ada"), Turn(2.5, 4, "bob")), 4)
    assert assign_speakers([(1, 4, "yes")], recording)[0].speaker == "bob"


def test_of_equal_times_that_binary_fractions_tell_apart_it_is_who_arrives_first():
    recording = Diarization((Turn(0, 0.3, "zoe"), Turn(0.3, 0.4, "ada"), Turn(0.5, 0.7, "ada")), 1)
    assert assign_speakers([(0, 0.7, "yes")], recording)[0].speaker == "zoe"


@given(diarizations())
def test_the_words_of_single_turns_are_their_speakers(recording):
    alone = Diarization(tuple(turn for turn in recording.turns if turn.speaker == "a"), recording.duration)
    assert all(word.speaker == "a" for word in assign_speakers([(t.start, t.end, "x") for t in alone], alone))


@pytest.mark.parametrize("tenth", range(1, 30))
def test_a_word_whose_middle_is_the_border_of_two_turns_is_of_who_arrives_first(tenth):
    border = tenth / 10
    recording = Diarization((Turn(0, border, "zoe"), Turn(border, 4, "ada")), 4)
    assert assign_speakers([(border - 0.1, border + 0.1, "yes")], recording)[0].speaker == "zoe"


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


def test_a_transcript_without_words_is_told_where_somebody_speaks():
    with pytest.warns(UserWarning, match="no words were given for talk, which has speech"):
        assert assign_speakers([], Diarization((Turn(0, 1, "ada"),), 2, "talk")) == []
    assert assign_speakers({"segments": []}, Diarization((), 2, "talk")) == []


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


def test_times_that_are_no_seconds_are_noticed():
    recording = Diarization((Turn(0, 2, "ada"),), 2)
    with pytest.warns(UserWarning, match="2 of 3 words begin after the end .*: are they of this .* seconds"):
        assign_speakers([(0.0, 400.0, "Hello"), (400.0, 900.0, "there"), (1200.0, 1600.0, "Ada")], recording)


def test_a_word_may_begin_a_second_after_the_end(recwarn):
    assert assign_speakers([(3.0, 3.2, "Bye")], Diarization((Turn(0, 2, "ada"),), 2))[0].speaker == "ada"
    assert not recwarn.list


def test_one_word_in_which_several_speak_is_no_segment(recwarn):
    recording = Diarization((Turn(0, 5, "ada"), Turn(5, 9, "bob")), 9)
    assert assign_speakers([(0.0, 9.0, " Hm ")], recording)[0].speaker == "ada"
    assert not recwarn.list


@pytest.mark.parametrize("both", ["Bye. Bye Ada", "再见。再见"])
def test_a_segment_in_which_several_speak_is_noticed(both):
    recording = Diarization((Turn(0, 5, "ada"), Turn(5, 9, "bob")), 9)
    segments = [{"start": 0.0, "end": 4.0, "text": "Hello there"}, {"start": 4.0, "end": 9.0, "text": both}]
    assert [word.speaker for word in assign_speakers(segments[:1], recording)] == ["ada"]
    with pytest.warns(UserWarning, match="several people speak in segments without words, 1 of 2: each"):
        assert [word.speaker for word in assign_speakers(segments, recording)] == ["ada", "bob"]


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


def test_the_words_come_first():
    with pytest.raises(InputError, match="first, then their Diarization, got list"):
        assign_speakers(Diarization((), 1), [(0.0, 1.0, "x")])  # pyright: ignore[reportArgumentType]


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


def test_words_outside_of_what_is_asked_for_are_left_out_and_the_others_keep_their_speakers():
    recording = Diarization((Turn(0, 4, "ann"), Turn(4, 6, "bob"), Turn(8, 9, "ann")), 9.0)
    said = [(1, 2, "one"), (3.6, 3.9, "two"), (4.5, 5, "three"), (7.1, 7.4, "four"), (8, 8.5, "five"), (20, 21, "six")]
    found = assign_speakers(said, recording, within=[(3.8, 7.3), (3.7, 4.6), (8.9, 9.5)])
    assert [(word.text, word.speaker) for word in found] == [("two", "ann"), ("three", "bob"), ("four", "ann")]
    with pytest.warns(UserWarning, match="none of the 6 words lies in the selected regions of audio"):
        assert assign_speakers(said, recording, within=[(6.5, 7)]) == []
    assert assign_speakers([], recording, within=[(6.5, 7)]) == []
