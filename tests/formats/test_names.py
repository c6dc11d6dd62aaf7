"""Ids of recordings come from paths, are unique and can be written."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortformer.errors import InputError
from sortformer.formats.names import check_name, file_ids, without_white_space


@given(st.text())
def test_a_name_without_white_space_can_be_written(name):
    clean = without_white_space(name)
    assert check_name(clean, "file id") == clean
    assert without_white_space(clean) == clean


def test_white_space_becomes_an_underscore():
    assert without_white_space(" Anna  Maria\t2 ") == "Anna_Maria_2"


def test_an_id_is_the_base_name_without_suffix():
    assert file_ids(["a/my meeting.wav", "b/x.y.flac"]) == {
        Path("a/my meeting.wav"): "my_meeting",
        Path("b/x.y.flac"): "x.y",
    }


@pytest.mark.parametrize("other", ["b/x.wav", "a/x.flac"])
def test_two_files_of_one_name_are_refused(other):
    with pytest.raises(InputError, match="the same name 'x'"):
        file_ids(["a/x.wav", other])
