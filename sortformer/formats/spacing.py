"""Where words end: scripts that are written without spaces, such as Chinese, and what never begins a word."""

import unicodedata
from collections.abc import Iterable, Iterator

__all__ = ["closes", "combines", "joined", "spaced", "unspaced", "words_in"]

_UNSPACED = (
    ("\u0e00", "\u0eff"),  # Thai, Lao
    ("\u1000", "\u109f"),  # Burmese
    ("\u1780", "\u17ff"),  # Khmer
    ("\u2e80", "\u312f"),  # Chinese and Japanese, with their punctuation; not Hangul
    ("\u3190", "\ua4cf"),
    ("\uf900", "\ufaff"),
    ("\ufe30", "\ufe4f"),
    ("\uff00", "\uff9f"),
    ("\U00020000", "\U0003ffff"),
)
_COMBINING = "\u0e33\u0eb3"  # Thai and Lao AM: letters in Unicode's categories, but marks in its segmentation (UAX 29)
_CLOSING = ("Pe", "Pf", "Po")  # Unicode's categories, except
_OTHERS = "%‰&@#*/\\§†‡•\"'¿¡"  # those that are spoken or may stand before a word
_LETTERS_A_WORD = 2  # about as many as in Chinese


def unspaced(char: str) -> bool:
    """Return whether a character is of a script that is written without spaces."""
    return char >= _UNSPACED[0][0] and any(first <= char <= last for first, last in _UNSPACED)


def combines(char: str) -> bool:
    """Return whether a character is written on or after the letter before it, such as most vowels of Thai."""
    return unicodedata.category(char).startswith("M") or char in _COMBINING


def closes(text: str) -> bool:
    """Return whether a text is nothing but punctuation that ends what is before it."""
    marks = text.strip()
    return bool(marks) and all(unicodedata.category(mark) in _CLOSING and mark not in _OTHERS for mark in marks)


def joined(texts: Iterable[str]) -> str:
    """Return texts joined by a space, except in scripts that are written without."""
    return "".join(spaced(texts))


def spaced(texts: Iterable[str]) -> Iterator[str]:
    """Return texts, each with the space before it that :func:`joined` puts there."""
    last = ""
    for text in texts:
        yield f" {text}" if last and text and not _joined_without_space(last, text[0]) else text
        last = text[-1:] or last


def _joined_without_space(before: str, after: str) -> bool:
    """Return whether two characters are joined without a space: one is of a script without spaces, such as Chinese.

    The other is of such a script too, or not a letter; letters of other scripts keep their space, except next to
    punctuation, whose width includes it. A combining mark needs its letter.
    """
    pair = (before, after)
    if combines(after):
        return True
    if any(unspaced(char) and unicodedata.category(char).startswith("P") for char in pair):
        return True
    return any(map(unspaced, pair)) and all(unspaced(char) or not char.isalpha() for char in pair)


def words_in(text: str) -> int:
    """Return the number of words of a text, estimated from the letters where the script has no spaces."""
    letters = (sum(unspaced(char) and char.isalpha() for char in part) for part in text.split() if not closes(part))
    return sum(max(1, count // _LETTERS_A_WORD) for count in letters)
