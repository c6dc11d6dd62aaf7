"""Scoring of files and folders: matching, errors, and the form of a report."""

import csv
import json
import os
import re
import unicodedata
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sortformer.annotation import Diarization, Turn
from sortformer.errors import ConfigError, InputError
from sortformer.evaluate import Report, Row, as_csv, as_json, as_markdown, as_text, score, score_recordings, truth_in
from sortformer.formats import audacity, rttm, seglst, stm, textgrid, uem
from sortformer.formats import json as json_format
from sortformer.manifests import Entry, write
from sortformer.metrics.counts import DerCounts, JerCounts
from sortformer.metrics.protocol import FULL, changed
from sortformer.metrics.region import Region
from tests.audio import makers

DATA = Path(__file__).resolve().parents[1] / "../shared/data"

ONE = Diarization((Turn(0, 4, "a"), Turn(4, 8, "b")), 10, "one")
TWO = Diarization((Turn(1, 3, "c"),), 10, "two")
ONE_FOUND = Diarization((Turn(0, 5, "x"), Turn(5, 9, "y")), 10, "one")
TWO_FOUND = Diarization((Turn(1, 2, "x"),), 10, "two")


def folder(path: Path, *recordings: Diarization) -> Path:
    for recording in recordings:
        rttm.write(path / f"{recording.uri}.rttm", recording)
    return path


@pytest.fixture
def folders(tmp_path) -> tuple[Path, Path]:
    return folder(tmp_path / "ref", ONE, TWO), folder(tmp_path / "hyp", ONE_FOUND, TWO_FOUND)


def test_a_total_is_the_sum_of_errors_over_the_sum_of_speech(folders):
    report = score(*folders)
    assert [(row.uri, row.der.miss, row.der.false_alarm, row.der.confusion) for row in report.rows] == [
        ("one", 0, pytest.approx(1), pytest.approx(1)),
        ("two", pytest.approx(1), 0, 0),
    ]
    assert report.der.rate == pytest.approx(3 / 10)
    assert report.jer.rate == pytest.approx((1 / 5 + 2 / 5 + 1 / 2) / 3)


def test_speakers_too_many_and_too_few_do_not_make_up_for_each_other():
    assert score_recordings({"one": ONE, "two": TWO}, {"one": TWO, "two": ONE}).speaker_count_error == 1


def test_files_with_several_recordings_score_as_folders_do(folders, tmp_path):
    rttm.write(tmp_path / "ref.rttm", TWO, ONE)
    rttm.write(tmp_path / "hyp.rttm", ONE_FOUND, TWO_FOUND)
    assert score(tmp_path / "ref.rttm", tmp_path / "hyp.rttm") == score(*folders)


def test_textgrids_score_as_rttm_does(folders, tmp_path):
    for recording in (ONE, TWO, Diarization((), 10, "three")):
        textgrid.write(tmp_path / "grids" / f"{recording.uri}.TextGrid", recording)
    silent = folder(folders[1], Diarization((), 10, "three"))
    assert len(score(tmp_path / "grids", silent).rows) == 3
    (silent / "three.rttm").unlink()
    (tmp_path / "grids" / "three.TextGrid").unlink()
    assert score(tmp_path / "grids", folders[1]) == score(*folders)
    assert score(folders[1], tmp_path / "grids") == score(folders[1], folders[0])
    alone = (tmp_path / "grids" / "one.TextGrid", folders[1] / "one.rttm")
    assert score(*alone) == score(folders[0] / "one.rttm", alone[1])
    assert truth_in(alone[0]).turns == {"one": ONE.turns}


@pytest.mark.parametrize(
    ("written", "suffix"),
    [
        (json_format.write, "json"),
        (seglst.write, "seglst.json"),
        (stm.write, "stm"),
        (stm.write, "STM"),
        (audacity.write, "labels.txt"),
    ],
)
def test_what_else_knows_turns_scores_as_rttm_does(folders, tmp_path, written, suffix):
    mine = tmp_path / "mine"
    for recording in (ONE, TWO):
        written(mine / f"{recording.uri}.{suffix}", recording)
    assert score(mine, folders[1]) == score(*folders)
    assert score(folders[1], mine) == score(folders[1], folders[0])
    alone = folders[1] / "one.rttm"
    assert score(mine / f"one.{suffix}", alone) == score(folders[0] / "one.rttm", alone)
    written(mine / f"three.{suffix}", Diarization((), 10, "three"))  # then its file name gives the recording
    assert truth_in(mine).turns == {"one": ONE.turns, "two": TWO.turns, "three": ()}


