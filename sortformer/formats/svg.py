"""A timeline as SVG, with one row per speaker and one bar per turn: the display of a diarization in notebooks."""

from html import escape

from sortformer.annotation import Diarization
from sortformer.formats.names import one_line
from sortformer.formats.text import clock

__all__ = ["COLOURS", "format", "shortened"]

_NAME_WIDTH, _WIDTH, _ROW, _TOP = 130, 800, 22, 26
COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bb5566", "#555555")
"""The colours of the speakers, in order; they repeat."""


def format(recording: Diarization) -> str:
    """Return a self-contained SVG image on white, also in a dark notebook; hovering over a bar shows its times.

    It is 800 pixels wide, or narrower if there is less room.
    """
    scale = (_WIDTH - _NAME_WIDTH) / max(recording.duration, 1e-9)
    names = recording.speakers
    height = _TOP + _ROW * max(1, len(names))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" '
        'style="max-width:100%;height:auto" font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="4" y="16" fill="#333333">{escape(shortened(recording.uri, 60))}</text>',
        f'<text x="{_WIDTH - 4}" y="16" fill="#333333" text-anchor="end">{clock(recording.duration)}</text>',
    ]
    for row, name in enumerate(names):
        y, colour = _TOP + _ROW * row, COLOURS[row % len(COLOURS)]
        parts.append(f'<text x="4" y="{y + 13}" fill="#333333">{escape(shortened(name))}</text>')
        parts.extend(
            f'<rect x="{_NAME_WIDTH + turn.start * scale:.2f}" y="{y}" width="{max(turn.duration * scale, 0.5):.2f}" '
            f'height="{_ROW - 5}" rx="2" fill="{colour}">'
            f"<title>{escape(name)} {clock(turn.start)} - {clock(turn.end)}</title></rect>"
            for turn in recording
            if turn.speaker == name
        )
    if not names:
        parts.append(f'<text x="4" y="{_TOP + 13}" fill="#333333">nobody speaks</text>')
    return "".join(parts) + "</svg>"


def shortened(name: str, length: int = 18) -> str:
    """Return a name as it is drawn: in one line, and cut with an ellipsis if it has more letters than ``length``."""
    line = one_line(name)
    return line if len(line) <= length else line[: length - 1] + "…"
