from collections.abc import Callable
from itertools import count

import pytest

from sortformer.model import Sortformer
from sortformer.streaming import Session
from tests.streaming.tiny import CONFIG, MODEL


@pytest.fixture
def session() -> Session:
    return Session(MODEL, CONFIG, uri="meeting")


@pytest.fixture
def fail_once(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let a method of all models raise an error, once, after some good calls."""

    def fail(method: str, good: int, error: type[BaseException]) -> None:
        whole, calls = getattr(Sortformer, method), count()

        def call(*arguments: object) -> object:
            if next(calls) == good:
                raise error
            return whole(*arguments)

        monkeypatch.setattr(Sortformer, method, call)

    return fail
