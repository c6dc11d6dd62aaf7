"""EAF: a tier per speaker, whose annotations do not overlap, as in ELAN."""

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from xml.dom.minidom import Element, parseString

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortformer.annotation import Diarization, Turn
from sortformer.errors import InputError
from sortformer.formats import eaf
from sortformer.formats.segments import segments
from sortformer.words import Word
from tests.formats.test_textgrid import in_one_line, names
from tests.strategies import diarizations

Tier = tuple[str, list[tuple[int, int, str]]]

TALK = Diarization((Turn(0.5, 1.25, 'Ada "the chair"'), Turn(1, 2.5004, "Jürgen & Söhne\n<3")), 2.500375)


def tiers(text: str) -> list[Tier]:
    """Return the name of each tier and its annotations: start, end and value."""
    document = parseString(text.encode())
    times = {
        slot.getAttribute("TIME_SLOT_ID"): int(slot.getAttribute("TIME_VALUE"))
        for slot in document.getElementsByTagName("TIME_SLOT")
    }

    def annotation(found: Element) -> tuple[int, int, str]:
        (value,) = found.getElementsByTagName("ANNOTATION_VALUE")
        start, end = (times.pop(found.getAttribute(f"TIME_SLOT_REF{side}")) for side in (1, 2))
        return start, end, value.firstChild.data if value.firstChild else ""

    assert list(times.values()) == sorted(times.values())
    found = [
        (tier.getAttribute("TIER_ID"), [annotation(each) for each in tier.getElementsByTagName("ALIGNABLE_ANNOTATION")])
        for tier in document.getElementsByTagName("TIER")
    ]
    assert not times  # each belongs to one annotation
    return found


def in_xml(text: str) -> str:
    return in_one_line(text).replace("\ufffe", "\ufffd").replace("\uffff", "\ufffd")


@given(diarizations(grid=1000), names)
def test_the_annotations_are_the_turns(recording, names):
    written, expected = (
        replace(recording, turns=tuple(replace(turn, speaker=name("abcd".index(turn.speaker))) for turn in recording))
        for name in (names.__getitem__, lambda place: in_xml(names[place]))
    )
    turns = [(turn.speaker, (round(1000 * turn.start), round(1000 * turn.end), "")) for turn in expected.merge()]
    assert tiers(eaf.format(written)) == [
        (who, [part for speaker, part in turns if speaker == who]) for who in expected.speakers
    ]


words = st.builds(
    lambda start, length, text, speaker: Word(start / 1000, (start + length) / 1000, text, speaker),
    st.integers(0, 5000),
    st.integers(0, 2000),
    st.sampled_from(["a", " b", "會", "\0", "&<\ufffe"]),
    st.sampled_from(["a", "b", None]),
)


@given(diarizations(grid=1000), st.lists(words, max_size=12))
def test_words_are_annotations_that_do_not_overlap(recording, words):
    read = tiers(eaf.format(recording, words))
    for _, parts in read:
        assert all(start < end for start, end, _ in parts)
        assert all(before[1] <= after[0] for before, after in pairwise(parts))
    expected = dict.fromkeys(recording.speakers, "")
    for segment in segments(recording, words):
        expected[segment.speaker] = expected.get(segment.speaker, "") + in_xml(segment.words).replace(" ", "")
    assert {name: "".join(said for _, _, said in parts).replace(" ", "") for name, parts in read} == expected


def test_words_of_one_speaker_around_those_of_another_are_one_annotation():
    said = [Word(0, 1, "good", "a"), Word(0.2, 0.4, "yes", "b"), Word(0.4, 0.9, "day", "a"), Word(3, 3, "oh", "a")]
    assert tiers(eaf.format(Diarization((Turn(0, 1, "b"),), 4), said)) == [
        ("b", [(200, 400, "yes")]),
        ("a", [(0, 1000, "good day"), (3000, 3001, "oh")]),
    ]


