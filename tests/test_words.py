"""Words and their speakers: the speaker with most common time, and the nearest one in silence."""

import math
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortformer import Diarization, InputError, Turn, Word, assign_speakers
from sortformer.formats import ctm, json, subtitles
from tests.strategies import diarizations

TICKS = 100  # a second, the grid of the strategy
times = st.tuples(st.integers(0, 25 * TICKS), st.integers(0, 2 * TICKS)).map(
    lambda at: (at[0] / TICKS, (at[0] + at[1]) / TICKS, "word")
)


def ticks(start: float, end: float) -> set[int]:
    return set(range(round(start * TICKS), round(end * TICKS)))


@pytest.mark.filterwarnings("ignore::sortformer.SortformerWarning")
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


def test_a_transcript_without_words_is_told_where_somebody_speaks():
    with pytest.warns(UserWarning, match="no words were given for talk, which has speech"):
        assert assign_speakers([], Diarization((Turn(0, 1, "ada"),), 2, "talk")) == []
    assert assign_speakers({"segments": []}, Diarization((), 2, "talk")) == []


def test_a_recording_without_speech_may_have_a_transcript_without_words(recwarn):
    assert assign_speakers([], Diarization((), 10.0, "talk")) == []
    assert not recwarn


def test_words_of_another_recording_are_noticed():
    recording = Diarization((Turn(0, 2, "ada"),), 2)
    with pytest.warns(UserWarning, match="2 of 3 words begin after the end .*: are they of this .* seconds"):
        assign_speakers([(0.0, 0.4, "Hello"), (4.0, 4.9, "there"), (12.0, 12.6, "Ada")], recording)


@pytest.mark.parametrize("unit", [1e3, 1e7], ids=["AssemblyAI's", "Azure's"])
def test_times_that_are_no_seconds_are_refused(unit):
    """However long the recording is: that of turns in RTTM ends with the last word."""
    words = [(0.0, 0.1 * unit, "Hello"), (0.4 * unit, 0.9 * unit, "there"), (1.2 * unit, 1.6 * unit, "再见")]
    with pytest.raises(InputError, match=f"half of the words last {0.4 * unit:.0f} s or more: give .* in seconds"):
        assign_speakers(words, Diarization((Turn(0, 2, "ada"),), 2 * unit))


@pytest.mark.parametrize(("count", "length_s"), [(9, 30.0), (1, 400.02), (2, 180.0)])
def test_words_that_are_heard_in_silence_are_no_reason_to_refuse_times(count, length_s):
    hallucinated = [(length_s * at, length_s * at + length_s, " you") for at in range(count)]
    assert len(assign_speakers(hallucinated, Diarization((Turn(0, 2, "ada"),), count * length_s))) == count


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


def test_the_words_come_first():
    with pytest.raises(InputError, match="first, then their Diarization, got list"):
        assign_speakers(Diarization((), 1), [(0.0, 1.0, "x")])  # pyright: ignore[reportArgumentType]


CALL = Diarization((Turn(0, 6, "channel_1"), Turn(2, 5, "channel_2")), 8, "call")
OVERLAP = "call {0} 2.0 0.5 so\ncall {0} 2.6 0.4 then\ncall {1} 2.1 0.5 well\ncall {1} 6.5 0.3 no\n"


@pytest.mark.parametrize("channels", ["12", "AB"])
def test_words_of_channels_are_of_their_speakers(channels: str):
    (words,) = ctm.parse(OVERLAP.format(*channels)).values()
    found = [(word.text, word.speaker) for word in assign_speakers(words, CALL)]
    assert found == [("so", "channel_1"), ("then", "channel_1"), ("well", "channel_2"), ("no", "channel_2")]
    mapped = [{**word._asdict(), "channel": 1 + channels.index(word.channel)} for word in words]
    assert assign_speakers(mapped, CALL) == assign_speakers(words, CALL)
    assert assign_speakers(tuple(words), CALL) == assign_speakers(words, CALL)
    assert [word.text for word in assign_speakers(words[::-1], CALL)] == ["then", "so", "no", "well"]
    inside = assign_speakers(words, CALL, within=[(2.3, 7)])
    assert [word.text for word in inside] == ["then", "well", "no"]


