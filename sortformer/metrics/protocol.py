"""The conditions under which errors are counted; a diarization error rate without them means nothing."""

from dataclasses import dataclass

from sortformer.errors import ConfigError

__all__ = ["FAIR", "FORGIVING", "FULL", "PROTOCOLS", "Protocol", "protocol_named"]


@dataclass(frozen=True, slots=True)
class Protocol:
    """What is left out of the count: ``collar_s`` seconds on *each* side of every reference border, and overlap.

    The three named ones and their names are those of Landini et al., "Bayesian HMM clustering of x-vector sequences
    (VBx) in speaker diarization", 2022.
    """

    name: str
    collar_s: float
    skip_overlap: bool

    def __str__(self) -> str:
        collar = f"collar {self.collar_s:g} s each side" if self.collar_s else "no collar"
        return f"{self.name} ({collar}, overlap {'not ' if self.skip_overlap else ''}scored)"


FULL = Protocol("full", 0.0, skip_overlap=False)
FAIR = Protocol("fair", 0.25, skip_overlap=False)
FORGIVING = Protocol("forgiving", 0.25, skip_overlap=True)
PROTOCOLS = {each.name: each for each in (FULL, FAIR, FORGIVING)}


def protocol_named(name: str) -> Protocol:
    """Return the protocol of that name.

    Raises:
        ConfigError: when there is none; the message lists those there are.
    """
    if name not in PROTOCOLS:
        raise ConfigError(f"there is no protocol {name!r}; choose one of {', '.join(PROTOCOLS)}")
    return PROTOCOLS[name]