def test_a_document_is_exactly_as_elan_wants_it(tmp_path: Path):
    eaf.write(tmp_path / "x.eaf", TALK, [Word(0.5, 1, "Well & good", 'Ada "the chair"')])
    assert (tmp_path / "x.eaf").read_text(encoding="utf-8") == (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<ANNOTATION_DOCUMENT AUTHOR="" DATE="1970-01-01T00:00:00Z" FORMAT="3.0" VERSION="3.0" '
        'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
        'xsi:noNamespaceSchemaLocation="http://www.mpi.nl/tools/elan/EAFv3.0.xsd">\n'
        '  <HEADER TIME_UNITS="milliseconds" />\n'
        "  <TIME_ORDER>\n"
        '    <TIME_SLOT TIME_SLOT_ID="ts1" TIME_VALUE="500" />\n'
        '    <TIME_SLOT TIME_SLOT_ID="ts2" TIME_VALUE="1000" />\n'
        "  </TIME_ORDER>\n"
        '  <TIER TIER_ID="Ada &quot;the chair&quot;" LINGUISTIC_TYPE_REF="default-lt">\n'
        "    <ANNOTATION>\n"
        '      <ALIGNABLE_ANNOTATION ANNOTATION_ID="a1" TIME_SLOT_REF1="ts1" TIME_SLOT_REF2="ts2">\n'
        "        <ANNOTATION_VALUE>Well &amp; good</ANNOTATION_VALUE>\n"
        "      </ALIGNABLE_ANNOTATION>\n"
        "    </ANNOTATION>\n"
        "  </TIER>\n"
        '  <TIER TIER_ID="Jürgen &amp; Söhne &lt;3" LINGUISTIC_TYPE_REF="default-lt" />\n'
        '  <LINGUISTIC_TYPE LINGUISTIC_TYPE_ID="default-lt" TIME_ALIGNABLE="true" GRAPHIC_REFERENCES="false" />\n'
        "</ANNOTATION_DOCUMENT>\n"
    )


def test_where_nobody_speaks_there_are_no_tiers():
    assert tiers(eaf.format(Diarization((), 10))) == []


ELAN = """<?xml version="1.0" encoding="UTF-8"?>
<ANNOTATION_DOCUMENT AUTHOR="" DATE="2024-05-06T07:08:09+02:00" FORMAT="3.0" VERSION="3.0"
    xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
    xsi:noNamespaceSchemaLocation="http://www.mpi.nl/tools/elan/EAFv3.0.xsd">
    <HEADER MEDIA_FILE="" TIME_UNITS="milliseconds">
        <MEDIA_DESCRIPTOR MEDIA_URL="file:///talk.mp4" MIME_TYPE="video/mp4" RELATIVE_MEDIA_URL="./talk.mp4"/>
        <PROPERTY NAME="lastUsedAnnotationId">4</PROPERTY>
    </HEADER>
    <TIME_ORDER>
        <TIME_SLOT TIME_SLOT_ID="ts1" TIME_VALUE="0"/>
        <TIME_SLOT TIME_SLOT_ID="ts2"/>
        <TIME_SLOT TIME_SLOT_ID="ts3" TIME_VALUE="1250"/>
        <TIME_SLOT TIME_SLOT_ID="ts4" TIME_VALUE="2500"/>
    </TIME_ORDER>
    <TIER LINGUISTIC_TYPE_REF="refT" PARTICIPANT="Ada &amp; Eve" TIER_ID="ref@Ada">
        <ANNOTATION>
            <ALIGNABLE_ANNOTATION ANNOTATION_ID="a1" TIME_SLOT_REF1="ts1" TIME_SLOT_REF2="ts3">
                <ANNOTATION_VALUE>well, no</ANNOTATION_VALUE>
            </ALIGNABLE_ANNOTATION>
        </ANNOTATION>
    </TIER>
    <TIER LINGUISTIC_TYPE_REF="orthT" PARENT_REF="ref@Ada" PARTICIPANT="Ada" TIER_ID="orth@Ada">
        <ANNOTATION>
            <REF_ANNOTATION ANNOTATION_ID="a2" ANNOTATION_REF="a1">
                <ANNOTATION_VALUE>no</ANNOTATION_VALUE>
            </REF_ANNOTATION>
        </ANNOTATION>
    </TIER>
    <TIER LINGUISTIC_TYPE_REF="wordT" PARENT_REF="ref@Ada" TIER_ID="word@Ada">
        <ANNOTATION>
            <ALIGNABLE_ANNOTATION ANNOTATION_ID="a3" TIME_SLOT_REF1="ts1" TIME_SLOT_REF2="ts2">
                <ANNOTATION_VALUE>well</ANNOTATION_VALUE>
            </ALIGNABLE_ANNOTATION>
        </ANNOTATION>
    </TIER>
    <TIER LINGUISTIC_TYPE_REF="refT" PARTICIPANT="" TIER_ID="Bob">
        <ANNOTATION>
            <ALIGNABLE_ANNOTATION ANNOTATION_ID="a4" TIME_SLOT_REF1="ts3" TIME_SLOT_REF2="ts4">
                <ANNOTATION_VALUE/>
            </ALIGNABLE_ANNOTATION>
        </ANNOTATION>
    </TIER>
    <LINGUISTIC_TYPE GRAPHIC_REFERENCES="false" LINGUISTIC_TYPE_ID="refT" TIME_ALIGNABLE="true"/>
    <CONSTRAINT DESCRIPTION="1-1 association with a parent annotation" STEREOTYPE="Symbolic_Association"/>
</ANNOTATION_DOCUMENT>
"""


