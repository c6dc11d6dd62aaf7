"""Scripts without spaces between words."""

import pytest

from sortformer.formats import spacing


@pytest.mark.parametrize(
    ("text", "words"),
    [("", 0), ("Hm.", 1), (" two words ", 2), ("안녕 하세요", 2), ("我", 1), ("我们。", 1), ("今天开会。好吗？", 3)],
)
def test_words_are_estimated_from_the_letters_where_there_are_no_spaces(text, words):
    assert spacing.words_in(text) == words
