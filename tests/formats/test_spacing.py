"""Scripts without spaces between words."""

import pytest

from sortformer.formats import spacing


@pytest.mark.parametrize(
    ("texts", "whole"),
    [
        (["one.", "two", "3", "4"], "one. two 3 4"),
        (["今天", "去"], "今天去"),
        (["在", "Paris", "3", "天"], "在 Paris 3天"),
        (["OK", "。", "OK"], "OK。OK"),
        (["ก", "ำ", "x"], "กำ x"),
        (["cafe", "\u0301"], "cafe\u0301"),
        (["", "one", "", "two"], "one two"),
    ],
)
def test_words_are_joined_by_a_space_in_scripts_that_have_them(texts, whole):
    assert spacing.joined(texts) == whole


@pytest.mark.parametrize(
    ("text", "words"),
    [("", 0), ("Hm.", 1), (" two words ", 2), ("안녕 하세요", 2), ("我", 1), ("我们。", 1), ("今天开会。好吗？", 3)],
)
def test_words_are_estimated_from_the_letters_where_there_are_no_spaces(text, words):
    assert spacing.words_in(text) == words
