"""The counts against a counter written from the definition: random annotations, and real ones with errors put in."""

from collections.abc import Callable
from dataclasses import astuple
from pathlib import Path

import numpy as np
import pytest

from sortformer.annotation import Diarization, Turn
from sortformer.formats import rttm
from sortformer.metrics.der import der
from sortformer.metrics.protocol import PROTOCOLS
from tests.oracles import der_matrix as oracle

TURNS = Path(__file__).resolve().parents[2] / "../shared/data/turns"
MOST_SPEAKERS = 6  # the counter tries every pairing
FIRST_S = 240  # of each recording: pyannote's time grows with the square of the turns

Turns = list[Turn]


def turn(start: float, end: float, speaker: str) -> Turns:
    """A turn on the counter's grid of 10 ms, none where it has no length."""
    low, high = max(0, round(100 * start)), round(100 * end)
    return [Turn(low / 100, high / 100, speaker)] if low < high else []


def random_turns(rng: np.random.Generator) -> Turns:
    """Up to 20 turns of up to five speakers in half a minute, also over one another."""
    names = "abcde"[: rng.integers(1, 6)]
    starts, lengths = rng.uniform(0, 27, rng.integers(0, 21)), rng.uniform(0.02, 3, 20)
    return [
        each for s, d in zip(starts, lengths, strict=False) for each in turn(s, s + d, names[rng.integers(len(names))])
    ]


def perturbed(turns: Turns, rng: np.random.Generator) -> Turns:
    """What a system might make of it: borders moved, turns lost, invented and given to somebody else."""
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


def agree(reference: Turns, hypothesis: Turns, check: Callable[[tuple, tuple], None]) -> None:
    end_s = max([1.0, *(each.end for each in reference + hypothesis)])
    for protocol in PROTOCOLS.values():
        found = astuple(der(reference, hypothesis, [(0, end_s)], protocol))
        expected = oracle.der(reference, hypothesis, end_s, [(0, end_s)], protocol.collar_s, protocol.skip_overlap)
        check(found, expected)


def within_a_hundredth_of_a_percent(found: tuple, expected: tuple) -> None:
    assert found == pytest.approx(expected, rel=1e-4, abs=1e-4 * expected[0] + 1e-6)


@pytest.mark.parametrize("seed", range(200))
def test_random_annotations_are_counted_as_by_definition(seed: int):
    rng = np.random.default_rng(seed)
    agree(random_turns(rng), random_turns(rng), within_a_hundredth_of_a_percent)


def real_files() -> list[Path]:
    """Some of AMI and of VoxConverse."""
    return [*sorted(TURNS.glob("ami/test/*.rttm"))[::4], *sorted(TURNS.glob("voxconverse/test/*.rttm"))[::25]]


@pytest.mark.data
def test_real_annotations_with_errors_are_counted_as_by_definition():
    if not TURNS.is_dir():
        pytest.skip("needs ../shared/data/turns")
    compared = 0
    for number, path in enumerate(real_files()):
        recording = Diarization(rttm.read(path)[path.stem], FIRST_S, path.stem)
        reference = [piece for each in recording for piece in turn(each.start, each.end, each.speaker)]
        if len({each.speaker for each in reference}) <= MOST_SPEAKERS:
            hypothesis = perturbed(reference, np.random.default_rng(number))
            agree(reference, hypothesis, within_a_hundredth_of_a_percent)
            compared += 1
    assert compared >= 10
