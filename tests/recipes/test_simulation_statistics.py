"""Turn statistics: measures against loops over the hops, distances against scipy and their definition."""

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.stats import wasserstein_distance

from tests.simulate.makers import make_bank_folder

SCRIPT = Path(__file__).resolve().parents[2] / "recipes/simulation_statistics/turn_statistics.py"
STATISTICS: dict[str, Any] = runpy.run_path(str(SCRIPT))
ACTIVITY = arrays.arrays(bool, st.tuples(st.integers(1, 60), st.integers(1, 4)))
VALUES = st.lists(st.integers(0, 20), min_size=1, max_size=30)


def stretches(flags: list[bool]) -> list[int]:
    """The lengths of the runs of True, one by one."""
    found, running = [], 0
    for flag in [*flags, False]:
        if flag:
            running += 1
        elif running:
            found.append(running)
            running = 0
    return found


@given(ACTIVITY)
def test_what_is_measured_is_what_a_loop_over_the_hops_counts(active):
    together = [sum(map(bool, row)) for row in active]
    silences = [number == 0 for number in together]
    while silences and silences[0]:
        silences.pop(0)
    while silences and silences[-1]:
        silences.pop()
    expected = {
        "pause": stretches(silences),
        "turn": [length for speaker in active.T for length in stretches(list(speaker))],
        "overlap": stretches([number > 1 for number in together]),
        "speakers": [sum(any(speaker) for speaker in active.T)],
        "speech share": [round(1000 * sum(number > 0 for number in together) / len(together))],
    }
    for name, values in expected.items():
        assert list(STATISTICS["QUANTITIES"][name].measure(active)) == values, name
    speech = sum(number > 0 for number in together)
    share = [round(1000 * sum(number > 1 for number in together) / speech)] if speech else []
    assert list(STATISTICS["QUANTITIES"]["overlap share"].measure(active)) == share


@given(arrays.arrays(bool, st.tuples(st.integers(1, 150), st.integers(1, 3)), elements=st.booleans()))
def test_short_gaps_are_closed_and_nothing_else(active):
    closed = STATISTICS["closed"](active)
    assert (closed >= active).all()
    for before, after in zip(active.T, closed.T, strict=True):
        spoken = np.flatnonzero(before)
        inside = ~after[spoken[0] : spoken[-1]] if len(spoken) else []
        assert all(length >= 30 for length in stretches(list(inside)))
        for hop in np.flatnonzero(after & ~before):
            assert before[max(0, hop - 29) : hop].any()
            assert before[hop + 1 : hop + 30].any()


@given(VALUES, VALUES, st.sampled_from([0.01, 1.0]))
def test_the_distances_are_scipys_and_the_largest_difference(one, other, step):
    counted = [np.bincount(side, minlength=21) for side in (one, other)]
    wasserstein, ks = STATISTICS["distances"](*counted, step)
    assert wasserstein == pytest.approx(wasserstein_distance(one, other) * step)
    at_most = [[np.mean(np.array(side) <= value) for value in range(21)] for side in (one, other)]
    assert ks == pytest.approx(max(abs(a - b) for a, b in zip(*at_most, strict=True)))


@given(VALUES)
@settings(max_examples=20)
def test_the_mean_and_median_are_those_of_numpy(values):
    total = np.bincount(values, minlength=21)
    assert STATISTICS["mean"](total, 0.5) == pytest.approx(np.mean(values) / 2)
    assert STATISTICS["median"](total, 0.5) == np.percentile(values, 50, method="inverted_cdf") / 2


def test_the_interval_is_a_point_where_all_recordings_are_alike_and_wide_where_not():
    alike, other = np.tile([2, 0, 2], (5, 1)), np.tile([0, 2, 2], (4, 1))
    assert STATISTICS["interval"](alike, other, 1.0, 0) == pytest.approx(np.full((2, 2), 0.5))
    mixed = np.array([[4, 0, 0], [0, 0, 4], [4, 0, 0], [0, 0, 4]])
    (low, high), _ = STATISTICS["interval"](mixed, other, 1.0, 0)
    assert low < high - 0.5


def test_the_script_in_miniature(tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(0)
    for folder in ("ami/train", "ami/dev", "ami/test", "voxconverse/dev", "voxconverse/test"):
        (tmp_path / folder).mkdir(parents=True)
        starts = np.cumsum(rng.uniform(0.5, 4, 40))
        name = folder.replace("/", "_")
        lines = [f"SPEAKER {name} 1 {at:.2f} 1.50 <NA> <NA> {'abc'[i % 3]} <NA> <NA>" for i, at in enumerate(starts)]
        (tmp_path / folder / f"{name}.rttm").write_text("\n".join(lines) + "\n")
    (tmp_path / "ami/train/EN2001a.rttm").write_text("SPEAKER EN2001a 1 0.00 9.00 <NA> <NA> left_out <NA> <NA>\n")
    bank, out = make_bank_folder(tmp_path / "bank"), tmp_path / "out"
    monkeypatch.setattr("sys.argv", ["turn_statistics.py", str(tmp_path), str(bank), str(out), "--count", "2"])
    monkeypatch.setitem(STATISTICS["interval"].__globals__, "DRAWS", 20)
    STATISTICS["main"]()
    table = (out / "tables.md").read_text()
    assert table in capsys.readouterr().out
    assert table.count("### ") == 2
    assert table.count("| replayed AMI |") == table.count("| VoxConverse, training files |") == 6
    assert "<svg" in (out / "distributions.svg").read_text()
