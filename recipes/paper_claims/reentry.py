"""The speaker re-entry probe: who keeps a speaker's slot over a long gap, and does not give it to a stranger?

A speaks for 12 s. For 10 s, one, five or twenty minutes nobody speaks, or B does. Then A returns, or C comes, whom
nobody has heard. A slot is *kept* where A has it again, *lost* to a stranger where C has it. A head that has forgotten
A gives the first slot to whoever comes: so only the mean of the two shares, kept and not lost, says what it knows.
"""

from dataclasses import dataclass, fields
from math import prod
from pathlib import Path

import numpy as np
import torch
from frames import STEP_S, coarse
from mechanisms import CHUNK
from torch import Tensor

from sortformer.config.train import TrainConfig
from sortformer.grid import SAMPLE_RATE
from sortformer.model import Sortformer
from sortformer.model.head import Head, HeadState
from sortformer.simulate import VoiceBank
from sortformer.streaming.rows import shapes

__all__ = ["GAPS", "GAPS_S", "Probe", "Probes", "probe", "probes"]

GAPS_S = (10, 60, 300, 1200)
GAPS = ("silence", "another speaker")
TALK_S, RETURN_S, LOOP_S = 12, 6, 24
NOISE_DB = -35.0
_EDGE_S = GAPS_S[1] // 2


@dataclass(frozen=True, slots=True)
class Probes:
    """Recordings (B, T, D) of B trios of voices, in the pieces that gaps of any length are made of."""

    soon_returned: Tensor
    """A, ten seconds, A."""
    soon_stranger: Tensor
    """A, ten seconds, C."""
    opening: Tensor
    """A and half a minute of gap."""
    loop: Tensor
    """24 s of gap, farther than 18 s from where it began and will end."""
    returned: Tensor
    """Half a minute of gap and A."""
    stranger: Tensor
    """Half a minute of gap and C."""


@dataclass(frozen=True, slots=True)
class Probe:
    """What became of the slots, by gap: a truth value for each trio; and what the longest gap took."""

    kept: dict[int, list[bool]]
    lost: dict[int, list[bool]]
    state_values: int
    """How many numbers the state of one stream holds in the end."""


def probes(folder: Path, model: Sortformer, recipe: TrainConfig, trios: int) -> dict[str, Probes]:
    """Return the probes with silence and with B in the gap, of the dev voices; made once."""
    path = folder / f"probes-{trios}.pt"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        torch.save(_made(model, recipe, trios), path)
    found = torch.load(path, weights_only=True)
    return {gap: Probes(**{name: emb.float() for name, emb in found[gap].items()}) for gap in found}


@torch.inference_mode()
def _made(model: Sortformer, recipe: TrainConfig, trios: int) -> dict[str, dict[str, Tensor]]:
    bank = VoiceBank.load(recipe.data.bank or "", "dev", (1.0,), recipe.data.cache)
    rng = np.random.default_rng(recipe.seed)
    corpus = bank.voices[int(np.diff(bank.voice_phrases).argmax())].corpus
    voices = [number for number, voice in enumerate(bank.voices) if voice.corpus == corpus]
    edge, half = round((TALK_S + _EDGE_S) / STEP_S), round(LOOP_S / STEP_S / 2)

    def recorded(first: int, gap: int | None, gap_s: int, last: int) -> Tensor:
        spoken = ((first, TALK_S), (gap, gap_s), (last, RETURN_S))
        wave = np.concatenate([_speech(bank, voice, seconds, rng) for voice, seconds in spoken])
        wave += 0.05 * 10 ** (NOISE_DB / 20) * rng.standard_normal(len(wave))
        return coarse(model(torch.from_numpy(wave.astype(np.float32))[None]).emb).half()

    made: dict[str, list[tuple[Tensor, ...]]] = {gap: [] for gap in GAPS}
    for trio in range(trios):
        a = voices[trio % len(voices)]
        b, c = rng.choice([voice for voice in voices if voice != a], 2, replace=False).tolist()
        for gap, voice in zip(GAPS, (None, b), strict=True):
            soon = [recorded(a, voice, GAPS_S[0], last) for last in (a, c)]
            returned, stranger = (recorded(a, voice, GAPS_S[1], last) for last in (a, c))
            middle = returned[:, edge - half : edge + half]
            made[gap].append((*soon, returned[:, :edge], middle, returned[:, edge:], stranger[:, edge:]))
    names = [field.name for field in fields(Probes)]
    return {
        gap: {name: torch.cat(parts) for name, parts in zip(names, zip(*found, strict=True), strict=True)}
        for gap, found in made.items()
    }


def _speech(bank: VoiceBank, voice: int | None, seconds: int, rng: np.random.Generator) -> np.ndarray:
    """Return phrases of a voice with a quarter of a second between them; nothing but zeros of None."""
    length = seconds * SAMPLE_RATE
    if voice is None:
        return np.zeros(length)
    parts: list[np.ndarray] = []
    while sum(map(len, parts)) < length:
        phrase = int(rng.integers(*bank.voice_phrases[voice : voice + 2]))
        hop = len(bank.audio) // len(bank.activity)
        cut = bank.audio[bank.phrase_start[phrase] * hop : bank.phrase_end[phrase] * hop]
        parts += [cut / 32768, np.zeros(SAMPLE_RATE // 4)]
    return np.concatenate(parts)[:length]


@torch.inference_mode()
def probe(head: Head, made: Probes) -> Probe:
    """Stream the probes through a head and say what became of A's slot after each gap."""
    talk, last = round(TALK_S / STEP_S), round(RETURN_S / STEP_S)
    kept: dict[int, list[bool]] = {}
    lost: dict[int, list[bool]] = {}

    def settle(gap: int, before: tuple[Tensor, HeadState] | None, returned: Tensor, stranger: Tensor) -> None:
        for found, ending in ((kept, returned), (lost, stranger)):
            probs, _ = _stream(head, ending, None if before is None else before[1])
            opening = probs if before is None else before[0]
            slot = opening[:, :talk].mean(dim=1).argmax(dim=1)
            found[gap] = (probs[:, -last:].mean(dim=1).argmax(dim=1) == slot).tolist()

    settle(GAPS_S[0], None, made.soon_returned, made.soon_stranger)
    opening, state = _stream(head, made.opening, None)
    settle(GAPS_S[1], (opening, state), made.returned, made.stranger)
    passed = GAPS_S[1]
    for gap in GAPS_S[2:]:
        for _ in range(round((gap - passed) / LOOP_S)):
            _, state = _stream(head, made.loop, state)
        passed = gap
        settle(gap, (opening, state), made.returned, made.stranger)
    return Probe(kept, lost, sum(map(prod, shapes(state))))


def _stream(head: Head, emb: Tensor, state: HeadState | None) -> tuple[Tensor, HeadState]:
    """Return the probabilities (B, T, S) of frames that come chunk by chunk, and the state after them."""
    state = head.init_state(emb) if state is None else state
    found = []
    for chunk in emb.split(CHUNK, dim=1):
        step = head.step(chunk, torch.ones(chunk.shape[:2], dtype=torch.bool), state)
        state = step.state
        found.append(step.logits.sigmoid())
    return torch.cat(found, dim=1), state
