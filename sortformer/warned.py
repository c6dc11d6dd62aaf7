"""Warnings: sentences for users about what may make a result wrong."""

import contextlib
import warnings
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field

__all__ = ["SortformerWarning", "note", "warn", "warned"]


class SortformerWarning(UserWarning):
    """A fault that does not stop the work, such as a damaged part of a file."""


@dataclass(slots=True)
class _Block:
    shown: bool
    sentences: list[str] = field(default_factory=list)


_blocks = ContextVar[tuple[_Block, ...]]("blocks", default=())


def warn(sentence: str, category: type[SortformerWarning] = SortformerWarning, *, stacklevel: int) -> None:
    """Warn as ``warnings.warn`` does, and in the blocks of :func:`warned` that this is in."""
    note(sentence)
    if all(block.shown for block in _blocks.get()):
        warnings.warn(sentence, category, stacklevel=stacklevel + 1)


def note(sentence: str) -> None:
    """Add a warning to the blocks of :func:`warned` that this is in, but show it to nobody: it was shown before."""
    for block in _blocks.get():
        if sentence not in block.sentences:
            block.sentences.append(sentence)


@contextlib.contextmanager
def warned(*, shown: bool = True) -> Iterator[list[str]]:
    """Collect what :func:`warn` says in the block, each sentence once; if not ``shown``, it is no warning elsewhere.

    Unlike those of ``warnings.catch_warnings``, blocks of several threads do not disturb each other, and Python's
    filters do not matter.
    """
    block = _Block(shown)
    token = _blocks.set((*_blocks.get(), block))
    try:
        yield block.sentences
    finally:
        _blocks.reset(token)
