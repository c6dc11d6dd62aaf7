"""The forms of a report: text, Markdown, JSON and CSV."""

import csv
import json
from dataclasses import replace

import pytest

from sortformer.annotation import Diarization, Turn
from sortformer.evaluate import as_csv, as_json, as_markdown, as_text, score, score_recordings
from sortformer.metrics.protocol import FULL, changed
from tests.evaluate.recordings import ONE, ONE_FOUND, TWO, TWO_FOUND, folder


def test_a_report_names_every_way_in_which_parts_were_found():
    found = score_recordings({"one": ONE, "two": TWO.turns}, {"one": ONE_FOUND, "two": TWO_FOUND.turns})
    assert found.basis == (
        "Scored: the whole recording; from the first to the last turn of either side, without a UEM."
    )


def test_the_text_is_a_table_that_says_how_it_was_counted(folders):
    assert as_text(score(*folders, protocol="fair")).splitlines() == [
        "recording    DER   miss  false alarm  confusion    JER     speakers  speech s",
        "one        21.43   0.00        10.71      10.71  30.00       2 of 2      7.00",
        "two        50.00  50.00         0.00       0.00  50.00       1 of 1      1.50",
        "TOTAL      26.47   8.82         8.82       8.82  36.67  off by 0.00      8.50",
        "DER 26.47 %; 95 % interval 21.43 to 50.00 % (bootstrap over 2 recordings).",
        "Protocol: fair (collar 0.25 s each side, overlap scored). "
        "Scored: from the first to the last turn of either side, without a UEM.",
        "JER has no collar and includes overlap under any protocol.",
    ]
    assert "JER has" not in as_text(score(*folders))


def test_a_protocol_that_leaves_out_overlap_alone_says_that_jer_does_not():
    report = score_recordings({"one": ONE}, {"one": ONE_FOUND}, protocol=changed(FULL, skip_overlap=True))
    assert "JER has no collar and includes overlap" in as_text(report)


def test_speech_that_is_all_collar_is_none():
    turns = {"one": [Turn(1, 1.4, "a")]}
    assert "No reference speech is scored in 'one'" in as_text(score_recordings(turns, turns, protocol="fair"))


def test_markdown_has_a_cell_for_every_column(folders):
    lines = as_markdown(score(*folders)).splitlines()
    assert len({line.count("|") for line in lines[:5]}) == 1
    assert lines[-2].startswith("DER 30.00 %; 95 % interval ")
    assert lines[-1].startswith("Protocol: full (no collar, overlap scored).")


def test_a_bar_in_a_name_ends_no_cell():
    assert as_markdown(score_recordings({"a|b": ONE}, {"a|b": ONE})).splitlines()[2].startswith("| a\\|b | 0.00 |")


def test_json_holds_the_same_numbers(folders):
    report = score(*folders)
    document = json.loads(as_json(report))
    assert document["protocol"] == {"name": "full", "collar_s": 0.0, "skip_overlap": False}
    assert [each["uri"] for each in document["files"]] == ["one", "two"]
    assert document["total"]["der"] == pytest.approx(0.3)
    assert document["total"]["speaker_count_error"] == 0
    assert document["files"][0]["scored_region"] == {"basis": "extent", "duration_s": 9.0}


def test_the_gain_over_a_baseline_is_in_every_form(folders, tmp_path):
    compared = score(*folders, baseline=folder(tmp_path / "other", TWO_FOUND, replace(TWO, uri="one")))
    assert as_text(compared).splitlines()[5] == (
        "Gain over the baseline (DER 70.00 %): 40.00 points; 95 % interval 0.00 to 50.00 (paired bootstrap)."
    )
    document = json.loads(as_json(compared))["baseline"]
    assert (document["recordings"], document["der"], document["gain"]) == pytest.approx((2, 0.7, 0.4))
    assert document["gain_interval"] == pytest.approx([0, 0.5])
    lines = {line["group"]: line for line in csv.DictReader(as_csv(compared).splitlines())}
    assert float(lines["baseline"]["der"]) == pytest.approx(0.7)
    assert [float(lines["gain"][key]) for key in ("der", "der_low", "der_high")] == pytest.approx([0.4, 0, 0.5])
    assert "baseline" not in as_text(score(*folders)) + as_json(score(*folders)) + as_csv(score(*folders))


def test_over_one_recording_a_gain_has_no_interval(tmp_path):
    reference, found = folder(tmp_path / "ref", ONE), folder(tmp_path / "hyp", ONE_FOUND)
    compared = score(reference, reference, baseline=found)
    assert as_text(compared).splitlines()[3] == "Gain over the baseline (DER 25.00 %): 25.00 points."
    assert json.loads(as_json(compared))["baseline"]["gain_interval"] is None
    (line,) = (line for line in csv.DictReader(as_csv(compared).splitlines()) if line["group"] == "gain")
    assert (line["der"], line["der_low"], line["der_high"]) == ("0.25", "", "")


