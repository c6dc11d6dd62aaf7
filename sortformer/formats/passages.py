"""Words and who said them, joined to passages: of one speaker each, and without a pause."""

from collections.abc import Callable, Iterable
from itertools import pairwise
from numbers import Real

from sortformer.errors import InputError
from sortformer.grid import LONGEST_S

__all__ = ["Passage", "Said", "passages", "said", "text"]

_PAUSE_S = 1.0
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

Said = tuple[float, float, str, str | None]
"""A word as ``assign_speakers`` gives it: start and end in seconds, text, speaker or None."""

Passage = list[Said]


def passages(words: Iterable[Said], fits: Callable[[Passage, Said], bool] = lambda *_: True) -> list[Passage]:
    """Return words in their order, joined until the speaker changes or pauses, time goes back, or one does not fit.

    A pause, and time that goes back, is a second or more. Words without a letter are left out. Passages are in order of
    time, also where a transcript has one channel after the other.

    Raises:
        InputError: when an item is no such word.
    """
    found: list[Passage] = []
    for word in words if isinstance(words, Iterable) else [words]:
        if not said(word)[2].strip():
            continue
        last = found[-1] if found else None
        goes_on = last and last[-1][0] - _PAUSE_S < word[0] < last[-1][1] + _PAUSE_S
        if last and goes_on and word[3] == last[0][3] and fits(last, word):
            last.append(word)
        else:
            found.append([word])
    return sorted(found, key=lambda passage: passage[0][0])


def said(word: Said) -> Said:
    """Return the word.

    Raises:
        InputError: when it is none.
    """
    match word:
        case (Real() as start, Real() as end, str(), str() | None) if 0 <= start <= end <= LONGEST_S:
            return word
        case _:
            raise InputError(
                "words are wanted as assign_speakers gives them, (start, end, text, speaker) with "
                f"0 <= start <= end in seconds, got {word!r}"
            )


def text(passage: Passage) -> str:
    """Return the words as they are read, in one line.

    Those of Whisper bring their spaces. Others have one between them, but in scripts that are written without.
    """
    texts = [word[2] for word in passage]
    if any(text[0].isspace() for text in texts):
        return " ".join("".join(texts).split())
    joined = texts[0]
    for before, after in pairwise(texts):
        joined += ("" if _unspaced(before[-1], after[0]) else " ") + after
    return " ".join(joined.split())


def _unspaced(before: str, after: str) -> bool:
    """Whether no space stands between two characters: of Chinese, Japanese, Thai and the like, or beside one of these.

    A letter of another script has its space.
    """
    written_so = [any(first <= char <= last for first, last in _UNSPACED) for char in (before, after)]
    letters = [char.isalpha() for char in (before, after)]
    return any(written_so) and all(own or not letter for own, letter in zip(written_so, letters, strict=True))
