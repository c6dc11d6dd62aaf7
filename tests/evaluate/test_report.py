"""Totals, intervals and groups of a report."""

import pytest

from sortformer.errors import InputError
from sortformer.evaluate import Report, Row, as_text, score, score_recordings
from sortformer.metrics.counts import DerCounts, JerCounts
from sortformer.metrics.protocol import FULL
from sortformer.metrics.region import Region
from tests.evaluate.recordings import ONE, ONE_FOUND, TWO


def test_speakers_too_many_and_too_few_do_not_make_up_for_each_other():
    assert score_recordings({"one": ONE, "two": TWO}, {"one": TWO, "two": ONE}).speaker_count_error == 1


def test_the_interval_needs_two_recordings_and_holds_the_rate(folders):
    report = score(*folders)
    low, high = report.interval or (1, 0)
    assert low == pytest.approx(2 / 8)
    assert high == pytest.approx(1 / 2)
    alone = score_recordings({"one": ONE}, {"one": ONE_FOUND})
    assert alone.interval is None
    assert "interval" not in as_text(alone)


def test_in_the_interval_long_recordings_weigh_more():
    report = Report(FULL, 20 * (_row(0, 1), _row(50, 99)))
    assert report.interval is not None
    assert 0.4 < report.interval[0] <= report.der.rate <= report.interval[1]


def test_the_gain_over_a_baseline_is_the_difference_and_pairs_recordings(folders):
    report, baseline = score(*folders), score_recordings({"one": ONE, "two": TWO}, {"one": TWO, "two": TWO})
    assert report.gain(baseline) == pytest.approx(baseline.der.rate - report.der.rate)
    assert report.gain(report) == 0
    # Each recording gains the same, although one of them is much harder than the other.
    easy, hard = Report(FULL, 10 * (_row(0, 10), _row(8, 10))), Report(FULL, 10 * (_row(1, 10), _row(9, 10)))
    assert easy.gain_interval(hard) == pytest.approx((0.1, 0.1))
    assert hard.gain_interval(easy) == pytest.approx((-0.1, -0.1))


def test_there_is_no_gain_over_other_recordings(folders):
    report, other = score(*folders), score_recordings({"one": ONE}, {"one": ONE_FOUND})
    for compare in (report.gain, report.gain_interval):
        with pytest.raises(InputError, match="a gain needs two reports about the same recordings"):
            compare(other)


def _row(missed: float, speech: float) -> Row:
    return Row("", DerCounts(speech, missed, 0, 0), JerCounts(), 1, 1, Region((), "uem"))


def test_recordings_are_grouped_by_their_speakers(folders):
    groups = score(*folders).by_speakers
    assert {number: [row.uri for row in group.rows] for number, group in groups.items()} == {1: ["two"], 2: ["one"]}
    assert groups[2].der.rate == pytest.approx(2 / 8)
