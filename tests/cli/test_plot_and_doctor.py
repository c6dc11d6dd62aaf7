"""``sortformer plot`` and ``sortformer doctor``."""

import os
from pathlib import Path
from typing import Any

import pytest

from sortformer.diarizer import Diarizer
from sortformer.doctor import Finding
from sortformer.estimates import Probabilities
from tests.cli.conftest import Cli

RTTM = "SPEAKER meeting 1 0.000 1.000 <NA> <NA> Zoe <NA> <NA>\n"


def test_plot_writes_a_picture_and_its_name(cli: Cli, model: Path, wav: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(wav.parent)
    (wav.parent / "meeting.rttm").write_text(RTTM)
    outcome = cli("plot", wav, "--model", model, "--reference", "meeting.rttm")
    assert (outcome.code, outcome.out) == (0, "meeting.png\n")
    assert (wav.parent / "meeting.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", [r"a$\x$_y", os.fsdecode(b"b\xff")], ids=["formula", "no unicode"])
def test_any_name_of_a_file_can_be_drawn(cli: Cli, model: Path, wav: Path, monkeypatch: pytest.MonkeyPatch, name: str):
    monkeypatch.chdir(wav.parent)
    wav.rename(f"{name}.wav")
    shown = name.replace("\udcff", "?")
    Path("truth.rttm").write_text(RTTM.replace("meeting", shown))
    outcome = cli("plot", f"{name}.wav", "--model", model, "--reference", "truth.rttm")
    assert (outcome.code, outcome.out, outcome.err) == (0, f"{shown}.png\n", "")
    assert Path(f"{shown}.png").read_bytes().startswith(b"\x89PNG")
    outcome = cli("plot", f"{name}.wav", "--model", model, "-o", f"{name}.svg")
    assert (outcome.code, outcome.out) == (0, f"{shown}.svg\n")


def test_plot_replaces_nothing_unasked(cli: Cli, model: Path, wav: Path, tmp_path: Path):
    picture = tmp_path / "mine.png"
    picture.write_bytes(b"mine")
    outcome = cli("plot", wav, "--model", "absent", "-o", picture)
    assert (outcome.code, picture.read_bytes()) == (1, b"mine")
    assert outcome.errors == [f"{picture} exists already; use --overwrite, or another name with -o"]
    assert cli("plot", wav, "--model", model, "-o", picture, "--overwrite").code == 0
    assert picture.read_bytes() != b"mine"


def test_a_picture_is_written_by_its_suffix_or_refused(cli: Cli, model: Path, wav: Path, tmp_path: Path):
    assert cli("plot", wav, "--model", model, "-o", tmp_path / "x.jpg").code == 0
    assert (tmp_path / "x.jpg").read_bytes().startswith(b"\xff\xd8\xff")
    outcome = cli("plot", wav, "--model", model, "-o", tmp_path / "x.doc")
    assert outcome.code == 2
    assert "x.doc: end its name in .png, .svg, .pdf, .jpg" in " ".join(outcome.err.split())


def test_a_stream_and_voices_are_drawn_as_asked(
    cli: Cli, model: Path, wav: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    heard, inside = [], Diarizer.probabilities

    def listening(self: Diarizer, *given: Any, **options: Any) -> Probabilities:
        heard.append((options["preset"], self.postprocess.clustering and self.postprocess.clustering.threshold))
        return inside(self, *given, **options)

    monkeypatch.setattr(Diarizer, "probabilities", listening)
    for number, asked in enumerate(([], ["--preset", "0.3s"], ["--clustering", "0.4"])):
        assert cli("plot", wav, "--model", model, "-o", tmp_path / f"{number}.png", *asked).code == 0
    assert heard == [(None, None), ("0.3s", None), (None, 0.4)]
    assert cli("plot", wav, "--model", model, "-o", tmp_path / "x.png", "--preset", "7s").code == 2


def test_one_channel_is_drawn_where_it_is_asked_for(cli: Cli, model: Path, wav: Path, tmp_path: Path):
    outcome = cli("plot", wav, "--model", model, "-o", tmp_path / "x.png", "--channel", "2")
    assert (outcome.code, "has 1 channel" in outcome.err) == (1, True)


def test_a_reference_of_another_recording_is_refused(cli: Cli, model: Path, wav: Path, tmp_path: Path):
    (tmp_path / "other.rttm").write_text(RTTM.replace("meeting", "lecture"))
    outcome = cli("plot", wav, "--model", model, "-o", tmp_path / "x.svg", "--reference", tmp_path / "other.rttm")
    assert outcome.code == 1
    assert "has turns of 'lecture': not of 'meeting'" in outcome.errors[0]


def test_a_reference_may_be_what_score_reads(cli: Cli, model: Path, wav: Path, tmp_path: Path):
    folder = tmp_path / "references"
    folder.mkdir()
    (folder / "lecture.rttm").write_text(RTTM.replace("meeting", "lecture"))
    (folder / "meeting.rttm").write_text(RTTM)
    (tmp_path / "all.stm").write_text("meeting 1 Zoe 0.0 1.0 so\n")
    (tmp_path / "meeting.rttm").touch()  # nobody speaks
    for place in (folder, tmp_path / "all.stm", tmp_path / "meeting.rttm"):
        asked = ("--model", model, "-o", tmp_path / "x.svg", "--reference", place, "--overwrite")
        assert cli("plot", wav, *asked).code == 0
        assert ("Zoe" in (tmp_path / "x.svg").read_text()) == (place.name != "meeting.rttm")


def test_a_reference_has_the_name_that_rttm_can_write(cli: Cli, model: Path, wav: Path, tmp_path: Path):
    recording = Path(wav).rename(Path(wav).with_name("my meeting.wav"))
    (tmp_path / "x.rttm").write_text(RTTM.replace("meeting", "my_meeting"))
    asked = ("--model", model, "-o", tmp_path / "x.svg", "--reference", tmp_path / "x.rttm")
    assert cli("plot", recording, *asked).code == 0
    assert "Zoe" in (tmp_path / "x.svg").read_text()


def test_doctor_passes_and_fails_with_its_exit_code(cli: Cli, model: Path, tmp_path: Path):
    outcome = cli("doctor", "--model", model)
    assert outcome.code == 0
    assert all(line.startswith("ok ") for line in outcome.out.splitlines())
    outcome = cli("doctor", "--model", tmp_path / "absent")
    assert outcome.code == 1
    assert [line for line in outcome.out.splitlines() if line.startswith("FAIL  weights: ")]


def test_one_check_that_fails_is_a_failure_whatever_comes_after_it(cli: Cli, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sortformer.doctor.examine", lambda *_: [Finding("audio", "no", False), Finding("end", "yes")])
    outcome = cli("doctor")
    assert (outcome.code, outcome.out) == (1, "FAIL  audio: no\nok    end: yes\n")
