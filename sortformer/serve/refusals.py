"""Refusals of clients who may try again later."""

from fastapi import HTTPException

__all__ = ["STOPPING", "later"]

STOPPING = "the server is stopping: try again later"
_RETRY_S = 10


def later(sentence: str) -> HTTPException:
    """Return a 503 that says when to try again."""
    return HTTPException(503, sentence, {"Retry-After": str(_RETRY_S)})
