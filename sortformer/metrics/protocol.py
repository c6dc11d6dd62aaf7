"""Scoring protocols: collar and overlap, without which a diarization error rate is meaningless."""

import math
from dataclasses import dataclass, replace

from sortformer.config.checks import as_annotated
from sortformer.errors import ConfigError

__all__ = ["FAIR", "FORGIVING", "FULL", "PROTOCOLS", "Protocol", "changed", "protocol_named"]


@dataclass(frozen=True, slots=True)
class Protocol:
    """What is not scored: ``collar_s`` seconds on *each* side of every reference border, and perhaps overlap.

    The three named protocols are those of Landini et al., "Bayesian HMM clustering of x-vector sequences (VBx) in
    speaker diarization", 2022.

    Raises:
        ConfigError: when the collar is not a finite number of seconds >= 0, or a value has the wrong type.
    """

    name: str
    collar_s: float
    skip_overlap: bool

    def __post_init__(self) -> None:
        as_annotated(self)
        if not 0 <= self.collar_s < math.inf:
            raise ConfigError(f"the collar must be a number of seconds >= 0, got {self.collar_s}")

    def __str__(self) -> str:
        collar = f"collar {self.collar_s:g} s each side" if self.collar_s else "no collar"
        return f"{self.name} ({collar}, overlap {'not ' if self.skip_overlap else ''}scored)"


FULL = Protocol("full", 0.0, skip_overlap=False)
FAIR = Protocol("fair", 0.25, skip_overlap=False)
FORGIVING = Protocol("forgiving", 0.25, skip_overlap=True)
PROTOCOLS = {each.name: each for each in (FULL, FAIR, FORGIVING)}


def protocol_named(name: str | Protocol) -> Protocol:
    """Return the protocol of that name; a :class:`Protocol` is returned unchanged.

    Raises:
        ConfigError: when there is none; the message lists the known ones.
    """
    if isinstance(name, Protocol):
        return name
    if not isinstance(name, str) or name not in PROTOCOLS:
        raise ConfigError(f"there is no protocol {name!r}; choose one of {', '.join(PROTOCOLS)}")
    return PROTOCOLS[name]


def changed(protocol: Protocol, collar_s: float | None = None, skip_overlap: bool | None = None) -> Protocol:
    """Return a protocol with another collar or treatment of overlap; None keeps that of ``protocol``.

    The result is called ``own``, unless it equals a named protocol.

    Raises:
        ConfigError: when the collar is not a finite number of seconds >= 0.
    """
    found = Protocol(
        "own",
        protocol.collar_s if collar_s is None else collar_s,
        protocol.skip_overlap if skip_overlap is None else skip_overlap,
    )
    same = (each for each in PROTOCOLS.values() if replace(found, name=each.name) == each)
    return next(same, found)