def test_json_has_no_noise_of_floating_point():
    found = Diarization((Turn(0.1, 0.3, "a"), Turn(0.5, 0.6, "a")), 10)
    assert '"total_s": 0.3,' in as_json(score_recordings({"one": found}, {"one": found}))


def test_json_says_which_error_and_which_side_is_which():
    one = Diarization((Turn(0, 5, "x"),), 10)
    text = as_json(score_recordings({"übung": ONE, "two": TWO}, {"übung": one, "two": TWO}))
    assert '"uri": "übung"' in text
    document = json.loads(text)
    assert document["files"][1] == {
        "uri": "übung",
        "der": 0.5,
        "total_s": 8,
        "miss_s": 3,
        "false_alarm_s": 0,
        "confusion_s": 1,
        "jer": 0.6,
        "reference_speakers": 2,
        "hypothesis_speakers": 1,
        "scored_region": {"basis": "duration", "duration_s": 10},
    }
    groups = document["by_speakers"]
    assert {number: (group["recordings"], group["der"]) for number, group in groups.items()} == {
        "1": (1, 0),
        "2": (1, 0.5),
    }
    assert document["total"]["der_interval"] == [0, 0.5]


def test_the_breakdown_adds_up(folders):
    (folders[1] / "two.rttm").write_text("SPEAKER two 1 1.0 4.0 <NA> <NA> x <NA> <NA>\n")
    report = score(*folders)
    assert sum(counts.errors for counts in report.by_overlap.values()) == pytest.approx(report.der.errors)
    assert report.by_overlap[0].false_alarm == pytest.approx(3)
    tables = as_text(report, breakdown=True).split("\n\n")
    assert [table.split()[0] for table in tables] == ["recording", "speakers", "at"]
    assert [line.split() for line in tables[2].splitlines()[1:]] == [
        ["0", "-", "0.00", "30.00", "0.00", "0.00"],
        ["1", "10.00", "0.00", "0.00", "10.00", "10.00"],
    ]
    assert as_markdown(report, breakdown=True).count("|---|") == 3


def test_the_breakdown_is_of_the_same_protocol_and_in_order(folders):
    report = score(*folders, protocol="fair")
    assert sum(counts.total for counts in report.by_overlap.values()) == pytest.approx(report.der.total)
    extra = {"one": ONE, "two": Diarization((Turn(0, 4, "c"),), 10)}
    assert list(score_recordings({"one": ONE, "two": TWO}, extra).by_overlap) == [0, 1]


def test_each_number_of_speakers_has_a_line_of_its_own():
    report = score_recordings({"one": ONE, "two": TWO}, {"one": TWO, "two": TWO})
    _, few, many = as_text(report, breakdown=True).split("\n\n")[1].splitlines()
    assert few.split() == "1 1 0.00 - 0.00 0.00 0.00 0.00 0.00 2.00".split()  # noqa: SIM905
    assert many.split() == "2 1 75.00 - 75.00 0.00 0.00 75.00 1.00 8.00".split()  # noqa: SIM905


def test_csv_has_a_line_a_recording_and_group(folders):
    lines = list(csv.DictReader(as_csv(score(*folders)).splitlines()))
    assert [(line["group"], line["name"]) for line in lines] == [
        *(("recording", "one"), ("recording", "two"), ("total", "TOTAL")),
        *(("speakers", "1"), ("speakers", "2"), ("overlap", "0"), ("overlap", "1")),
    ]
    assert float(lines[2]["der"]) == pytest.approx(0.3)
    assert float(lines[2]["der_low"]) <= 0.3 <= float(lines[2]["der_high"])
    assert lines[3]["der_low"] == ""


def test_csv_says_on_each_line_under_which_conditions_it_was_counted():
    report = score_recordings({"one": ONE, "two": TWO.turns}, {"one": ONE, "two": TWO.turns}, protocol="forgiving")
    lines = list(csv.DictReader(as_csv(report).splitlines()))
    assert {(line["protocol"], line["collar_s"], line["skip_overlap"]) for line in lines} == {
        ("forgiving", "0.25", "true")
    }
    bases = {(line["group"], line["name"]): line["basis"] for line in lines}
    assert (bases["recording", "one"], bases["recording", "two"]) == ("duration", "extent")
    assert bases["total", "TOTAL"] == bases["overlap", "1"] == "duration+extent"


def test_csv_says_which_side_is_which_and_leaves_out_what_means_nothing():
    extra = Diarization((Turn(0, 10, "c"),), 10)
    one, _, _, few, many, nobody, _ = csv.DictReader(
        as_csv(score_recordings({"one": ONE, "two": TWO}, {"one": extra, "two": TWO})).splitlines()
    )
    assert (one["reference_speakers"], one["hypothesis_speakers"]) == ("2", "1")
    assert (few["recordings"], many["recordings"]) == ("1", "1")
    assert (nobody["group"], nobody["der"], nobody["false_alarm_s"]) == ("overlap", "", "2.0")
