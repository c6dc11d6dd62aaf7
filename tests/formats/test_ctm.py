"""CTM: the words of recordings, with their times."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortformer.errors import InputError
from sortformer.formats import ctm
from tests.formats.test_subtitles import said


@given(said(), st.sampled_from(["", " 0.9", " 0.9 lex Ada"]))
def test_words_come_back_in_order_of_time(words, more):
    lines = [f"talk 1 {word.start:.3f} {word.end - word.start:.3f} {word.text.strip()}{more}" for word in words]
    read = ctm.parse("\n".join([";; by a recogniser", *reversed(lines)]) if lines else "")
    expected = sorted(
        ((word.start, word.end, word.text.strip(), "1") for word in reversed(words)), key=lambda each: each[:2]
    )
    assert read == ({"talk": expected} if words else {})


def test_recordings_and_channels_are_told_apart_and_joined(tmp_path: Path):
    (tmp_path / "all.ctm").write_text("a A 1.0 0.5 yes\n#4 1 0.2 0.1 no\na B 0.5 1 well 0.7\n")
    assert ctm.read(tmp_path / "all.ctm") == {
        "a": [(0.5, 1.5, "well", "B"), (1.0, 1.5, "yes", "A")],
        "#4": [(0.2, 0.3, "no", "1")],
    }


def test_silences_are_no_words_and_of_alternatives_the_first_is_taken():
    text = (
        "a A 0.0 0.5 <eps>\na A * * <ALT_BEGIN>\na A 0.5 0.2 uh\na A 0.7 0.2 huh\na A * * <ALT>\na A 0.5 0.4 oh\n"
        "a A * * <ALT>\na A 0.5 0.4 ah\na A * * <ALT_END>\na A 1 0.5 yes\nb 1 0 9 !SIL\n"
    )
    found = {uri: [word.text for word in words] for uri, words in ctm.parse(text).items()}
    assert found == {"a": ["uh", "huh", "yes"], "b": []}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SPEAKER a 1 0.0 1.0 <NA> <NA> x <NA> <NA>", "x.ctm, line 1: a CTM word needs recording, channel, start"),
        (
            "a 1 0.5 0.2",
            "x.ctm, line 1: a CTM word needs recording, channel, start, duration and text, got 'a 1 0.5 0.2'",
        ),
        ("a 1 0 1 b\na 1 * * c", r"x.ctm, line 2: the start must be in \[0, 1e\+09\] s, got '\*'"),
        ("a 1 0.5 -1 b", r"x.ctm, line 1: the duration must be in \[0, 1e\+09\] s, got '-1'"),
        (";; nothing\n", "x.ctm: it has no words; is this CTM"),
    ],
)
def test_what_is_no_word_is_said_with_its_place(text: str, message: str):
    with pytest.raises(InputError, match=message):
        ctm.parse(text, "x.ctm")
