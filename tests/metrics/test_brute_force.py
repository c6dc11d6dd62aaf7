"""The metrics against counters written from the definition: random annotations, and real ones with errors added."""

from dataclasses import astuple
from itertools import cycle
from pathlib import Path

import numpy as np
import pytest

from sortformer.annotation import Turn
from sortformer.formats import rttm
from sortformer.metrics.der import der
from sortformer.metrics.protocol import PROTOCOLS, Protocol
from tests.oracles import der_matrix, der_sweep

TURNS = Path(__file__).resolve().parents[2] / "../shared/data/turns"

Turns = list[Turn]


def turn(start: float, end: float, speaker: str) -> Turns:
    """Return a turn on the counter's grid of 10 ms, or none if its length is zero."""
    low, high = max(0, round(100 * start)), round(100 * end)
    return [Turn(low / 100, high / 100, speaker)] if low < high else []


def random_turns(rng: np.random.Generator) -> Turns:
    """Return up to 20 turns of up to five speakers in half a minute, with overlaps."""
    names = "abcde"[: rng.integers(1, 6)]
    starts, lengths = rng.uniform(0, 27, rng.integers(0, 21)), rng.uniform(0.02, 3, 20)
    return [
        each for s, d in zip(starts, lengths, strict=False) for each in turn(s, s + d, names[rng.integers(len(names))])
    ]


def perturbed(turns: Turns, rng: np.random.Generator) -> Turns:
    """Return a possible output of a system: borders moved, turns lost, inserted and reassigned."""
    names = sorted({each.speaker for each in turns})
    found: Turns = []
    for each in turns:
        fate = rng.random()
        if fate < 0.08:
            continue
        speaker = names[rng.integers(len(names))] if fate < 0.2 else each.speaker
        start, end = (time + rng.normal(0, 0.2) for time in (each.start, each.end))
        found += turn(start, end, speaker)
        if fate > 0.95:
            found += turn(end, end + rng.uniform(0.1, 2), names[rng.integers(len(names))])
    return found


def agree(reference: Turns, hypothesis: Turns, protocol: Protocol, *, every_pairing: bool) -> None:
    """Assert that the metrics equal the counts, up to 0.01 % of the speech."""
    end_s = max([1.0, *(each.end for each in reference + hypothesis)])
    uem = [(0, end_s)]
    found = astuple(der(reference, hypothesis, uem, protocol))
    how = uem, protocol.collar_s, protocol.skip_overlap
    counted = [der_sweep.der(reference, hypothesis, *how)]
    if every_pairing:
        counted.append(der_matrix.der(reference, hypothesis, end_s, *how))
    for expected in counted:
        assert found == pytest.approx(expected, rel=1e-4, abs=1e-4 * expected[0] + 1e-6)


@pytest.mark.parametrize("seed", range(100))
def test_random_annotations_are_counted_as_by_definition(seed: int):
    rng = np.random.default_rng(seed)
    reference, hypothesis = random_turns(rng), random_turns(rng)
    for protocol in PROTOCOLS.values():
        agree(reference, hypothesis, protocol, every_pairing=True)


def real_files() -> list[Path]:
    """A fifth of VoxConverse and, as pyannote's time grows with the square of the turns, a thirtieth of AMI."""
    return [*sorted(TURNS.glob("ami/*/*.rttm"))[::30], *sorted(TURNS.glob("voxconverse/*/*.rttm"))[::5]]


@pytest.mark.data
@pytest.mark.slow
def test_whole_recordings_with_errors_are_counted_as_by_definition():
    if not TURNS.is_dir():
        pytest.skip("needs ../shared/data/turns")
    files, most = real_files(), 0
    for number, (path, protocol) in enumerate(zip(files, cycle(PROTOCOLS.values()), strict=False)):
        recording = rttm.read(path)[path.stem]
        reference = [piece for each in recording for piece in turn(each.start, each.end, each.speaker)]
        agree(reference, perturbed(reference, np.random.default_rng(number)), protocol, every_pairing=False)
        most = max(most, len({each.speaker for each in reference}))
    assert len(files) > 80
    assert most > 15
