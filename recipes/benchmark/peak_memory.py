"""The peak memory of this process, without that of its parent."""

from pathlib import Path

__all__ = ["peak_mib"]


def peak_mib() -> float:
    """Return the peak resident set size of this process since exec, in MiB (Linux).

    Not ``ru_maxrss``, which a process inherits from its parent and keeps across exec.
    """
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["VmHWM"].split()[0]) / 1024
