"""Refusals of requests that are too many or too large."""

from fastapi import HTTPException

__all__ = ["STOPPING", "later", "too_large"]

STOPPING = "the server is stopping: try again later"
_RETRY_S = 10


def later(sentence: str) -> HTTPException:
    """Return a 503 that says when to try again."""
    return HTTPException(503, sentence, {"Retry-After": str(_RETRY_S)})


def too_large(most_bytes: int) -> HTTPException:
    """Return a 413 that says how large an upload may be."""
    return HTTPException(413, f"the upload exceeds the limit of {most_bytes >> 20} MiB")