def test_words_of_channels_with_a_number_and_a_letter_are_all_there():
    words = [{"start": 0.0, "end": 1.0, "word": channel, "channel": channel} for channel in ("A", "2", "1")]
    assert [word[2:] for word in assign_speakers(words, CALL)] == [
        ("A", "channel_1"),
        ("1", "channel_1"),
        ("2", "channel_2"),
    ]


def test_words_of_many_channels_are_in_the_order_of_these():
    recording = Diarization(tuple(Turn(0, 1, f"channel_{number}") for number in range(1, 12)), 1)
    words = [{"start": 0.0, "end": 1.0, "word": str(number), "channel": number} for number in (10, 2, 1)]
    assert [word.text for word in assign_speakers(words, recording)] == ["1", "2", "10"]


@pytest.mark.parametrize(
    ("channels", "result"),
    [
        (("1", "1"), CALL),
        (("0", "0"), CALL),
        (("1", "2"), CALL.relabel({"channel_2": "Ada"})),
        (("1", "2"), Diarization((), 8, "call")),
    ],
)
def test_where_words_or_speakers_have_no_channels_times_decide(
    channels: tuple[str, str], result: Diarization, recwarn: pytest.WarningsRecorder
):
    (words,) = ctm.parse(OVERLAP.format(*channels)).values()
    found = [(word.text, word.speaker) for word in assign_speakers(words, result)]
    first = result.speakers[0] if result.speakers else None
    assert found == [(text, first) for text in ("so", "well", "then", "no")]
    assert not recwarn.list


@pytest.mark.parametrize(("channels", "other"), [(("left", "right"), "left"), (("1", "right"), "right"), ("01", "0")])
def test_channels_that_are_numbered_otherwise_are_noticed(channels: tuple[str, str], other: str):
    (words,) = ctm.parse(OVERLAP.format(*channels)).values()
    with pytest.warns(
        UserWarning, match=f"words for call are of channel '{other}', which is not 1, 2 or A, B"
    ) as warned:
        assert {word.speaker for word in assign_speakers(words, CALL)} == {"channel_1"}
    assert warned[0].filename == __file__


def test_words_of_channels_keep_their_speakers_when_our_json_is_read_again():
    (words,) = ctm.parse(OVERLAP.format(*"12")).values()
    said = assign_speakers(words, CALL)
    for result in (CALL, replace(CALL, turns=CALL.turns[:1]), replace(CALL, turns=())):
        written = assign_speakers(words, result)
        assert assign_speakers(json.document(result, written), result) == written
    named = CALL.relabel({"channel_2": "Ada"})
    corrected = [word._replace(speaker="Ada") if word.speaker == "channel_2" else word for word in said]
    document = json.document(named, corrected)
    assert assign_speakers(document, named) == corrected
    assert assign_speakers(document, named, within=[(2.3, 7)]) == corrected[1:]
    assert {word.speaker for word in assign_speakers(document, CALL)} == {"channel_1"}  # who knows no Ada
    foreign = {**document, "schema_version": "2.9"}
    assert {word.speaker for word in assign_speakers(foreign, named)} == {"channel_1"}
    for number in (1, ""):  # is no name
        numbered = {**document, "words": [{**word, "speaker": number} for word in document["words"]]}
        assert {word.speaker for word in assign_speakers(numbered, named)} == {"channel_1"}


def test_words_of_our_json_keep_their_speakers_where_rttm_has_no_white_space():
    (words,) = ctm.parse(OVERLAP.format(*"12")).values()
    said = assign_speakers(words, CALL)

    def called(names: dict[Any, str]) -> tuple[Diarization, list[Word]]:
        return CALL.relabel(names), [word._replace(speaker=names[word.speaker]) for word in said]

    result, expected = called({"channel_1": "Ada_Lee", "channel_2": "Bob_B"})
    document = json.document(*called({"channel_1": "Ada Lee", "channel_2": "Bob B"}))
    assert assign_speakers(document, result) == expected


