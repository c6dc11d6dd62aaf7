"""Who spoke when, as immutable values: turns of speakers, and the diarization of one recording."""

from __future__ import annotations

import math
import os
import reprlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from sortformer.errors import InputError
from sortformer.intervals import between, moments, number, union

if TYPE_CHECKING:
    from pyannote.core import Annotation

__all__ = [
    "Diarization",
    "Origin",
    "TimeAxis",
    "Turn",
    "Turns",
    "last_end",
    "merged",
    "shifted",
    "speakers",
    "to_pyannote",
    "window_start",
]

_ROUNDING_S = 1e-6  # tolerance for times, which are rounded in binary


@dataclass(frozen=True, slots=True)
class Turn:
    """A time interval in which one speaker speaks; times in seconds; turns sort by start, end, speaker.

    ``confidence``, if any, is the share of the turn that is expected to be correct, or its mean probability, depending
    on ``PostprocessConfig.confidence``.

    Raises:
        InputError: when the times are not numbers with 0 <= start < end < inf, the confidence is not a finite number,
            or the speaker is not a non-empty string.
    """

    start: float
    end: float
    speaker: str
    confidence: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "start", number("the start of a turn", self.start))
        object.__setattr__(self, "end", number("the end of a turn", self.end))
        if self.confidence is not None:
            object.__setattr__(self, "confidence", number("the confidence of a turn", self.confidence))
            if not math.isfinite(self.confidence):
                raise InputError(f"the confidence of a turn must be a finite number, got {self.confidence}")
        if not (0 <= self.start < self.end < math.inf):
            raise InputError(f"a turn needs 0 <= start < end in seconds, got {self.start} to {self.end}")
        if not isinstance(self.speaker, str) or not self.speaker:
            raise InputError(
                f"the turn from {self.start} to {self.end} s needs the name of its speaker, got {self.speaker!r}"
            )

    def __lt__(self, other: Turn) -> bool:
        if not isinstance(other, Turn):
            return NotImplemented
        return (self.start, self.end, self.speaker) < (other.start, other.end, other.speaker)

    @property
    def duration(self) -> float:
        """Length in seconds."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class TimeAxis:
    """The output frames that a diarization is based on: frame ``t`` starts at ``start_s + t * step_s``."""

    start_s: float
    step_s: float
    num_frames: int


@dataclass(frozen=True, slots=True)
class Origin:
    """Provenance: model, toolkit version, settings (plain JSON values), output frames; warnings, None if unknown."""

    model: str | None = None
    version: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)
    time_axis: TimeAxis | None = None
    warnings: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, repr=False)
class Diarization:
    """The sorted turns of one recording; it can be iterated and indexed like a sequence of turns.

    Turns are clipped to ``[0, duration]`` and those wholly outside are dropped, because annotations often run a little
    past the audio. Turns may overlap, even those of one speaker (see :meth:`merge`).

    Raises:
        InputError: when a turn is not a ``Turn``, the duration is negative or not a finite number, ``uri`` (the
            recording's id) is empty or no string, or ``origin`` is neither an ``Origin`` nor None.
    """

    turns: tuple[Turn, ...]
    duration: float
    uri: str = "audio"
    origin: Origin | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "duration", number("the duration of a recording", self.duration))
        if not 0 <= self.duration < math.inf:
            raise InputError(f"the duration of a recording must be a number of seconds >= 0, got {self.duration}")
        if not (isinstance(self.uri, str) and self.uri):
            raise InputError(f"the id of a recording (uri) must be a non-empty string, got {self.uri!r}")
        if not isinstance(self.origin, Origin | None):
            raise InputError(f"the origin of a diarization must be an Origin, got {reprlib.repr(self.origin)}")
        if not isinstance(self.turns, Iterable):
            raise InputError(f"a diarization needs its turns, then its duration, got {reprlib.repr(self.turns)} first")
        turns = tuple(self.turns)
        if others := [each for each in turns if not isinstance(each, Turn)]:
            raise InputError(f"a diarization holds Turn(start, end, speaker), got {reprlib.repr(others[0])}")
        inside = (turn for turn in turns if turn.start < self.duration)
        clipped = (turn if turn.end <= self.duration else replace(turn, end=self.duration) for turn in inside)
        object.__setattr__(self, "turns", tuple(sorted(clipped)))

    def __iter__(self) -> Iterator[Turn]:
        return iter(self.turns)

    @overload
    def __getitem__(self, index: int) -> Turn: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Turn, ...]: ...

    def __getitem__(self, index: int | slice) -> Turn | tuple[Turn, ...]:
        return self.turns[index]

    def __len__(self) -> int:
        return len(self.turns)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return (
            f"Diarization(uri={self.uri!r}, duration={self.duration:.2f}, speakers={list(self.speakers)}, "
            f"turns={len(self.turns)})"
        )

    def _repr_svg_(self) -> str:
        """Draw a timeline for notebooks."""
        from sortformer.formats import svg

        return svg.format(self)

    @property
    def speakers(self) -> tuple[str, ...]:
        """The speakers in order of arrival; ties are sorted by name."""
        return speakers(self.turns)

    def crop(self, start_s: float, end_s: float) -> Diarization:
        """Return the part between two times as a recording of its own, which starts at 0 and has no ``origin``.

        Raises:
            InputError: when the times are not numbers with ``0 <= start_s <= end_s``, or the start is infinite.
        """
        start_s, end_s = number("the start of a crop", start_s), number("the end of a crop", end_s)
        if not (0 <= start_s <= end_s and start_s < math.inf):
            raise InputError(f"a crop needs 0 <= start <= end in seconds, got {start_s} to {end_s}")
        end_s = max(start_s, min(end_s, self.duration))
        cut = ((max(turn.start, start_s) - start_s, min(turn.end, end_s) - start_s, turn) for turn in self.turns)
        turns = tuple(replace(turn, start=start, end=end) for start, end, turn in cut if start < end)
        return replace(self, turns=turns, duration=end_s - start_s, origin=None)

    def shift(self, seconds: float) -> Diarization:
        """Return the turns shifted to later times, for example from a window to the time of its recording.

        Raises:
            InputError: when the seconds are not a number >= 0.
        """
        seconds = number("a shift", seconds)
        if not 0 <= seconds < math.inf:
            raise InputError(f"a shift must be 0 s or more, got {seconds}")
        origin = self.origin
        if origin is not None and (axis := origin.time_axis) is not None:
            origin = replace(origin, time_axis=replace(axis, start_s=axis.start_s + seconds))
        return replace(self, turns=shifted(self.turns, seconds), duration=self.duration + seconds, origin=origin)

    def within(self, regions: Iterable[tuple[float, float]]) -> Diarization:
        """Return the turns cut to regions (start, end) in seconds, such as those of a UEM; times do not change.

        Raises:
            InputError: when a region is not two numbers, or ends before it starts.
        """
        parts = union(regions)
        cut = ((turn, part) for turn in self.turns for part in between(parts, turn.start, turn.end))
        return replace(self, turns=tuple(replace(turn, start=start, end=end) for turn, (start, end) in cut))

    def alone(self) -> Diarization:
        """Return the turns cut to where exactly one speaker speaks; ``exclusive`` gives overlap to one instead."""
        speech = ((turn.start, turn.end, turn.speaker) for turn in merged(self.turns))
        return self.within((start, end) for start, end, active in moments(speech) if len(active) == 1)

    def merge(self, gap_s: float = 0.0) -> Diarization:
        """Join overlapping and touching turns of one speaker, and those at most ``gap_s`` seconds apart.

        Raises:
            InputError: when the gap is negative, or not a number.
        """
        if not (isinstance(gap_s, Real) and gap_s >= 0):
            raise InputError(f"gap_s must be 0 seconds or more, got {gap_s!r}")
        return replace(self, turns=merged(self.turns, gap_s))

    def relabel(self, mapping: Mapping[str, str]) -> Diarization:
        """Rename speakers; those not in the mapping keep their names. Two speakers may be merged into one.

        Raises:
            InputError: when a speaker in the mapping has no turn here, or it is not a mapping.
        """
        if not isinstance(mapping, Mapping):
            raise InputError(f"relabel needs a mapping of names to new names, got {type(mapping).__name__}")
        if absent := sorted(set(mapping) - set(self.speakers), key=str):
            raise InputError(f"{self.uri} has no speaker {absent[0]!r}, only {', '.join(self.speakers) or 'silence'}")
        return replace(
            self, turns=tuple(replace(turn, speaker=mapping.get(turn.speaker, turn.speaker)) for turn in self.turns)
        )

    def to_rttm(self) -> str:
        """Return RTTM lines (see :mod:`sortformer.formats.rttm`).

        Raises:
            InputError: when two names of speakers differ in white space only, which is written as ``_``.
        """
        from sortformer.formats import rttm

        return rttm.format(self)

    @classmethod
    def from_rttm(
        cls, path: str | os.PathLike[str], uri: str | None = None, duration: float | None = None
    ) -> Diarization:
        """Read a recording from an RTTM file; without a duration (seconds) it ends with the last turn.

        Args:
            uri: the recording's id, in which white space counts as the ``_`` of RTTM; required if the file has several
                recordings (``formats.rttm.read`` returns all of them).

        Raises:
            InputError: when the file is missing or invalid, has several recordings without ``uri``, or not that one.
        """
        from sortformer.formats import names, rttm

        if not isinstance(uri, str | None):
            raise InputError(f"the id of a recording (uri) must be a string, got {uri!r}; duration= is its duration")
        uri = None if uri is None else names.without_white_space(uri)
        found = rttm.read(path) or {uri or Path(path).stem: ()}
        if uri is None and len(found) == 1:
            uri = next(iter(found))
        if uri is None or uri not in found:
            wanted = "give one of them as uri" if uri is None else f"not of {uri!r}"
            raise InputError(f"{path} has turns of {', '.join([*found][:5])}{', ...' * (len(found) > 5)}: {wanted}")
        return cls(found[uri], last_end(found[uri]) if duration is None else duration, uri)

    @classmethod
    def from_json(cls, path: str | os.PathLike[str]) -> Diarization:
        """Read the JSON document of a recording, as written by :meth:`to_json`.

        Raises:
            InputError: when the file is missing, or not such a document (see :mod:`sortformer.formats.json`).
        """
        from sortformer.formats import json

        return json.read(path)

    def warned(self, warnings: Iterable[str], *files: str) -> Diarization:
        """Return it with these warnings in its ``origin``: those that were given while it was made.

        They name ``files``, paths that they may contain, without their folders.
        """
        from sortformer.formats.names import without_folder

        told = tuple(without_folder(each, *files) for each in warnings)
        return replace(self, origin=replace(self.origin or Origin(), warnings=told))

    def to_json(self) -> str:
        """Return a JSON document (see :mod:`sortformer.formats.json`)."""
        from sortformer.formats import json

        return json.format(self)

    def to_text(self) -> str:
        """Return plain text for reading (see :mod:`sortformer.formats.text`)."""
        from sortformer.formats import text

        return text.format(self)

    def to_html(self) -> str:
        """Return a web page to view, play and correct it (see :mod:`sortformer.formats.html`)."""
        from sortformer.formats import html

        return html.format(self)

    def to_pyannote(self) -> Annotation:
        """Return a ``pyannote.core.Annotation``; confidence and duration are lost."""
        return to_pyannote(self.turns, self.uri)

    @classmethod
    def from_pyannote(cls, annotation: Annotation, duration: float | None = None) -> Diarization:
        """Build from a ``pyannote.core.Annotation``; without a duration it ends with the last turn.

        Raises:
            InputError: when it is not an ``Annotation``.
        """
        if not hasattr(annotation, "itertracks"):
            raise InputError(f"a pyannote Annotation is needed, got {type(annotation).__name__}")
        turns = tuple(
            Turn(segment.start, segment.end, str(label))
            for segment, _, label in annotation.itertracks(yield_label=True)  # pyright: ignore[reportAssignmentType]
        )
        return cls(turns, last_end(turns) if duration is None else duration, str(annotation.uri or "audio"))


Turns = Sequence[Turn] | Diarization
"""The turns of a recording; as a diarization, with its duration."""


def window_start(recording: Diarization) -> float:
    """Return the start of a window in its file, in seconds: 0 unless it was shifted, and not after any turn."""
    axis = recording.origin.time_axis if recording.origin else None
    return 0.0 if axis is None else min([axis.start_s, *(turn.start for turn in recording)])


def last_end(turns: Iterable[Turn]) -> float:
    """Return the latest end of the turns in seconds, 0 without turns."""
    return max((turn.end for turn in turns), default=0.0)


def speakers(turns: Iterable[Turn]) -> tuple[str, ...]:
    """Return the speakers in order of their earliest start; ties are sorted by name."""
    return tuple(dict.fromkeys(each.speaker for each in sorted(turns, key=lambda turn: (turn.start, turn.speaker))))


def merged(turns: Iterable[Turn], gap_s: float = 0.0) -> tuple[Turn, ...]:
    """Join the turns of each speaker that overlap, touch or are at most ``gap_s`` seconds apart; return them sorted.

    The confidence of a joined turn is the mean over its parts, weighted by duration; None if a part has none.
    """
    groups: list[list[Turn]] = []
    last: dict[str, list[Turn]] = {}
    ends: dict[str, float] = {}
    for turn in sorted(turns):
        end = ends.get(turn.speaker, -math.inf)
        if turn.start <= end + gap_s + _ROUNDING_S:
            last[turn.speaker].append(turn)
        else:
            last[turn.speaker] = [turn]
            groups.append(last[turn.speaker])
        ends[turn.speaker] = max(end, turn.end)
    return tuple(sorted(group[0] if len(group) == 1 else _joined(group) for group in groups))


def _joined(group: list[Turn]) -> Turn:
    weighted = [turn.confidence * turn.duration for turn in group if turn.confidence is not None]
    confidence = None
    if len(weighted) == len(group):
        confidence = math.fsum(weighted) / math.fsum(turn.duration for turn in group)
    return Turn(group[0].start, max(turn.end for turn in group), group[0].speaker, confidence)


def to_pyannote(turns: Iterable[Turn], uri: str = "audio") -> Annotation:
    """Return turns as a ``pyannote.core.Annotation``, each on a separate track, since they may overlap."""
    from pyannote.core import Annotation, Segment

    annotation = Annotation(uri=uri)
    for track, turn in enumerate(turns):
        annotation[Segment(turn.start, turn.end), track] = turn.speaker
    return annotation


def shifted(turns: Iterable[Turn], seconds: float) -> tuple[Turn, ...]:
    """Return the turns shifted by ``seconds``."""
    return tuple(replace(turn, start=turn.start + seconds, end=turn.end + seconds) for turn in turns)
