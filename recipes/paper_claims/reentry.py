"""The speaker re-entry probe: is a slot kept for its speaker over a long gap, and not given to a stranger?

A speaks for 12 s. For 10 s, one, five or twenty minutes nobody speaks, or B does. Then A returns, or a new speaker C
arrives. A slot is *kept* if A gets it again, *lost* if C gets it. A head that has forgotten A gives the same slot to
either: so only the mean of the two shares, kept and not lost, measures what it knows.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np
import torch
from conversations import timed
from mechanisms import CHUNK
from torch import Tensor
from voices import SILENCE, STEP_S, Voices

from sortformer.model.head import Head, HeadState
from sortformer.streaming.rows import shapes

__all__ = ["GAPS", "GAPS_S", "Probe", "Probes", "probe", "probes"]

GAPS_S = (10, 60, 300, 1200)
GAPS = ("silence", "another speaker")
TALK, RETURN = (round(seconds / STEP_S) for seconds in (12, 6))


@dataclass(frozen=True, slots=True)
class Probes:
    """Streams (B, T, D) of B trios of voices, without the channels of ``timed``."""

    stream: Tensor
    """A, then the longest gap."""
    returned: Tensor
    """A again, continued."""
    stranger: Tensor
    """C."""


@dataclass(frozen=True, slots=True)
class Probe:
    """The results by gap, a truth value for each trio, and the size of the state."""

    kept: dict[int, list[bool]]
    lost: dict[int, list[bool]]
    state_values: int
    """Numbers in the final state of one stream."""


def probes(voices: Voices, generator: np.random.Generator, trios: int) -> Mapping[str, Probes]:
    """Return the probes with silence and with B in the gap, for the same A and C; A runs through the voices."""
    count = len(voices.speech)
    first = np.arange(trios)[:, None] % count
    other = generator.permuted(np.tile(np.arange(1, count), (trios, 1)), axis=1)[:, :2]
    a, b, c = (part[:, None] for part in np.concatenate((first, (first + other) % count), axis=1).T)
    gap = round(GAPS_S[-1] / STEP_S)
    made = {}
    for name, between in zip(GAPS, (np.full_like(b, SILENCE), b), strict=True):
        spoken = np.concatenate([part.repeat(n, 1) for part, n in ((a, TALK), (between, gap), (a, RETURN))], axis=1)
        whole = voices.compose(spoken, generator)
        made[name] = Probes(whole[:, :-RETURN], whole[:, -RETURN:], voices.compose(c.repeat(RETURN, 1), generator))
    return made


@torch.inference_mode()
def probe(head: Head, made: Probes) -> Probe:
    """Stream the probes through a head, and return whether A and C get A's slot after each gap."""
    probs, state = _stream(head, timed(made.stream[:, :TALK]))
    slot = probs.mean(dim=1).argmax(dim=1)
    kept: dict[int, list[bool]] = {}
    lost: dict[int, list[bool]] = {}
    passed = TALK
    for gap in GAPS_S:
        until = TALK + round(gap / STEP_S)
        _, state = _stream(head, timed(made.stream[:, passed:until], passed), state)
        passed = until
        for found, ending in ((kept, made.returned), (lost, made.stranger)):
            probs, _ = _stream(head, timed(ending, until), state)
            found[gap] = (probs.mean(dim=1).argmax(dim=1) == slot).tolist()
    return Probe(kept, lost, sum(map(prod, shapes(state))))


def _stream(head: Head, emb: Tensor, state: HeadState | None = None) -> tuple[Tensor, HeadState]:
    """Run the head on frames chunk by chunk; return the probabilities (B, T, S) and the final state."""
    state = head.init_state(emb) if state is None else state
    found = []
    for chunk in emb.split(CHUNK, dim=1):
        step = head(chunk, torch.ones(chunk.shape[:2], dtype=torch.bool), state)
        state = step.state
        found.append(step.logits.sigmoid())
    return torch.cat(found, dim=1), state
