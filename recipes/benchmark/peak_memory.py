"""The peak memory of this process, whoever started it."""

from pathlib import Path

__all__ = ["peak_mib"]


def peak_mib() -> float:
    """Return the largest resident set of this process since it began its program, in MiB (Linux).

    Not ``ru_maxrss``: a process inherits that of its parent, if only for the moment before it loads its own program.
    """
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["VmHWM"].split()[0]) / 1024
