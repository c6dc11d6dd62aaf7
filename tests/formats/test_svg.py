"""The notebook's timeline is well-formed for any names, with bars where the turns are."""

import xml.etree.ElementTree as ElementTree

from hypothesis import given

from sortformer.annotation import Diarization, Turn
from sortformer.formats import svg
from tests.strategies import diarizations

TAG = "{http://www.w3.org/2000/svg}"


def bars(recording: Diarization) -> list[ElementTree.Element]:
    return [
        rect
        for rect in ElementTree.fromstring(svg.format(recording)).iter(f"{TAG}rect")
        if rect.find(f"{TAG}title") is not None
    ]


@given(diarizations())
def test_one_bar_a_turn_inside_the_image(recording):
    found = bars(recording)
    assert len(found) == len(recording)
    for bar in found:
        assert float(bar.attrib["x"]) + float(bar.attrib["width"]) <= 800.51


def test_bars_are_where_the_turns_are_beside_the_name_of_their_speaker():
    recording = Diarization((Turn(0, 5, "Ada"), Turn(5, 7.5, "Bob")), 10)
    names = {
        text.text: float(text.attrib["y"]) for text in ElementTree.fromstring(svg.format(recording)).iter(f"{TAG}text")
    }
    for turn, bar in zip(recording, bars(recording), strict=True):
        x, y, width, height = (float(bar.attrib[name]) for name in ("x", "y", "width", "height"))
        assert (x, width) == (130 + 67 * turn.start, 67 * turn.duration)
        assert y < names[turn.speaker] < y + height


def test_each_speaker_has_a_row_and_a_colour():
    turns = tuple(Turn(at, at + 1, f"speaker_{at % 9}") for at in range(12))
    rows = {bar.attrib["y"]: bar.attrib["fill"] for bar in bars(Diarization(turns, 12))}
    assert [int(y) for y in rows] == [26 + 22 * row for row in range(9)]
    assert list(rows.values()) == [*svg.COLOURS, svg.COLOURS[0]]


def test_names_are_escaped():
    (bar,) = bars(Diarization((Turn(0, 1, '<b>&"anna"'),), 2, "<script>"))
    title = bar.find(f"{TAG}title")
    assert title is not None
    assert title.text == '<b>&"anna" 0:00:00.00 - 0:00:01.00'


def test_it_shrinks_with_the_notebook_and_is_dark_on_a_white_ground_of_its_own():
    for turns in ((), (Turn(0, 1, "a"),)):
        image = ElementTree.fromstring(svg.format(Diarization(turns, 2)))
        assert image.attrib["viewBox"] == f"0 0 {image.attrib['width']} {image.attrib['height']}"
        assert image.attrib["style"] == "max-width:100%;height:auto"
        ground = image[0].attrib
        assert (ground["width"], ground["height"], ground["fill"]) == ("800", image.attrib["height"], "#ffffff")
        assert {text.attrib["fill"] for text in image.iter(f"{TAG}text")} == {"#333333"}


def test_a_notebook_shows_it():
    recording = Diarization((), 1)
    assert recording._repr_svg_() == svg.format(recording)
    assert "nobody speaks" in svg.format(recording)
    assert "nobody speaks" not in svg.format(Diarization((Turn(0, 1, "a"),), 1))
