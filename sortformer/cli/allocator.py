"""Memory allocation: keep freed memory between windows, which all allocate tensors of the same sizes."""

import ctypes
import os

__all__ = ["keep_freed_memory"]

_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4  # of glibc's malloc.h
_KEPT_BYTES = 128 * 2**20


def keep_freed_memory() -> bool:
    """Make glibc keep up to 128 MiB of freed memory for reuse, and return whether it does.

    By default it returns large tensors to the system when they are freed, and the next window faults in and clears all
    their pages again: a seventh of the time for an hour of audio. This affects the whole process, so the command does
    it, not the library. MALLOC_ variables of glibc set by the user take precedence; with another C library nothing
    changes.
    """
    if any(name.startswith("MALLOC_") for name in os.environ):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # macOS and musl, no libraries, Windows
        return False
    return bool(mallopt(_M_MMAP_MAX, 0)) and bool(mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES))