def test_what_a_json_file_holds_says_whether_it_is_a_manifest(tmp_path):
    seglst.write(tmp_path / "segments.json", ONE)
    json_format.write(tmp_path / "result.json", ONE)
    rttm.write(tmp_path / "one.rttm", ONE)
    write(tmp_path / "manifest.json", [Entry("one", tmp_path / "one.wav", rttm=tmp_path / "one.rttm")])
    for name in ("segments", "result", "manifest"):
        assert truth_in(tmp_path / f"{name}.json").turns == {"one": ONE.turns}
    (tmp_path / "results.jsonl").write_text("".join(json_format.format(each, one_line=True) for each in (ONE, TWO)))
    assert truth_in(tmp_path / "results.jsonl").turns == {"one": ONE.turns, "two": TWO.turns}


def test_a_json_file_of_something_else_is_refused(tmp_path):
    rttm.write(tmp_path / "one.rttm", ONE)
    for content, sentence in (
        ('{"text": "hello"}', "is not a diarization: it has no schema_version"),
        ('["hello"]', "segment 1: a SegLST segment must be an object, got 'hello'"),
        ("[", "not JSON .* is this SegLST"),
    ):
        (tmp_path / "talk.json").write_text(content)
        with pytest.raises(InputError, match=f"talk.json.*{sentence}"):
            score(tmp_path / "one.rttm", tmp_path / "talk.json")


def test_a_name_is_one_however_its_marks_are_written(tmp_path):
    apart, composed = (unicodedata.normalize(form, "caf\N{LATIN SMALL LETTER E WITH ACUTE}") for form in ("NFD", "NFC"))
    for folder, name in (("one", apart), ("other", composed)):
        (tmp_path / folder).mkdir()
        line = f"SPEAKER {name} 1 0 2 <NA> <NA> {name} <NA> <NA>\n"
        (tmp_path / folder / f"{name}.rttm").write_text(line, encoding="utf-8")
    assert [row.uri for row in score(tmp_path / "one", tmp_path / "other").rows] == [composed]
    (tmp_path / "one" / f"{apart}.rttm").write_text("")  # then the file name gives the recording
    assert score(tmp_path / "other", tmp_path / "one").der.rate == 1.0


def test_of_a_folder_with_both_the_rttm_counts(folders):
    for recording in (ONE_FOUND, TWO_FOUND):
        textgrid.write(folders[0] / f"{recording.uri}.TextGrid", recording)
    assert truth_in(folders[0]).turns == {"one": ONE.turns, "two": TWO.turns}


def test_a_folder_against_itself_has_no_error(folders):
    for protocol in ("full", "fair", "forgiving"):
        report = score(folders[0], folders[0], protocol=protocol)
        assert report.der.errors == 0
        assert report.jer.rate == 0
        assert report.speaker_count_error == 0


def test_an_empty_file_in_a_folder_is_silence(folders):
    (folders[1] / "two.rttm").write_text("")
    row = score(*folders).rows[1]
    assert (row.uri, row.der.rate, row.jer.rate, row.hypothesis_speakers) == ("two", 1, 1, 0)


def test_a_single_empty_file_is_silence_for_the_other_side(tmp_path, folders):
    (tmp_path / "silence.rttm").write_text("")
    with pytest.warns(UserWarning, match=r"silence.rttm has no turns: it counts as silence in 'one', 'two'"):
        assert score(folders[0], tmp_path / "silence.rttm").der.rate == 1
    assert score(tmp_path / "silence.rttm", folders[1]).der.false_alarm == pytest.approx(10)
    assert score(tmp_path / "silence.rttm", tmp_path / "silence.rttm").der.rate == 0


