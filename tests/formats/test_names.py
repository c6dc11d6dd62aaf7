"""Any name can be converted to one that is valid in RTTM and UEM; names of people say something."""

import os
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortformer.annotation import Diarization, Turn
from sortformer.errors import InputError
from sortformer.formats import audacity, eaf, textgrid
from sortformer.formats.names import (
    check_name,
    check_names_files,
    check_person,
    one_line,
    without_folder,
    without_white_space,
)


@given(st.text())
def test_a_name_without_white_space_can_be_written(name):
    clean = without_white_space(name)
    assert check_name(clean, "file id") == clean
    assert without_white_space(clean) == clean


def test_white_space_becomes_an_underscore():
    assert without_white_space(" Anna  Maria\t2 ") == "Anna_Maria_2"


def test_files_are_named_without_their_folders_even_if_the_path_of_one_ends_that_of_another():
    assert without_folder("b/ada.wav is like a/b/ada.wav", "b/ada.wav", "a/b/ada.wav") == "ada.wav is like ada.wav"


@pytest.mark.parametrize("control", ["\x00", "\x1b", "\x7f", "\x85", "\x9b"])
def test_control_characters_which_terminals_obey_are_white_space(control):
    assert without_white_space(f"a{control}{control} [2Jb{control}") == "a_[2Jb"
    assert one_line(f"a{control}{control} [2Jb{control}") == "a [2Jb"
    with pytest.raises(InputError, match=r"has white space or control characters, .* write 'a_b'"):
        check_name(f"a{control}b", "file id")


def test_letters_with_marks_are_one_letter():
    assert without_white_space("Jose\N{COMBINING ACUTE ACCENT}") == "Jos\N{LATIN SMALL LETTER E WITH ACUTE}"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        (5, "must be a string, got 5"),
        (None, "must be a string, got None"),
        ("", "'' is empty"),
        (" \t", "is empty"),
        (256 * "E", "the name 'EEEEEEEEEEEEEEEEEEEE'... has more than 255 letters"),
        (" Eve", "begins or ends with white space"),
        ("Eve\n", "begins or ends with white space"),
        ("E\nve", "has control or invalid characters"),
        ("E\tve", "has control or invalid characters"),
        ("E\x00ve", "has control or invalid characters"),
        ("E\u2028ve", "has control or invalid characters"),
        ("E\udcffve", "has control or invalid characters"),
        ("speaker_3", "is a label of the toolkit"),
        ("speaker 3", "is a label of the toolkit"),
        ("3", "is a label of the toolkit"),
        ("Ada L.", "given twice"),
        ("Ada_L.", "given twice"),
    ],
)
def test_names_that_say_nothing_are_refused(name, reason):
    with pytest.raises(InputError, match=reason):
        check_person(name, ["Ada L."])


@pytest.mark.parametrize("name", [255 * "E", "Ada", "the chair", "Zoë 李", "می‌خواهم", "👩‍🚀"])
def test_names_in_any_script_are_taken(name):
    check_person(name, ["Ada L."])


@pytest.mark.parametrize(("format", "said"), [(textgrid, "a TextGrid"), (eaf, "EAF"), (audacity, "an Audacity label")])
def test_two_names_that_are_one_in_a_line_are_refused(format, said):
    two = Diarization((Turn(0, 1, "Ada King"), Turn(1, 2, "Ada\tKing")), 2)
    with pytest.raises(InputError, match=f"same name except for white space, which {said} cannot express: rename one"):
        format.format(two)


@pytest.mark.parametrize("letter", ':*?"<>|')
def test_what_no_file_name_has_on_windows_is_refused_there_only(monkeypatch: pytest.MonkeyPatch, letter: str):
    id = f"meeting{letter}1"
    monkeypatch.setattr(os, "sep", "/")
    assert check_names_files(id) == id
    monkeypatch.setattr(os, "sep", "\\")
    with pytest.raises(InputError, match=f"is used as a file name: write - instead of '{re.escape(letter)}'"):
        check_names_files(id)


@pytest.mark.parametrize("id", ["CON", "nul", "Com1.talk", "lpt² .x"])
def test_the_name_of_a_device_is_refused_on_windows_only(monkeypatch: pytest.MonkeyPatch, id: str):
    monkeypatch.setattr(os, "sep", "/")
    assert check_names_files(id) == id
    monkeypatch.setattr(os, "sep", "\\")
    with pytest.raises(InputError, match="a device of Windows has it: choose another"):
        check_names_files(id)
    assert check_names_files("console") == "console"
    assert check_names_files("my.con") == "my.con"
