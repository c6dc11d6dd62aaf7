"""Any name can be converted to one that is valid in RTTM and UEM."""

from hypothesis import given
from hypothesis import strategies as st

from sortformer.formats.names import check_name, without_white_space


@given(st.text())
def test_a_name_without_white_space_can_be_written(name):
    clean = without_white_space(name)
    assert check_name(clean, "file id") == clean
    assert without_white_space(clean) == clean


def test_white_space_becomes_an_underscore():
    assert without_white_space(" Anna  Maria\t2 ") == "Anna_Maria_2"


def test_letters_with_marks_are_one_letter():
    assert without_white_space("Jose\N{COMBINING ACUTE ACCENT}") == "Jos\N{LATIN SMALL LETTER E WITH ACUTE}"
