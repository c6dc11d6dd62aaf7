"""Scoring of files and folders: matching, silence, and what is refused."""

import os
import re
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sortformer.annotation import Diarization
from sortformer.errors import ConfigError, InputError
from sortformer.evaluate import as_text, score, score_recordings, truth_in
from sortformer.formats import audacity, rttm, seglst, stm, textgrid, uem
from sortformer.formats import json as json_format
from sortformer.metrics.counts import DerCounts
from tests.evaluate.recordings import ONE, ONE_FOUND, TWO, TWO_FOUND, folder

DATA = Path(__file__).resolve().parents[2] / "../shared/data"


def test_a_total_is_the_sum_of_errors_over_the_sum_of_speech(folders):
    report = score(*folders)
    assert [(row.uri, row.der.miss, row.der.false_alarm, row.der.confusion) for row in report.rows] == [
        ("one", 0, pytest.approx(1), pytest.approx(1)),
        ("two", pytest.approx(1), 0, 0),
    ]
    assert report.der.rate == pytest.approx(3 / 10)
    assert report.jer.rate == pytest.approx((1 / 5 + 2 / 5 + 1 / 2) / 3)


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


def test_a_name_is_one_however_its_marks_are_written(tmp_path):
    apart, composed = (unicodedata.normalize(form, "caf\N{LATIN SMALL LETTER E WITH ACUTE}") for form in ("NFD", "NFC"))
    for side, name in (("one", apart), ("other", composed)):
        (tmp_path / side).mkdir()
        line = f"SPEAKER {name} 1 0 2 <NA> <NA> {name} <NA> <NA>\n"
        (tmp_path / side / f"{name}.rttm").write_text(line, encoding="utf-8")
    assert [row.uri for row in score(tmp_path / "one", tmp_path / "other").rows] == [composed]
    (tmp_path / "one" / f"{apart}.rttm").write_text("")  # then the file name gives the recording
    assert score(tmp_path / "other", tmp_path / "one").der.rate == 1.0


def test_of_a_folder_with_both_the_rttm_counts(folders):
    for recording in (ONE_FOUND, TWO_FOUND):
        textgrid.write(folders[0] / f"{recording.uri}.TextGrid", recording)
    with pytest.warns(UserWarning, match=r"has turns in \.rttm and \.textgrid: using only those in \.rttm"):
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


@pytest.mark.parametrize("extension", ["rttm", "stm", "seglst.json", "labels.txt"])
def test_silence_on_both_sides_is_of_the_recording_with_the_name_of_the_file(tmp_path, extension):
    silent = tmp_path / f"my talk.{extension}"
    silent.write_text("[]" if extension == "seglst.json" else "")
    uem.write(tmp_path / "talk.uem", {"my_talk": [(0, 10)]})
    report = score(silent, silent, uem=tmp_path / "talk.uem")
    assert [(row.uri, row.der.rate) for row in report.rows] == [("my_talk", 0)]


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
    with pytest.raises(InputError, match="got Report"):
        score(*folders, baseline=score(*folders))  # pyright: ignore[reportArgumentType]


def test_recordings_without_their_ids_are_refused():
    named = {"one": ONE}
    for given in ((ONE, ONE_FOUND), ([ONE], [ONE_FOUND]), (named, ONE_FOUND)):
        with pytest.raises(InputError, match=r'es must be a mapping by the ids of recordings, \{"meeting": '):
            score_recordings(*given)
    with pytest.raises(InputError, match=r"uem must be a mapping by the ids of recordings, .*, got list"):
        score_recordings(named, named, uem=[(0, 4)])  # pyright: ignore[reportArgumentType]


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


def test_a_baseline_is_scored_as_the_hypothesis_is(folders, tmp_path):
    reference, hypothesis = folders
    parts = {"one": [(0.0, 6.0)], "two": [(0.0, 2.0)]}
    uem.write(tmp_path / "all.uem", parts)
    report = score(reference, hypothesis, baseline=reference, uem=tmp_path / "all.uem", protocol="fair")
    assert report.baseline == score(reference, reference, uem=tmp_path / "all.uem", protocol="fair")
    (tmp_path / "silence.rttm").touch()
    with pytest.warns(UserWarning, match=r"silence\.rttm has no turns: it counts as silence in 'one', 'two'"):
        silent = score(reference, hypothesis, baseline=tmp_path / "silence.rttm").baseline
    assert silent is not None
    assert silent.der == DerCounts(10, 10, 0, 0)


def test_a_baseline_of_other_recordings_is_refused(folders, tmp_path):
    other = folder(tmp_path / "other", ONE)
    with pytest.raises(InputError, match=re.escape(f"missing in {other}: 'two' of {folders[0]}")):
        score(*folders, baseline=other)


