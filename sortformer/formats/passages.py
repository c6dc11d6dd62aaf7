"""Words with speakers, joined into passages: runs of words of one speaker without a pause."""

from collections.abc import Iterable
from numbers import Real

from sortformer.errors import InputError
from sortformer.formats.spacing import spaced
from sortformer.grid import LONGEST_S

__all__ = ["Passage", "Said", "passages", "said", "text", "texts"]

_PAUSE_S = 1.0

Said = tuple[float, float, str, str | None]
"""A word, as returned by ``assign_speakers``: start and end in seconds, text, speaker or None."""

Passage = list[Said]


def passages(words: Iterable[Said]) -> list[Passage]:
    """Join words, in their order, into passages; return these by start, even where channels follow one another.

    A passage ends where the speaker changes, and at a pause or a step back in time of a second or more. Blank words are
    omitted.

    Raises:
        InputError: when an item is not such a word.
    """
    found: list[Passage] = []
    for word in words if isinstance(words, Iterable) else [words]:
        if not said(word)[2].strip():
            continue
        last = found[-1] if found else None
        if last and word[3] == last[0][3] and last[-1][0] - _PAUSE_S < word[0] < last[-1][1] + _PAUSE_S:
            last.append(word)
        else:
            found.append([word])
    return sorted(found, key=lambda passage: passage[0][0])


def said(word: Said) -> Said:
    """Return the word if it is valid.

    Raises:
        InputError: when it is not.
    """
    match word:
        case (Real() as start, Real() as end, str(), str() | None) if 0 <= start <= end <= LONGEST_S:
            return word
        case _:
            raise InputError(
                "words must be as assign_speakers returns them, (start, end, text, speaker) with "
                f"0 <= start <= end in seconds, got {word!r}"
            )


def texts(passage: Passage) -> list[str]:
    """Return the texts of the words of a passage, each with the space before it, if there is one.

    Whisper's words contain their spaces. Others have one, except in scripts that are written without.
    """
    given = [word[2] for word in passage]
    return given if any(text[0].isspace() for text in given) else list(spaced(given))


def text(passage: Passage) -> str:
    """Return the words of a passage as one line of text (see :func:`texts`)."""
    return " ".join("".join(texts(passage)).split())