def test_a_pipe_through_which_no_turn_comes_is_no_silence(tmp_path, folders):
    os.mkfifo(tmp_path / "pipe")
    for sides in ((folders[0], tmp_path / "pipe"), (tmp_path / "pipe", folders[1])):
        with ThreadPoolExecutor() as others:
            others.submit((tmp_path / "pipe").write_text, "")
            with pytest.raises(
                InputError, match=r"no turns were received from .*pipe: .* give an empty file by its name"
            ):
                score(*sides)


def test_what_is_no_path_is_refused(folders):
    for given in ((folders[0], ONE_FOUND), (ONE, folders[1])):
        with pytest.raises(InputError, match=r"takes paths .* got Diarization: pass turns to score_recordings"):
            score(*given)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match="got dict"):
        score(*folders, uem={"one": [(0, 4)]})  # pyright: ignore[reportArgumentType]


def test_errors_are_in_seconds_where_the_reference_has_no_speech(folders):
    (folders[0] / "two.rttm").write_text("")
    report = score(*folders)
    _, _, two, total, *notes = as_text(report, breakdown=True).split("\n\n")[0].splitlines()
    assert two.split() == "two 100.00 0.00 s 1.00 s 0.00 s 100.00 1 of 0 0.00".split()  # noqa: SIM905
    assert total.split()[:5] == ["TOTAL", "37.50", "0.00", "25.00", "12.50"]
    assert notes[-1].startswith("No reference speech is scored in 'two': ")
    assert "No reference speech" not in as_text(score(folders[1], folders[0]))
    (folders[0] / "one.rttm").write_text("")
    nobody = score(*folders)
    assert (nobody.der.rate, nobody.jer.rate, nobody.interval) == (1, 1, (1, 1))
    assert "in 'one', 'two': " in as_text(nobody)


def test_a_recording_on_one_side_only_is_refused(folders):
    (folders[1] / "two.rttm").unlink()
    with pytest.raises(InputError, match=r"missing in .*hyp: 'two' of"):
        score(*folders)
    with pytest.raises(InputError, match=r"missing in .*: 'two' of .*; add references \(the first argument\)"):
        score(*folders[::-1])
    with pytest.raises(
        InputError, match=r"missing in .*: 'two' .*; an empty file in a folder, as `diarize -o` writes it, means"
    ):
        score(folders[0], folders[1] / "one.rttm")
    with pytest.raises(InputError, match=r"/one.rttm is for 'one', and .*/two.rttm for 'two': .* the same id"):
        score(folders[0] / "one.rttm", folders[0] / "two.rttm")


def test_names_that_some_recordings_have_on_both_sides_are_no_other_way_of_naming():
    with pytest.raises(InputError, match="missing in the hypotheses: 'one' of the references"):
        score_recordings({"one": ONE, "two": TWO}, {"two": TWO, "three": ONE})


def test_pages_of_errors_show_what_is_said_after_the_scored_parts_too(folders, tmp_path):
    uem.write(tmp_path / "one.uem", {"one": [(0, 5)], "two": [(0, 5)]})
    score(*folders, uem=tmp_path / "one.uem", errors=tmp_path / "errors")
    page = (tmp_path / "errors" / "one.html").read_text()
    assert '"start": 5.0, "end": 9.0, "speaker": "y"' in page
    assert (tmp_path / "errors" / "one.errors.txt").read_text() == "4.000\t5.000\tconfusion: b as x\n"


def test_a_recording_in_two_files_is_refused(folders):
    (folders[0] / "again.rttm").write_text((folders[0] / "one.rttm").read_text())
    with pytest.raises(InputError, match=r"again.rttm and .*one.rttm both contain the recording 'one'"):
        score(*folders)


def test_missing_and_empty_folders_and_unknown_protocols_are_refused(folders, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"has no \.rttm or \.textgrid or .* or \.jsonl or \.labels\.txt files"):
        score(folders[0], tmp_path / "empty")
    with pytest.raises(InputError, match="does not exist"):
        score(tmp_path / "absent", folders[1])
    with pytest.raises(ConfigError, match="no protocol"):
        score(*folders, protocol="strict")


