"""EAF, the annotation format of ELAN: one tier per speaker, with an annotation for each turn.

XML, as in the Max Planck Institute's "EAF Annotation Format 3.0 and ELAN" and its schema, ``EAFv3.0.xsd``::

    ANNOTATION_DOCUMENT: HEADER, and
        TIME_ORDER: of each TIME_SLOT           TIME_SLOT_ID, and TIME_VALUE in milliseconds, if it is aligned
        TIER: TIER_ID, and if any               PARTICIPANT, and the PARENT_REF of a tier that depends on another
            ANNOTATION, ALIGNABLE_ANNOTATION    TIME_SLOT_REF1, TIME_SLOT_REF2, and ANNOTATION_VALUE, its text
        LINGUISTIC_TYPE                         the kind of a tier

The annotations of a tier cannot overlap. The schema requires a date: it is always the same, so that the same turns give
the same file. A diarization does not know the file of its recording, so there is no link to it (MEDIA_DESCRIPTOR).
"""

import os
from collections.abc import Iterable
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement
from xml.parsers.expat import ErrorString

from sortformer.annotation import Diarization, Turn
from sortformer.errors import InputError
from sortformer.formats.names import one_line, renamed
from sortformer.formats.passages import Said
from sortformer.formats.segments import segments
from sortformer.formats.source import quoted, read_text
from sortformer.formats.spacing import joined
from sortformer.formats.write import write_text
from sortformer.grid import LONGEST_S

__all__ = ["format", "parse", "read", "write"]

_DOCUMENT = {
    "AUTHOR": "",
    "DATE": "1970-01-01T00:00:00Z",
    "FORMAT": "3.0",
    "VERSION": "3.0",
    "xmlns:xsi": "http://www.w3.org/2001/XMLSchema-instance",
    "xsi:noNamespaceSchemaLocation": "http://www.mpi.nl/tools/elan/EAFv3.0.xsd",
}
_TYPE = "default-lt"  # as in a new document of ELAN
_NOT_XML = str.maketrans("\ufffe\uffff", 2 * "\N{REPLACEMENT CHARACTER}")


def parse(text: str, source: str = "EAF") -> tuple[Turn, ...]:
    """Return the turns, sorted: each annotation of a tier that depends on no other, whatever its text.

    The speaker is the participant of the tier or, without one, its name.

    Raises:
        InputError: with the source, when it is not EAF, has a DTD, or a tier has no name, or an annotation no times or
            length.
    """
    if "<!DOCTYPE" in text:  # its entities could expand to gigabytes
        raise InputError(f"{source} has a document type declaration, which EAF does not have: save it in ELAN")
    try:
        document = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise InputError(f"{source}, line {error.position[0]}: {ErrorString(error.code)}; is this EAF?") from error
    if document.tag != "ANNOTATION_DOCUMENT":
        raise InputError(f"{source} is not EAF: it begins with {quoted(document.tag)}, not with ANNOTATION_DOCUMENT")
    times = {slot.get("TIME_SLOT_ID"): slot.get("TIME_VALUE", "") for slot in document.iterfind("TIME_ORDER/TIME_SLOT")}
    turns = list[Turn]()
    for tier in document.iterfind("TIER"):
        if tier.get("PARENT_REF"):
            continue  # words, translations and the like of the speech in another tier
        speaker = tier.get("PARTICIPANT", "").strip() or tier.get("TIER_ID", "").strip()
        if not speaker:
            raise InputError(f"{source}: a tier has no name, so its speaker is unknown; name it in ELAN")
        for each in tier.iterfind("ANNOTATION/ALIGNABLE_ANNOTATION"):
            start, end = (times.get(each.get(f"TIME_SLOT_REF{side}"), "") for side in (1, 2))
            if not (start.isdecimal() and end.isdecimal() and float(start) < float(end) <= 1000 * LONGEST_S):
                raise InputError(
                    f"{source}: annotation {quoted(each.get('ANNOTATION_ID', ''))} of {quoted(speaker)} needs "
                    f"0 <= start < end in milliseconds, got {quoted(start)} and {quoted(end)}; align it in ELAN"
                )
            turns.append(Turn(float(start) / 1000, float(end) / 1000, one_line(speaker)))
    return tuple(sorted(turns))


def read(path: str | os.PathLike[str]) -> tuple[Turn, ...]:
    """Read an EAF file (see :func:`parse`)."""
    return parse(read_text(path), os.fspath(path))


def format(recording: Diarization, words: Iterable[Said] | None = None) -> str:
    """Return EAF of a recording: its :func:`~sortformer.formats.segments.segments`, turns or words, by speaker.

    Tiers are in order of arrival. A turn is an annotation without text. Overlapping words of one speaker share an
    annotation, and words without length last a millisecond.

    Raises:
        InputError: when the names of two speakers differ only in white space, or an item is not a word in the form of
            ``assign_speakers``.
    """
    tiers = {name: list[tuple[int, int, str]]() for name in renamed(recording, _plain, "EAF").speakers}
    for segment in segments(recording, words):
        own = tiers.setdefault(_plain(segment.speaker), [])
        start, said = round(1000 * segment.start), _plain(segment.words) if segment.words else ""
        end = max(start + 1, round(1000 * segment.end))
        if own and start < own[-1][1]:
            start, last, before = own.pop()
            end, said = max(last, end), joined((before, said))
        own.append((start, end, said))
    document = Element("ANNOTATION_DOCUMENT", _DOCUMENT)
    SubElement(document, "HEADER", TIME_UNITS="milliseconds")
    order, times = SubElement(document, "TIME_ORDER"), list[int]()
    for name, annotations in tiers.items():
        tier = SubElement(document, "TIER", TIER_ID=name, LINGUISTIC_TYPE_REF=_TYPE)
        for start, end, said in annotations:
            times += start, end
            _annotate(tier, len(times) // 2, said)
    for time, number in sorted((time, number) for number, time in enumerate(times, start=1)):
        SubElement(order, "TIME_SLOT", TIME_SLOT_ID=f"ts{number}", TIME_VALUE=str(time))
    SubElement(document, "LINGUISTIC_TYPE", LINGUISTIC_TYPE_ID=_TYPE, TIME_ALIGNABLE="true", GRAPHIC_REFERENCES="false")
    ElementTree.indent(document)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(document, "unicode")}\n'


def _annotate(tier: Element, number: int, text: str) -> None:
    """Add an annotation; it shares its time slots with no other, so that one can be moved without the others."""
    slots = {f"TIME_SLOT_REF{side}": f"ts{2 * number - 2 + side}" for side in (1, 2)}
    annotation = SubElement(tier, "ANNOTATION")
    aligned = SubElement(annotation, "ALIGNABLE_ANNOTATION", {"ANNOTATION_ID": f"a{number}", **slots})
    SubElement(aligned, "ANNOTATION_VALUE").text = text


def _plain(text: str) -> str:
    """Return text in one line, without the two characters that XML cannot express."""
    return one_line(text).translate(_NOT_XML)


def write(
    path: str | os.PathLike[str],
    recording: Diarization,
    words: Iterable[Said] | None = None,
    *,
    overwrite: bool = False,
) -> None:
    """Write an EAF file atomically (see :func:`format`)."""
    write_text(path, format(recording, words), overwrite=overwrite)