def test_words_of_our_json_follow_corrected_turns_and_other_labels():
    """Labels of another run may be those of other people."""
    before = Diarization((Turn(0, 2, "speaker_0"), Turn(2, 4, "speaker_1")), 4)
    document = json.document(before, assign_speakers([(0.5, 1, "so"), (2.5, 3, "yes")], before))
    for turns in ((Turn(0, 4, "speaker_1"),), (Turn(0, 2, "speaker_1"), Turn(2, 4, "speaker_0"))):
        result = Diarization(turns, 4)
        assert [word.speaker for word in assign_speakers(document, result)] == [turns[0].speaker, turns[-1].speaker]


def test_words_outside_of_what_is_asked_for_are_left_out_and_the_others_keep_their_speakers():
    recording = Diarization((Turn(0, 4, "ann"), Turn(4, 6, "bob"), Turn(8, 9, "ann")), 9.0)
    said = [(1, 2, "one"), (3.6, 3.9, "two"), (4.5, 5, "three"), (7.1, 7.4, "four"), (8, 8.5, "five"), (20, 21, "six")]
    found = assign_speakers(said, recording, within=[(3.8, 7.3), (3.7, 4.6), (8.9, 9.5)])
    assert [(word.text, word.speaker) for word in found] == [("two", "ann"), ("three", "bob"), ("four", "ann")]
    with pytest.warns(UserWarning, match="none of the 6 words lies in the selected regions of audio"):
        assert assign_speakers(said, recording, within=[(6.5, 7)]) == []
    with pytest.warns(UserWarning, match="no words were given for audio, which has speech") as caught:
        assert assign_speakers([], recording, within=[(6.5, 7)]) == []
    assert len(caught) == 1


@pytest.mark.parametrize("tenth", range(1, 40))
def test_of_adjoining_windows_one_has_the_word_whose_middle_is_their_border(tenth):
    border, recording = tenth / 10, Diarization((Turn(0, 4, "ada"),), 4)
    near = (math.nextafter(border, 0), border, math.nextafter(border, 4))
    for middle, noisy in product(near, near):
        said = [(middle, middle, "yes"), (0.0, 0.0, "so"), (4.0, 4.0, "bye")]
        windows = [[(0.0, noisy)], [(noisy, 4.0)]]
        found = [[word.text for word in assign_speakers(said, recording, within=window)] for window in windows]
        assert found == [["yes", "so"], ["bye"]]


@pytest.mark.parametrize("name", ["Ada", "the_chair", "the chair", "speaker_12", "channel_1"])
def test_the_names_in_our_subtitles_are_not_said_when_they_are_read_again(name):
    recording = Diarization((Turn(0, 1, name),), 3)
    written = subtitles.format(assign_speakers([(0, 0.5, "at 10: 30"), (0.6, 1, "Bob: yes")], recording))
    assert subtitles.format(assign_speakers(subtitles.parse(written), recording)) == written


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("the chair: yes", "yes"),  # as JSON knows the name, and RTTM does not
        ("speaker_3: yes", "yes"),
        ("[SPEAKER_00]: yes", "yes"),  # WhisperX
        ("Bob: yes", "Bob: yes"),
        (" the_chair: yes", " the_chair: yes"),  # said, as Whisper writes it
        ("speaker_3 says: yes", "speaker_3 says: yes"),
        ("10: 30", "10: 30"),
        ("the chair:", "the chair:"),
    ],
)
def test_only_names_of_speakers_are_taken_from_a_subtitle(text, said):
    recording = Diarization((Turn(0, 1, "the_chair"),), 3)
    assert assign_speakers([(0, 1, text)], recording) == [(0, 1, said, "the_chair")]