def test_a_uem_says_what_is_scored(folders, tmp_path):
    uem.write(tmp_path / "all.uem", {"one": [(0, 4)], "two": [(0, 10)], "more": [(0, 1)]})
    report = score(*folders, uem=tmp_path / "all.uem")
    assert [row.region.duration for row in report.rows] == [4, 10]
    assert report.rows[0].der.errors == 0
    assert report.rows[0].jer.rate == 0
    assert report.rows[0].by_overlap == {1: DerCounts(4, 0, 0, 0)}
    assert report.rows[0].reference_speakers == 1
    assert "the parts in the UEM" in report.basis
    for uri in ("one", "two"):
        uem.write(tmp_path / "uems" / f"{uri}.uem", {uri: [(0, 4)]})
    assert score(*folders, uem=tmp_path / "uems").rows[0] == report.rows[0]


def test_what_the_uem_lacks_is_not_scored(folders, tmp_path):
    uem.write(tmp_path / "some.uem", {"one": [(0, 4)]})
    rttm.write(folders[1] / "more.rttm", Diarization(ONE_FOUND.turns, 10, "more"))  # has no reference, and needs none
    with pytest.warns(UserWarning, match="not scored, as the UEM has no regions of them: 'two'") as warned:
        report = score(*folders, uem=tmp_path / "some.uem", errors=tmp_path / "errors")
    assert len(warned) == 1
    assert [row.uri for row in report.rows] == ["one"]
    assert sorted(path.name for path in (tmp_path / "errors").iterdir()) == ["one.errors.txt", "one.html"]
    uem.write(tmp_path / "more.uem", {"one": [(0, 4)], "more": [(0, 4)]})
    with (
        pytest.warns(UserWarning, match="not scored"),
        pytest.raises(InputError, match=r"missing in .*: 'more' .* a UEM of what to score"),
    ):
        score(*folders, uem=tmp_path / "more.uem")


def test_turns_that_the_uem_lacks_are_not_scored():
    with pytest.warns(UserWarning, match="not scored, as the UEM has no regions of them: 'two'"):
        report = score_recordings({"one": ONE, "two": TWO}, {"one": ONE_FOUND, "more": TWO}, uem={"one": [(0, 4)]})
    assert [row.uri for row in report.rows] == ["one"]


def test_a_uem_of_other_recordings_is_refused(folders, tmp_path):
    uem.write(tmp_path / "other.uem", {"three": [(0, 4)]})
    with pytest.raises(InputError, match="the UEM has no regions of 'one', 'two'; add them, or score without it"):
        score(*folders, uem=tmp_path / "other.uem")


