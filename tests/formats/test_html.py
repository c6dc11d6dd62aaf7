"""The page holds its result as data, for any names, and has no external references; behaviour: test_page.py."""

import json as standard
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortformer.annotation import Diarization, Origin, TimeAxis, Turn
from sortformer.errors import InputError
from sortformer.formats import html, json, rttm
from tests.strategies import diarizations


class Scripts(HTMLParser):
    """The texts of a page's scripts, by id, or in order without one."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: dict[str | int, str] = {}
        self.inside: str | int | None = None
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        if tag == "script":
            self.inside = dict(attrs).get("id") or len(self.found)
            self.found[self.inside] = ""

    def handle_endtag(self, tag):
        if tag == "script":
            self.inside = None

    def handle_data(self, data):
        if self.inside is not None:
            self.found[self.inside] += data


def embedded(page: str) -> Diarization:
    return json.parse(page.partition('<script type="application/json" id="result">')[2].partition("</script>")[0])


@given(diarizations(grid=1000), st.lists(st.floats(0, 1), min_size=10, max_size=10))
def test_the_result_in_it_gives_the_same_json_and_rttm(recording, confidences):
    turns = (Turn(t.start, t.end, t.speaker, sure) for t, sure in zip(recording, confidences, strict=False))
    original = Diarization(tuple(turns), recording.duration, "a", Origin("m", "1", {}, TimeAxis(0.0, 0.08, 25)))
    found = embedded(html.format(original))
    assert json.format(found) == original.to_json()
    assert rttm.format(found) == original.to_rttm()
    assert found.origin == original.origin


HOSTILE = [
    "</script><script>",
    "<!--<script>",
    "]]>",
    "{{style}}",
    "\\1",
    "\"'&amp;",
    "\u2028\u2029",
    "__proto__",
    "\0",
    "😀",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_stays_data(name):
    recording = Diarization((Turn(0, 1, name),), 2, name, Origin(name, name, {name: name}))
    page = html.format(recording)
    assert embedded(page) == recording
    plain = Scripts(html.format(Diarization((), 2))).found
    assert {**Scripts(page).found, "result": ""} == {**plain, "result": ""}
    assert page.isascii()


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_of_a_comparison_stays_data(name):
    comparison = {
        "score": name,
        "reference": [{"speaker": name, "pair": None, "turns": []}],
        "scored": [],
        "errors": [],
    }
    found = Scripts(html.format(Diarization((), 2), comparison=comparison)).found
    assert standard.loads(found["comparison"]) == comparison
    plain = Scripts(html.format(Diarization((), 2))).found
    assert (plain["comparison"], {**found, "comparison": "null"}) == ("null", plain)


def test_it_refers_to_nothing_outside():
    page = html.format(Diarization((Turn(0, 1, "a"),), 2))
    assert not re.search(r"https?:|\b(src|href)=|@import|url\(|\bfetch\b|XMLHttpRequest|\bimport\b", page)
    assert "default-src 'none'" in page  # nor could it


def luminance(colour: str) -> float:
    """The relative luminance of "#rrggbb" (WCAG 2.2)."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_have_the_contrast_that_wcag_asks_for(theme: str):
    """4.5 to 1 for text (1.4.3); 3 to 1 for the borders of controls, the waveform and the cursor (1.4.11)."""
    light, dark = re.findall(r":root {(.+?)}", html.format(Diarization((), 2)), re.DOTALL)[:2]
    colours = dict(re.findall(r"--(\w+): (#\w+)", light if theme == "light" else light + dark))
    everywhere = ("ground", "panel", "button")
    for front, least in {"ink": 4.5, "quiet": 4.5, "faint": 3, "cursor": 3}.items():
        for back in (*everywhere, *(("chosen", "heard") if least > 3 else ())):
            darker, lighter = sorted(luminance(colours[each]) for each in (front, back))
            assert (lighter + 0.05) / (darker + 0.05) >= least, (front, back)


def test_it_is_written_whole_and_over_nothing(tmp_path):
    recording = Diarization((Turn(0, 1, "a"),), 2)
    html.write(tmp_path / "x.html", recording)
    assert (tmp_path / "x.html").read_text(encoding="ascii") == html.format(recording) == recording.to_html()
    with pytest.raises(InputError, match="exists already"):
        html.write(tmp_path / "x.html", recording)
