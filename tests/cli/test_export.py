"""``export``: turns in other formats."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from sortformer.annotation import Diarization, Origin, TimeAxis, Turn
from sortformer.formats import audacity, eaf, rttm, seglst, stm, textgrid
from sortformer.formats import json as documents
from sortformer.formats.gather import turns_in
from sortformer.words import Word
from tests.cli.conftest import Cli

TALK = Diarization((Turn(0.5, 2.0, "Ada", 0.9), Turn(1.5, 3.25, "Bob", 0.75)), 4.0, "talk")
WORDS = [{"start": 0.6, "end": 1.0, "word": " Hello"}, {"start": 6.0, "end": 6.5, "word": " Ada."}]


@pytest.fixture
def corrected(tmp_path: Path) -> Path:
    rttm.write(tmp_path / "corrected" / "talk.rttm", TALK)
    return tmp_path / "corrected" / "talk.rttm"


@pytest.fixture
def said(tmp_path: Path) -> Path:
    (tmp_path / "said").mkdir()
    (tmp_path / "said" / "talk.json").write_text(json.dumps(WORDS))
    return tmp_path / "said" / "talk.json"


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("talk.rttm", rttm.write),
        ("talk.TextGrid", textgrid.write),
        ("talk.eaf", eaf.write),
        ("talk.stm", stm.write),
        ("talk.seglst.json", seglst.write),
        ("talk.json", documents.write),
        ("talk.labels.txt", audacity.write),
    ],
)
def test_turns_are_the_same_in_every_format_that_is_read(cli: Cli, tmp_path: Path, name: str, write):
    write(tmp_path / name, TALK)
    outcome = cli("export", tmp_path / name, "-f", "rttm,json,stm,seglst,textgrid,eaf,audacity", "-o", tmp_path / "out")
    assert (outcome.code, outcome.err) == (0, "1 recording exported\n")
    for path in (tmp_path / "out").iterdir():
        found = turns_in(path)["talk"]
        assert [(turn.start, turn.end, turn.speaker) for turn in found] == [(0.5, 2.0, "Ada"), (1.5, 3.25, "Bob")]


def test_a_text_grid_tells_how_long_its_recording_is(cli: Cli, tmp_path: Path):
    textgrid.write(tmp_path / "my talk.TextGrid", TALK)
    assert cli("export", tmp_path, "-f", "txt").out.splitlines()[:2] == (
        ["my talk  0:00:04.00  2 speakers", "  Ada  0:00:01.50   37.5 %"]
    )
    outcome = cli("export", tmp_path / "my talk.TextGrid", "-f", "textgrid")
    assert outcome.out == (tmp_path / "my talk.TextGrid").read_text()


def test_corrected_turns_get_the_words_of_a_transcript_that_goes_on_after_them(cli: Cli, corrected: Path, said: Path):
    outcome = cli("export", corrected, "--words", said, "-f", "srt")
    subtitles = ["1\n00:00:00,600 --> 00:00:01,000\nAda: Hello\n", "2\n00:00:06,000 --> 00:00:06,500\nBob: Ada.\n"]
    assert (outcome.code, outcome.out, outcome.err) == (0, "\n".join(subtitles), "")
    outcome = cli("export", corrected, "--words", said.parent, "-f", "json")
    assert json.loads(outcome.out)["duration"] == 6.5
    said.write_text("[]")
    outcome = cli("export", corrected, "--words", said, "-f", "json")
    assert json.loads(outcome.out)["duration"] == 3.25


@pytest.mark.parametrize("suffix", [".mp3", ".FLAC", ".wav", ".en"])
def test_a_transcript_may_be_named_after_the_audio(cli: Cli, corrected: Path, said: Path, suffix: str):
    said.rename(said.with_name(f"talk{suffix}.json"))  # as whisper.cpp does
    assert "Ada: Hello" in cli("export", corrected, "--words", said.parent, "-f", "txt").out


def test_json_knows_more_than_its_turns(cli: Cli, said: Path, tmp_path: Path):
    talk = Diarization(TALK.turns, 4.0, "my talk")
    documents.write(tmp_path / "talk.json", talk)
    outcome = cli("export", tmp_path / "talk.json", "-f", "json,csv", "--words", said, "-o", tmp_path / "out")
    assert "1 of 2 words begin after the end of my talk (4 s)" in outcome.err
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["my talk.csv", "my talk.json"]
    assert Diarization.from_json(tmp_path / "out" / "my talk.json") == talk


def test_json_with_words_is_their_transcript(cli: Cli, tmp_path: Path):
    words = [Word(0.6, 1.0, " Hello", "Ada"), Word(2.2, 2.5, " Ada.", "Bob")]
    path = tmp_path / "talk.json"
    path.write_text(documents.format(TALK, words))
    for transcript in (path, tmp_path):
        outcome = cli("export", path, "--words", transcript, "-f", "json")
        assert outcome.out == path.read_text()


def test_of_a_window_only_the_words_in_it_are_written(cli: Cli, said: Path, tmp_path: Path):
    window = replace(TALK, origin=Origin(time_axis=TimeAxis(0.0, 0.08, 50))).shift(5.0)
    documents.write(tmp_path / "talk.json", window)
    outcome = cli("export", tmp_path / "talk.json", "-f", "csv", "--words", said)
    assert outcome.out.splitlines()[1:] == ["talk,6.000,6.500,Ada,,Ada."]
    longer = replace(window, turns=(Turn(0.5, 1.0, "Bob"), *window.turns))  # a correction, before the window
    documents.write(tmp_path / "talk.json", longer, overwrite=True)
    outcome = cli("export", tmp_path / "talk.json", "-f", "csv", "--words", said)
    assert outcome.out.splitlines()[1:] == ["talk,0.600,1.000,Bob,,Hello", "talk,6.000,6.500,Ada,,Ada."]


def test_a_file_knows_the_spaces_that_rttm_cannot_write(cli: Cli, said: Path, tmp_path: Path):
    rttm.write(tmp_path / "corrected" / "my talk.rttm", Diarization(TALK.turns, 4.0, "my talk"))
    said.rename(said.with_name("my talk.json"))
    options = ("--words", said.parent, "-f", "srt,rttm", "-o", tmp_path / "out")
    assert cli("export", tmp_path / "corrected", *options).code == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["my talk.rttm", "my talk.srt"]
    assert turns_in(tmp_path / "out").keys() == {"my_talk"}


def test_of_a_folder_with_several_formats_it_says_which_is_read(cli: Cli, corrected: Path):
    documents.write(corrected.with_suffix(".json"), TALK)
    assert cli("export", corrected.parent, "-f", "csv").err == ""
    eaf.write(corrected.with_suffix(".eaf"), TALK)
    outcome = cli("export", corrected.parent, "-f", "csv")
    assert f"warning: {corrected.parent} has turns in .rttm and .eaf: using only those in .rttm; " in outcome.err


def test_several_recordings_are_in_one_file_or_in_a_folder(cli: Cli, corrected: Path, tmp_path: Path):
    corrected.with_name("quiet.rttm").touch()
    outcome = cli("export", corrected.parent, "-f", "txt")
    assert "quiet  0:00:00.00  nobody speaks\n" in outcome.out
    assert "\ntalk  0:00:03.25  2 speakers\n" in outcome.out
    both = tmp_path / "both.rttm"
    both.write_text(corrected.read_text() + corrected.read_text().replace(" talk ", " other "))
    outcome = cli("export", both, "-f", "textgrid", "-o", tmp_path / "out")
    assert outcome.err == "2 recordings exported\n"
    assert [line.split(",")[0] for line in cli("export", both, "-f", "csv").out.splitlines()] == (
        ["recording", "talk", "talk", "other", "other"]
    )
    assert [json.loads(line)["uri"] for line in cli("export", both, "-f", "json").out.splitlines()] == ["talk", "other"]
    assert turns_in(tmp_path / "out").keys() == {"talk", "other"}
    (tmp_path / "out" / "talk.TextGrid").unlink()
    outcome = cli("export", both, "-f", "textgrid", "-o", tmp_path / "out", "--skip-existing")
    assert outcome.err == "1 recording exported, 1 skipped\n"


def test_with_a_uem_only_its_regions_are_written(cli: Cli, corrected: Path, tmp_path: Path):
    (tmp_path / "talk.uem").write_text("talk 1 1.0 1.75\n")
    outcome = cli("export", corrected, "-f", "audacity", "--uem", tmp_path / "talk.uem")
    assert outcome.out == "1.000\t1.750\tAda\n1.500\t1.750\tBob\n"


def test_where_one_recording_has_an_error_none_is_written(cli: Cli, corrected: Path, said: Path, tmp_path: Path):
    rttm.write(corrected.with_name("zoo.rttm"), Diarization(TALK.turns, 4.0, "zoo"))
    outcome = cli("export", corrected.parent, "-f", "srt", "--words", said.parent, "-o", tmp_path / "out")
    assert outcome.code == 1
    assert outcome.errors[0].startswith(f"{said.parent} has no zoo.json or ")
    assert not any((tmp_path / "out").iterdir())


@pytest.mark.parametrize("option", [(), ("--overwrite",)])
def test_the_input_is_never_replaced(cli: Cli, corrected: Path, option: tuple[str, ...]):
    content = corrected.read_bytes()
    outcome = cli("export", corrected, "-f", "rttm,txt", "-o", corrected.parent, *option)
    assert outcome.errors == [f"{corrected} is the input, not a result: give another folder with -o"]
    assert [path.name for path in corrected.parent.iterdir()] == ["talk.rttm"]
    assert corrected.read_bytes() == content


def test_a_recording_is_exported_once(cli: Cli, corrected: Path, tmp_path: Path):
    stm.write(tmp_path / "talk.stm", TALK)
    outcome = cli("export", corrected, tmp_path / "talk.stm", "-f", "json")
    assert outcome.errors[0].startswith(f"{corrected} and {tmp_path / 'talk.stm'} are both named 'talk', and so would")


def test_names_that_differ_in_case_only_need_two_files(
    cli: Cli, corrected: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("sortformer.cli.results.ignores_case", lambda _: True)
    rttm.write(tmp_path / "other.rttm", Diarization(TALK.turns, 4.0, "TALK"))
    assert cli("export", corrected, tmp_path / "other.rttm", "-f", "rttm").code == 0
    outcome = cli("export", corrected, tmp_path / "other.rttm", "-f", "rttm", "-o", tmp_path / "out")
    assert "are named 'talk' and 'TALK', one file name in this folder" in outcome.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("-f", "srt"), "-f srt needs words: give a transcript with --words"),
        (("-f", "mp3"), "there is no format 'mp3'; choose from rttm"),
        (("-f", "rttm,txt"), "only one format can be written to stdout"),
        ((), "Missing option '--format'"),
    ],
)
def test_options_that_cannot_be_are_usage_errors(cli: Cli, corrected: Path, options: tuple[str, ...], said: str):
    outcome = cli("export", corrected, *options)
    assert outcome.code == 2
    assert said in outcome.err


@pytest.mark.parametrize(("name", "write"), [("talk.rttm", rttm.write), ("talk.json", documents.write)])
def test_a_name_that_is_no_file_name_is_refused(cli: Cli, tmp_path: Path, name: str, write):
    write(tmp_path / name, Diarization(TALK.turns, 4.0, "../talk"))
    outcome = cli("export", tmp_path / name, "-f", "txt", "-o", tmp_path / "out")
    assert outcome.errors == ["the id '../talk' is used as a file name: write - instead of '/'"]


@pytest.mark.skipif(os.sep != "/", reason="a backslash separates folders here")
@pytest.mark.parametrize(("name", "write"), [("talk.rttm", rttm.write), ("talk.json", documents.write)])
def test_a_name_with_a_backslash_is_a_file_name_where_it_separates_nothing(cli: Cli, tmp_path: Path, name: str, write):
    """As unzip makes of a folder in an archive from Windows, and diarize of such a file."""
    write(tmp_path / name, Diarization(TALK.turns, 4.0, r"back\talk"))
    assert cli("export", tmp_path / name, "-f", "txt", "-o", tmp_path / "out").code == 0
    assert (tmp_path / "out" / r"back\talk.txt").exists()