def test_a_uem_after_the_last_turn_is_wondered_at(folders, tmp_path):
    uem.write(tmp_path / "late.uem", {"one": [(9, 20)], "two": [(0, 10)]})
    with pytest.warns(UserWarning, match=r"the UEM of 'one' begins at 9.00 s, after the last turn .* \(9.00 s\)"):
        score(*folders, uem=tmp_path / "late.uem")
    uem.write(tmp_path / "silence.uem", {"one": [(8.9, 20)], "two": [(0, 10)]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        score(*folders, uem=tmp_path / "silence.uem")
        for side in folders:
            for uri in ("one", "two"):
                (side / f"{uri}.rttm").write_text("")
        score(*folders, uem=tmp_path / "silence.uem")


def test_known_durations_are_scored_whole():
    report = score_recordings({"one": ONE}, {"one": ONE_FOUND})
    assert report.rows[0].region.parts == ((0, 10),)
    assert "the whole recording" in report.basis


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


def _row(missed: float, speech: float) -> Row:
    return Row("", DerCounts(speech, missed, 0, 0), JerCounts(), 1, 1, Region((), "uem"))


def test_recordings_are_grouped_by_their_speakers(folders):
    groups = score(*folders).by_speakers
    assert {number: [row.uri for row in group.rows] for number, group in groups.items()} == {1: ["two"], 2: ["one"]}
    assert groups[2].der.rate == pytest.approx(2 / 8)


def test_the_breakdown_adds_up(folders):
    (folders[1] / "two.rttm").write_text("SPEAKER two 1 1.0 4.0 <NA> <NA> x <NA> <NA>\n")
    report = score(*folders)
    assert sum(counts.errors for counts in report.by_overlap.values()) == pytest.approx(report.der.errors)
    assert report.by_overlap[0].false_alarm == pytest.approx(3)
    tables = as_text(report, breakdown=True).split("\n\n")
    assert [table.split()[0] for table in tables] == ["recording", "speakers", "at"]
    assert tables[2].splitlines()[1].split() == ["0", "-", "0.00", "30.00", "0.00", "0.00"]
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


def test_a_manifest_is_a_reference_with_durations_and_scored_parts(folders, tmp_path):
    entries = [Entry(each.uri, tmp_path / "x.wav", 0, 10, folders[0] / f"{each.uri}.rttm") for each in (ONE, TWO)]
    write(tmp_path / "m.jsonl", entries)
    report = score(tmp_path / "m.jsonl", folders[1])
    assert [row.region.parts for row in report.rows] == [((0, 10),)] * 2
    assert report.basis == "Scored: the whole recording."
    uem.write(tmp_path / "one.uem", {"one": [(0, 4)]})
    with_uem = Entry("one", tmp_path / "x.wav", 0, 10, folders[0] / "one.rttm", tmp_path / "one.uem")
    write(tmp_path / "m.jsonl", [with_uem, entries[1]], overwrite=True)
    assert truth_in(tmp_path / "m.jsonl").uem == {"one": ((0, 4),), "two": ((0, 10),)}
    uem.write(tmp_path / "given.uem", {"one": [(0, 5)], "two": [(0, 5)]})
    given = score(tmp_path / "m.jsonl", folders[1], uem=tmp_path / "given.uem")
    assert [row.region.duration for row in given.rows] == [5, 5]


def test_a_manifest_without_what_scoring_needs_is_refused(folders, tmp_path):
    write(tmp_path / "m.jsonl", [Entry("one", tmp_path / "x.wav")])
    with pytest.raises(InputError, match="names no RTTM"):
        score(tmp_path / "m.jsonl", folders[1])
    uem.write(tmp_path / "one.uem", {"one": [(0, 4)]})
    one = Entry("one", tmp_path / "x.wav", rttm=folders[0] / "one.rttm", uem=tmp_path / "one.uem")
    two = Entry("two", tmp_path / "x.wav", rttm=folders[0] / "two.rttm")
    window = Entry("one", tmp_path / "x.wav", 2, 4, rttm=folders[0] / "one.rttm")
    for first in (one, window):
        write(tmp_path / "m.jsonl", [first, two], overwrite=True)
        with pytest.raises(InputError, match="has neither a UEM nor a duration for 'two'"):
            score(tmp_path / "m.jsonl", folders[1])


def test_where_no_duration_is_given_the_recording_is_asked(folders, tmp_path):
    audio = makers.write(tmp_path / "two.wav", makers.chirp(9, 16_000), 16_000)
    window = Entry("one", tmp_path / "x.wav", 2, 4, rttm=folders[0] / "one.rttm")
    write(tmp_path / "m.jsonl", [window, Entry("two", audio, rttm=folders[0] / "two.rttm")])
    assert truth_in(tmp_path / "m.jsonl").uem == {"one": ((2, 6),), "two": ((0, 9),)}
    write(tmp_path / "m.jsonl", [Entry("late", audio, 9, rttm=folders[0] / "two.rttm")], overwrite=True)
    with pytest.raises(InputError, match=r"two\.wav ends at 9\.00 s, before its window 'late' begins"):
        truth_in(tmp_path / "m.jsonl")


@pytest.mark.data
def test_real_references_score_zero_against_themselves():
    clips = DATA / "real_dev"
    if not clips.is_dir():
        pytest.skip("needs ../shared/data/real_dev")
    report = score(clips, clips, uem=clips)
    assert len(report.rows) == 10
    assert report.der.total > 60
    assert report.der.errors == pytest.approx(0, abs=1e-6)
    assert re.search(r"TOTAL +0\.00", as_text(report))