@given(diarizations(grid=1000), names)
def test_reading_back_gives_the_merged_turns(recording, names):
    speakers = [in_xml(name) for name in names]
    turns = tuple(replace(turn, speaker=speakers["abcd".index(turn.speaker)]) for turn in recording)
    original = replace(recording, turns=turns).merge()
    assert eaf.parse(eaf.format(original)) == original.turns


def test_annotations_of_tiers_that_depend_on_no_other_are_turns():
    assert eaf.parse(ELAN) == (Turn(0, 1.25, "Ada & Eve"), Turn(1.25, 2.5, "Bob"))


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_every_encoding_with_its_mark_is_read(tmp_path: Path, encoding: str):
    (tmp_path / "x.eaf").write_text(ELAN.replace("Bob", "会議"), encoding=encoding, newline="\r\n")
    assert [turn.speaker for turn in eaf.read(tmp_path / "x.eaf")] == ["Ada & Eve", "会議"]


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        (ELAN, "", ", line 1: no element found; is this EAF?"),
        (ELAN, "SPEAKER m 1 0 1 <NA>", ", line 1: syntax error; is this EAF?"),
        (ELAN, "<html/>", " is not EAF: it begins with 'html', not with ANNOTATION_DOCUMENT"),
        ("    </TIME_ORDER>\n", "", ", line 44: mismatched tag; is this EAF?"),
        ("&amp;", "&bomb;", ", line 15: undefined entity; is this EAF?"),
        ("<ANNO", '<!DOCTYPE x [<!ENTITY b "bomb">]><ANNO', " has a document type declaration, which EAF does not"),
        ('"Bob"', '" "', ": a tier has no name, so its speaker is unknown; name it in ELAN"),
        ("2500", "1250", ": annotation 'a4' of 'Bob' needs 0 <= start < end in milliseconds, got '1250' and '1250'"),
        *(("2500", wrong, f", got '1250' and '{wrong}'; align it") for wrong in ("-1", "2e3", "1e999", "²", "9" * 20)),
        (' TIME_VALUE="2500"', "", ", got '1250' and ''; align it in ELAN"),
        (' TIME_VALUE="0"', "", ", got '' and '1250'; align it in ELAN"),
        ('TIME_SLOT_REF2="ts4"', "", ", got '1250' and ''; align it in ELAN"),
    ],
)
def test_a_broken_document_is_refused_with_its_place(before: str, after: str, reason: str):
    assert before in ELAN
    with pytest.raises(InputError, match=re.escape(reason)) as caught:
        eaf.parse(ELAN.replace(before, after, 1), "x.eaf")
    assert str(caught.value).startswith("x.eaf")


@pytest.mark.oracle
def test_what_pympi_writes_is_read(tmp_path: Path):
    package = pytest.importorskip("pympi", reason="pympi-ling is absent")
    document = package.Eaf(author="pympi")
    document.add_tier("Bob", part="Ada")
    document.add_annotation("Bob", 500, 1250, "well")
    document.to_file(str(tmp_path / "x.eaf"))
    assert eaf.read(tmp_path / "x.eaf") == (Turn(0.5, 1.25, "Ada"),)


@pytest.mark.oracle
@pytest.mark.parametrize("recording", [TALK, Diarization((), 2.5)])
@pytest.mark.parametrize("words", [None, [Word(0.5, 1, "Well,", "Jürgen"), Word(1, 2, "& good", "Jürgen")]])
def test_pympi_finds_the_same(tmp_path: Path, recording: Diarization, words: list[Word] | None):
    package = pytest.importorskip("pympi", reason="pympi-ling is absent")
    eaf.write(tmp_path / "x.eaf", recording, words)
    found = package.Eaf(str(tmp_path / "x.eaf"))
    read = [(name, sorted(found.get_annotation_data_for_tier(name))) for name in found.get_tier_names()]
    assert read == tiers(eaf.format(recording, words))
