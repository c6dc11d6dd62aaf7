"""Memory between windows: kept by the C library, where each window asks for the same tensors again."""

import ctypes
import os

__all__ = ["keep_freed_memory"]

_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4  # of glibc's malloc.h
_KEPT_BYTES = 128 * 2**20


def keep_freed_memory() -> bool:
    """Make glibc keep up to 128 MiB of freed memory for what comes next, and return whether it does.

    Left alone, it gives large tensors back to the system when they are freed, and the next window has every page of
    them found and cleared anew: a seventh of the time that an hour of audio takes. It changes the whole process, so the
    command does it, not the library. Who has set a MALLOC_ variable of glibc's has decided otherwise; with another C
    library nothing changes.
    """
    if any(name.startswith("MALLOC_") for name in os.environ):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # macOS and musl, no libraries, Windows
        return False
    return bool(mallopt(_M_MMAP_MAX, 0)) and bool(mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES))
