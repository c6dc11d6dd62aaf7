"""Turns from files in any format: a recording has one name in all of them."""

from pathlib import Path

import pytest

from sortformer.annotation import Diarization, Turn
from sortformer.errors import InputError
from sortformer.formats import audacity, eaf, json, rttm, seglst, stm, textgrid
from sortformer.formats.gather import files_in, turns_in


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("talk.rttm", rttm.write),
        ("my talk.TextGrid", textgrid.write),
        ("my talk.eaf", eaf.write),
        ("talk.stm", stm.write),
        ("talk.seglst.json", seglst.write),
        ("talk.json", json.write),
        ("my talk.labels.txt", audacity.write),
    ],
)
def test_white_space_in_the_name_of_a_recording_is_an_underline_in_every_format(tmp_path: Path, name: str, write):
    turns = (Turn(0.5, 2.0, "ann"),)
    write(tmp_path / name, Diarization(turns, 4.0, "my talk"))
    assert turns_in(tmp_path / name) == {"my_talk": turns}


def test_json_lines_with_a_recording_twice_are_refused(tmp_path: Path):
    found = [Diarization((Turn(0.5, 2.0, name),), 4.0, "my talk") for name in ("ann", "bob")]
    (tmp_path / "all.jsonl").write_text("".join(json.format(each, one_line=True) for each in found))
    with pytest.raises(InputError, match=r"all.jsonl contains the recording 'my_talk' twice: keep only one"):
        turns_in(tmp_path / "all.jsonl")


def test_hidden_files_and_subfolders_are_left_alone(tmp_path: Path):
    (tmp_path / "three.rttm").mkdir()
    for name in ("two.RTTM", "one.rttm", "._one.rttm", "one.stm"):  # the third as macOS leaves it on other disks
        (tmp_path / name).touch()
    assert files_in(tmp_path, ".rttm", ".stm") == [tmp_path / "one.rttm", tmp_path / "two.RTTM"]
