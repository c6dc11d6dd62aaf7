"""Subtitles: every word once, with one speaker, at its time; and the requirements of players."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortformer.errors import InputError
from sortformer.formats import subtitles
from sortformer.words import Word

steps = st.tuples(
    st.integers(0, 3000),
    st.integers(0, 2000),
    st.sampled_from(["yes", "no<b>", "R&D"]),
    st.sampled_from(["Ada", "Bob", None]),
)


@st.composite
def said(draw: st.DrawFn) -> list[Word]:
    """Return consecutive words, with times in milliseconds."""
    now, words = 0, []
    for pause, length, text, speaker in draw(st.lists(steps, max_size=12)):
        start = now + pause
        now = start + length
        words.append(Word(start / 1000, now / 1000, text, speaker))
    return words


def seconds(clock: str) -> float:
    hours, minutes, rest = clock.replace(",", ".").split(":")
    return 3600 * int(hours) + 60 * int(minutes) + float(rest)


@given(said())
def test_every_word_is_in_a_subtitle_of_its_speaker_and_time(words):
    left = list(words)
    for number, cue in enumerate(filter(None, subtitles.format(words).split("\n\n")), start=1):
        head, times, text = cue.strip().split("\n")
        assert int(head) == number
        speaker, _, spoken = text.rpartition(": ")
        own = [left.pop(0) for _ in spoken.split()]
        assert [word.text for word in own] == spoken.split()
        assert {word.speaker for word in own} == {speaker or None}
        start, end = map(seconds, times.split(" --> "))
        assert start == pytest.approx(own[0].start)
        assert end == pytest.approx(max(own[-1].end, own[0].start + 0.001))
        assert all(after.start - before.end < 1 for before, after in pairwise(own))
    assert not left


@given(said())
def test_subtitles_are_read_as_they_were_written(words):
    read = subtitles.parse(subtitles.format(words, "vtt"))
    assert " ".join(text for *_, text in read) == " ".join(word.text for word in words)
    clocks = [each for each in subtitles.format(words).splitlines() if "-->" in each]
    assert [(start, end) for start, end, _ in read] == [tuple(map(seconds, each.split(" --> "))) for each in clocks]
    plain = [word._replace(text="yes", speaker=None) for word in words]
    assert subtitles.parse(subtitles.format(plain, "srt")) == subtitles.parse(subtitles.format(plain, "vtt"))


def test_subtitles_of_others_are_read_too(tmp_path):
    (tmp_path / "talk.vtt").write_text(
        "\ufeffWEBVTT - by others\r\n\r\nNOTE one\r\n\r\n"
        "00:01.500 --> 00:02.000 align:start\r\n<v Ada>Is <i>it</i>?\r\n"
        "- <00:01.800>R&amp;D &lt;b&gt;\r\n\r\n12\r\n100:00:00.000 --> 100:00:01.000\r\n\r\n",
        encoding="utf-8",
        newline="",
    )
    assert subtitles.read(tmp_path / "talk.vtt") == [(1.5, 1.8, "Is it? -"), (1.8, 2.0, "R&D <b>")]
    assert subtitles.parse("1\n1:02:03,5 --> 1:02:04,25 X1:0\n{\\an8}yes\nno\n") == [(3723.5, 3724.25, "yes no")]
    assert subtitles.parse("WEBVTT\n") == subtitles.parse("") == []


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ("今天我们\n去公园", "今天我们去公园"),
        ("<i>今天</i>\n<b>去</b>", "今天去"),
        ("今天\nParis", "今天 Paris"),
        ("<i></i>\nyes", "yes"),
        ("- 你好\n- 再见", "- 你好 - 再见"),
    ],
)
def test_there_are_spaces_between_lines_in_scripts_that_have_them(lines, found):
    assert subtitles.parse(f"1\n0:00:01,0 --> 0:00:02,0\n{lines}\n") == [(1.0, 2.0, found)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1\n0:00:01,0 --> 0:00:02,0\n\nfirst\n\nsecond\n\n2\n0:00:03,0 --> 0:00:04,0\n7\n", ["first second", "7"]),
        ("1\n0:00:01,0 --> 0:00:02,0\nfirst\n2\n0:00:03,0 --> 0:00:04,0\nsecond", ["first", "second"]),
        ("0:00:01,0 --> 0:00:02,0\n7\n\n0:00:03,0 --> 0:00:04,0\nA --> B", ["7", "A --> B"]),
        ("2\n0:00:03,0 --> 0:00:04,0\nlate\n\n1\n0:00:01,0 --> 0:00:02,0\nearly\n", ["early", "late"]),
        ("1\n\n0:00:01,0 --> 0:00:02,0\n\nfirst\n\n2\n\n0:00:03,0 --> 0:00:04,0\n\nsecond\n\n", ["first", "second"]),
        ("By X\n1.\n0:00:01 --> 0:00:02\nfirst\n2.\n0:00:03, 5 --> 0:00:04\n42", ["first", "42"]),
        ("\nWEBVTT\n\n1\n00:01.0 --> 00:02.0\nfirst\n\n2\n00:02.0 --> 00:03.0\nsecond", ["first", "second"]),
        ("WEBVTT\n\n00:01.0 --> 00:02.0\n \nfirst\n\nsecond-id\n00:02.0 --> 00:03.0\nsecond", ["first", "second"]),
    ],
)
def test_no_text_is_lost_and_no_number_is_text(text, found):
    assert [said for *_, said in subtitles.parse(text)] == found


def test_captions_that_roll_up_are_said_once_and_when_they_are():
    """As in automatic captions: a line with word times, repeated unchanged during the next line."""
    captions = (
        "WEBVTT\nKind: captions\n\n00:00:01.000 --> 00:00:03.500 align:start position:0%\n \n"
        "hello<00:00:01.480><c> every</c><00:00:02.000><c> one</c>\n\n"
        "00:00:03.500 --> 00:00:03.510 align:start position:0%\nhello every one\n \n\n"
        "00:00:03.510 --> 00:00:05.000 align:start position:0%\nhello every one\nand<00:00:04.000><c> welcome</c>\n\n"
        "00:00:05.000 --> 00:00:05.010 align:start position:0%\nand welcome\n \n"
    )
    header, first, _, second, _ = captions.split("\n\n")
    for text in (captions, "\n\n".join([header, first, second])):  # also without those that only last a moment
        assert subtitles.parse(text) == [
            (1.0, 1.48, "hello"),
            (1.48, 2.0, "every"),
            (2.0, 3.5, "one"),
            (3.51, 4.0, "and"),
            (4.0, 5.0, "welcome"),
        ]
    untimed = re.sub(r"<[^>]*>", "", captions)  # as some converters write them
    assert subtitles.parse(untimed) == [(1.0, 3.5, "hello every one"), (3.51, 5.0, "and welcome")]


def test_what_is_said_twice_is_there_twice():
    once = "WEBVTT\n\n00:01.0 --> 00:02.0\nso<00:01.5> well\n\n00:02.0 --> 00:02.01\nyes\n\n"
    again, later = "00:02.01 --> 00:03.0\nyes\nyes\n", "00:04.0 --> 00:05.0\nso<00:04.5> well\n"
    assert [said for *_, said in subtitles.parse(once + again)] == ["so", "well", "yes", "yes"]
    assert [said for *_, said in subtitles.parse(once + later)] == ["so", "well", "yes", "so", "well"]
    repeated = "00:04.0 --> 00:05.0\nyes\n"
    assert [said for *_, said in subtitles.parse(once + repeated)] == ["so", "well", "yes", "yes"]
    chorus = subtitles.format([Word(0, 0, "yes", "Ada"), Word(0, 0, "yes", "Bob")], "vtt")
    assert [said for *_, said in subtitles.parse(chorus)] == ["yes", "yes"]
    touching = "1\n0:00:01,0 --> 0:00:02,0\nyes\n\n2\n0:00:02,0 --> 0:00:03,0\nyes\n"
    assert [said for *_, said in subtitles.parse(touching)] == ["yes", "yes"]


def test_a_subtitle_of_no_length_is_read():
    assert subtitles.parse("1\n0:00:01,0 --> 0:00:01,0\nyes\n") == [(1.0, 1.0, "yes")]


def test_times_within_a_subtitle_that_are_not_its_own_make_no_part_longer_than_it():
    text = "WEBVTT\n\n00:01.0 --> 00:02.0\nso <00:00.5>well <00:09.0>yes\n"
    assert subtitles.parse(text) == [(1.0, 1.0, "so"), (1.0, 2.0, "well"), (2.0, 2.0, "yes")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "1\n00:00:01.0 --> 00:99:02.0\nyes",
            "x.srt, line 2: a subtitle needs times like 00:01:02.500 --> 00:01:04.000",
        ),
        (5_000 * "9" + ":00:00.0 --> 00:01.0\nyes", "x.srt, line 1: a subtitle needs times like"),
        ("00:01.0 --> 00:00.5\nyes", "x.srt, line 1: a subtitle needs start <= end, got '00:01.0 --> 00:00.5'"),
        ("\ufeff\n \n00:01.0 --> 00:00.5\nyes", "x.srt, line 3: a subtitle needs start <= end"),
        ("Hello Ada.", "x.srt: it has no subtitles; is this SubRip or WebVTT"),
    ],
)
def test_what_is_no_subtitle_is_said(text, message):
    with pytest.raises(InputError, match=re.escape(message)):
        subtitles.parse(text, "x.srt")


@pytest.mark.parametrize(
    ("text", "length_s", "speaker", "kind", "at_most"),
    [
        ("yes", 0.5, "Ada", "srt", 14),
        ("understanding", 0.1, None, "srt", 6),
        ("responsibilities", 0.1, None, "srt", 5),  # the lines are full
        ("understanding", 0.1, "Ada", "srt", 5),  # with the name, which players show
        ("understanding", 0.1, "Ada", "vtt", 6),
        ("understanding", 0.1, "A" * 255, "srt", 3),  # a line of text at least
        ("a segment", 5.0, "Ada", "srt", 1),
    ],
)
def test_a_subtitle_can_be_read_in_its_time_and_lines(text, length_s, speaker, kind, at_most):
    words = [Word(number * length_s, (number + 1) * length_s, text, speaker) for number in range(30)]
    cues = subtitles.format(words, kind).removeprefix("WEBVTT\n\n").split("\n\n")
    assert [cue.count(text) for cue in cues] == [at_most] * (30 // at_most) + [30 % at_most] * (30 % at_most > 0)


@pytest.mark.parametrize(
    ("end", "counts"), [(7, [14, 6]), (8, [8, 12]), (14, [14, 6]), (15, [14, 6]), (20, [14, 6]), (0, [14, 6])]
)
@pytest.mark.parametrize("stop", [".", ". ", '?"', "…)"])
def test_a_subtitle_ends_with_a_sentence_that_ends_in_its_second_half(end, counts, stop):
    texts = [f" yes{stop if at == end else ''}" for at in range(1, 21)]
    words = [Word(0.5 * at, 0.5 * at + 0.5, text, "Ada") for at, text in enumerate(texts)]
    assert [cue.count("yes") for cue in subtitles.format(words).split("\n\n")] == counts


def test_parts_of_a_long_subtitle_are_in_order_of_time():
    said = [Word(0.5 * at, 0.5 * at + 0.5, "well", "Ada") for at in range(20)]
    starts = re.findall(r"^[\d:,]+(?= -->)", subtitles.format([*said, Word(3.0, 3.5, "yes", "Bob")]), re.MULTILINE)
    assert starts == ["00:00:00,000", "00:00:03,000", "00:00:07,000"]


def test_a_subtitle_is_exactly_as_players_want_it():
    words = [Word(0.5, 0.9, " Is", "Ada"), Word(0.9, 1.25, " <this>?", "Ada"), Word(3601.0, 3602.5, " Yes.", None)]
    assert subtitles.format(words) == (
        "1\n00:00:00,500 --> 00:00:01,250\nAda: Is <this>?\n\n2\n01:00:01,000 --> 01:00:02,500\nYes.\n"
    )
    assert subtitles.format(words, "vtt") == (
        "WEBVTT\n\n00:00:00.500 --> 00:00:01.250\n<v Ada>Is &lt;this&gt;?\n\n01:00:01.000 --> 01:00:02.500\nYes.\n"
    )


def test_what_was_said_before_does_not_join_what_was_said_after():
    words = [Word(29.0, 29.5, "c", "Ada"), Word(11.0, 12.0, "b", "Ada"), Word(11.9, 12.5, "d", "Ada")]
    times = [line for line in subtitles.format(words).splitlines() if "-->" in line]
    assert times == ["00:00:11,000 --> 00:00:12,500", "00:00:29,000 --> 00:00:29,500"]  # nor stands before it


def test_a_subtitle_lasts_until_the_last_of_its_words_has_ended():
    words = [Word(0.5, 2.0, "hello", "Ada"), Word(0.6, 1.0, "Bob", "Ada")]
    assert subtitles.format(words) == "1\n00:00:00,500 --> 00:00:02,000\nAda: hello Bob\n"


@pytest.mark.parametrize(
    ("texts", "read"),
    [
        ([*"今日は会議です"], "今日は会議です"),  # as Whisper and WhisperX give Japanese and Chinese
        (["สวัสดี", "ครับ"], "สวัสดีครับ"),
        (["안녕", "하세요"], "안녕 하세요"),
        (["用", "Python", "写", "。", "5", "月"], "用 Python 写。5月"),
        (["Python", "，", "Java", "。"], "Python，Java。"),
        (["one", "2", "three"], "one 2 three"),
        ([" I", "'m", " here"], "I'm here"),
    ],
)
def test_there_are_spaces_between_words_in_scripts_that_have_them(texts, read):
    said = [Word(0.1 * at, 0.1 * at + 0.1, text, None) for at, text in enumerate(texts)]
    assert subtitles.format(said, "vtt").splitlines()[-1] == read


def test_marks_in_a_name_end_no_voice():
    # By number: FFmpeg and mpv have &amp; and the like, and the rest of the name, in the text even within a tag.
    assert subtitles.format([(0.0, 1.0, "R&D", "A & B <3>")], "vtt").endswith("\n<v A &#38; B &#60;3&#62;>R&amp;D\n")


def test_a_name_of_several_lines_breaks_no_subtitle():
    assert subtitles.format([(0.0, 1.0, "yes", "Ada\n\nKing")]).endswith("\nAda King: yes\n")
    assert subtitles.format([(0.0, 1.0, "yes", "Ada\nKing")], "vtt").endswith("\n<v Ada King>yes\n")


def test_a_terminal_is_given_no_orders_by_a_name():
    assert subtitles.format([(0.0, 1.0, "yes", "Ada\x1bKing")]).endswith("\nAda King: yes\n")
    assert subtitles.format([(0.0, 1.0, "yes", "Ada\x9bKing")], "vtt").endswith("\n<v Ada King>yes\n")


@pytest.mark.parametrize("speaker", [None, "2"])
def test_an_arrow_that_is_said_is_no_time(speaker: str | None):
    said = [(0.0, 1.0, "hi", speaker), (5.0, 6.0, "1 --> 5", speaker), (9.0, 10.0, "0:01 --> 0:02", speaker)]
    name = f"{speaker}: " if speaker else ""
    written = subtitles.parse(subtitles.format(said))
    assert written == [(start, end, f"{name}{text}".replace("-->", "->")) for start, end, text, _ in said]
    assert subtitles.parse(subtitles.format(said, "vtt")) == [word[:3] for word in said]


def test_without_words_there_are_no_subtitles():
    assert subtitles.format([]) == ""
    assert subtitles.format([Word(0, 1, "\n", None)], "vtt") == "WEBVTT\n"


def test_the_name_of_the_file_says_which(tmp_path):
    words = [Word(0, 1, "Yes", "Ada")]
    subtitles.write(tmp_path / "talk.srt", words)
    subtitles.write(tmp_path / "talk.VTT", words)
    assert (tmp_path / "talk.srt").read_text() == subtitles.format(words, "srt")
    assert (tmp_path / "talk.VTT").read_text() == subtitles.format(words, "vtt")
    for name in ("talk.ass", "talk"):
        with pytest.raises(InputError, match=re.escape("subtitles must be srt or vtt")):
            subtitles.write(tmp_path / name, words)


@pytest.mark.parametrize(
    "words",
    [
        [(0.0, 1.0, "x")],
        [(0.0, 1.0, 5, "Ada")],
        [(1.0, 0.5, "x", None)],
        [(float("nan"), 1.0, "x", None)],
        [(-1.0, 1.0, "x", None)],
        [(0.0, 1e308, "x", None)],
        [{"start": 0.0, "end": 1.0, "word": "x", "speaker": "Ada"}],
        {"text": "x", "segments": []},
        5,
    ],
)
@pytest.mark.parametrize("kind", ["srt", "vtt"])
def test_what_is_no_word_with_its_speaker_is_refused(words, kind):
    with pytest.raises(InputError, match=r"as assign_speakers returns them, \(start, end, text, speaker\)"):
        subtitles.format(words, kind)
