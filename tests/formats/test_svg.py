"""The notebook's timeline is well-formed whatever the names, and bars lie where the turns are."""

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


def test_names_are_escaped():
    (bar,) = bars(Diarization((Turn(0, 1, '<b>&"anna"'),), 2, "<script>"))
    title = bar.find(f"{TAG}title")
    assert title is not None
    assert title.text == '<b>&"anna" 0:00:00.00 - 0:00:01.00'


def test_a_notebook_shows_it():
    recording = Diarization((), 1)
    assert recording._repr_svg_() == svg.format(recording)
    assert "nobody speaks" in svg.format(recording)
