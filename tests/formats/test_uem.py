"""UEM: round trips, and errors with line numbers."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortformer.errors import InputError
from sortformer.formats import uem

borders = st.lists(st.integers(0, 10**6), unique=True, max_size=8).map(sorted)


@given(st.dictionaries(st.sampled_from(["a", "b.c", "d-1"]), borders))
def test_reading_back_gives_the_same_regions(files):
    pairs = {
        uri: tuple((a / 1000, b / 1000) for a, b in zip(x[::2], x[1::2], strict=False)) for uri, x in files.items()
    }
    kept = {uri: regions for uri, regions in pairs.items() if regions}
    assert uem.parse(uem.format(kept)) == kept


def test_regions_are_sorted():
    text = ";; comment\n# another\n\nm 1 5 6\nm 1 0.000 2.5\nn 1 4 4\n"
    assert uem.parse(text) == {"m": ((0, 2.5), (5, 6)), "n": ((4, 4),)}
    written = uem.format({"n": [(4, 4)], "m": [(5, 6), (0, 2.5)]})
    assert written == "m 1 0.000 2.500\nm 1 5.000 6.000\nn 1 4.000 4.000\n"


def test_written_regions_have_milliseconds(tmp_path):
    uem.write(tmp_path / "x.uem", {"m": [(0, 30)]})
    assert (tmp_path / "x.uem").read_text() == "m 1 0.000 30.000\n"
    assert uem.read(tmp_path / "x.uem") == {"m": ((0, 30),)}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("m 1 0", "4 fields"),
        ("my talk 1 0 1", "4 fields, this one has 5; write white space in names as _"),
        ("m 1 2 1", "ends at 1.0 s, before it starts at 2.0 s"),
        ("m 1 -1 1", "start must be"),
        ("m 1 0 inf", "end must be"),
    ],
)
def test_a_broken_line_is_refused_with_its_place(line, reason):
    with pytest.raises(InputError, match=re.escape(reason)) as caught:
        uem.parse("\n" + line, "x.uem")
    assert str(caught.value).startswith("x.uem, line 2: ")


@pytest.mark.parametrize(
    ("regions", "reason"),
    [
        ({"two words": [(0, 1)]}, "white space"),
        ({"": [(0, 1)]}, "the file id is empty"),
        ({"#42": [(0, 1)]}, "begins with '#42' would be a comment"),
        ({";": [(0, 1)]}, "begins with ';' would be a comment"),
        ({"m": [(2, 1)]}, "needs 0 <= start <= end in seconds, got 2 to 1"),
        ({"m": [(-1, 1)]}, "got -1 to 1"),
        ({"m": [(0, float("inf"))]}, "got 0 to inf"),
    ],
)
def test_what_could_not_be_read_back_is_not_written(regions, reason):
    with pytest.raises(InputError, match=re.escape(reason)):
        uem.format(regions)