def test_a_recording_on_one_side_only_is_refused(folders):
    (folders[1] / "two.rttm").unlink()
    with pytest.raises(InputError, match=r"missing in .*hyp: 'two' of"):
        score(*folders)
    with pytest.raises(InputError, match=r"missing in .*: 'two' of .*; add references \(the first argument\), copy"):
        score(*folders[::-1])
    with pytest.raises(
        InputError, match=r"missing in .*: 'two' .*; an empty file in a folder, as `diarize -o` writes it, means"
    ):
        score(folders[0], folders[1] / "one.rttm")
    with pytest.raises(InputError, match=r"/one.rttm is for 'one', and .*/two.rttm for 'two': .* the same id"):
        score(folders[0] / "one.rttm", folders[0] / "two.rttm")


def test_names_that_some_recordings_have_on_both_sides_are_no_other_way_of_naming():
    with pytest.raises(
        InputError, match=r"missing in the hypotheses \(no reference is for 'three'\): 'one' of the ref"
    ):
        score_recordings({"one": ONE, "two": TWO}, {"two": TWO, "three": ONE})


def test_pages_of_errors_show_what_is_said_after_the_scored_parts_too(folders, tmp_path):
    uem.write(tmp_path / "one.uem", {"one": [(0, 5)], "two": [(0, 5)]})
    score(*folders, uem=tmp_path / "one.uem", errors=tmp_path / "errors")
    page = (tmp_path / "errors" / "one.html").read_text()
    assert '"start": 5.0, "end": 9.0, "speaker": "y"' in page
    assert (tmp_path / "errors" / "one.errors.txt").read_text() == "4.000\t5.000\tconfusion: b as x\n"


def test_a_recording_in_two_files_is_refused(folders):
    (folders[0] / "again.rttm").write_text((folders[0] / "one.rttm").read_text())
    with pytest.raises(InputError, match=r"again.rttm and .*one.rttm both contain the recording 'one': give"):
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


def test_a_hypothesis_of_other_names_is_named_with_a_uem_too(folders, tmp_path):
    uem.write(tmp_path / "all.uem", {"one": [(0, 4)], "two": [(0, 10)]})
    for uri in ("one", "two"):
        path = folders[1] / f"{uri}.rttm"  # named for the reference, but called as the recording of a channel was
        path.write_text(path.read_text().replace(f" {uri} ", f" {uri}.CH1 "))
    with pytest.raises(InputError, match=r"ref is for 'one', 'two', and .*hyp for 'one.CH1', 'two.CH1': .* same id"):
        score(*folders, uem=tmp_path / "all.uem")
    rttm.write(folders[1] / "again.rttm", Diarization(ONE_FOUND.turns, 10, "one"))
    with pytest.raises(InputError, match=r"missing in .*hyp \(no reference is for 'one.CH1', 'two.CH1'\): 'two' of"):
        score(*folders, uem=tmp_path / "all.uem")


def test_a_hypothesis_whose_reference_the_uem_leaves_out_is_not_said_to_have_none():
    references = {"one": ONE, "two": TWO, "three": ONE}
    with pytest.warns(UserWarning, match="not scored"), pytest.raises(InputError, match="the hypotheses: 'one' of"):
        score_recordings(references, {"two": TWO}, uem={"one": [(0, 4)]})
    with pytest.warns(UserWarning, match="not scored"), pytest.raises(InputError, match="the hypotheses: 'one' of"):
        score_recordings(references, {"two": TWO, "three": ONE}, uem={"one": [(0, 4)], "three": [(0, 4)]})


def test_a_uem_without_length_is_no_score_of_zero(folders, tmp_path):
    (tmp_path / "empty.uem").write_text("one 1 0 0\ntwo 1 0 10\n")
    with pytest.warns(UserWarning, match="nothing of 'one' is scored: its UEM has no part of it") as warned:
        score(*folders, uem=tmp_path / "empty.uem")
    assert len(warned) == 1


def test_a_uem_after_the_last_turn_is_wondered_at(folders, tmp_path):
    uem.write(tmp_path / "late.uem", {"one": [(9, 20)], "two": [(0, 10)]})
    with pytest.warns(UserWarning, match=r"the UEM of 'one' begins at 9.00 s, after the last turn .* \(9.00 s\)"):
        score(*folders, uem=tmp_path / "late.uem")
    uem.write(tmp_path / "silence.uem", {"one": [(8.9, 20)], "two": [(0, 10)]})
    score(*folders, uem=tmp_path / "silence.uem")
    for side in folders:
        for uri in ("one", "two"):
            (side / f"{uri}.rttm").write_text("")
    score(*folders, uem=tmp_path / "silence.uem")


def test_known_durations_are_scored_whole():
    report = score_recordings({"one": ONE}, {"one": ONE_FOUND})
    assert report.rows[0].region.parts == ((0, 10),)
    assert "the whole recording" in report.basis


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
