"""A picture of one recording: probabilities, the turns decided on them, the reference turns, and where they differ."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import linear_sum_assignment

from sortformer.annotation import Diarization, Turns, speakers
from sortformer.estimates import Probabilities
from sortformer.extras import require_extra
from sortformer.formats.svg import COLOURS, shortened
from sortformer.metrics.compared import KINDS, Stretch, compared
from sortformer.warned import warn

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["FORMATS", "figure", "image"]

FORMATS = ("png", "svg", "pdf", "jpg")
"""File formats of pictures."""

_UNMATCHED = "#bbbbbb"
_STYLES = ("-", "--", ":")
_WIDTH_IN = 12.0
_DOTS_A_MINUTE = 480  # within these limits of dots per inch
_FEWEST_DPI, _MOST_DPI = 120, 400
_MOST_STEPS = 1000  # points of a curve: more would be a solid block of colour
_IN_SECONDS = 120.0  # longer recordings have a time axis in minutes
_LACKING = re.compile(r"Glyph (\d+) .*missing from")  # matplotlib's warning about one character


def figure(probabilities: Probabilities, diarization: Diarization, reference: Turns | None = None) -> Figure:
    """Return the picture; a slot, its speaker and the reference speaker with the greatest overlap share a colour.

    A curve is labelled with the speaker of its turns, or "voice 3" if slot 3 has none; if there are more curves than
    colours, others are dashed.

    Curves of long recordings are means over several frames, so that they can be told apart. Their pictures have a
    higher resolution, up to 4800 dots across, but the same width in inches, so that text stays readable on a screen.
    Errors are those of the protocol ``full``.

    Raises:
        InputError: when matplotlib is not installed.
    """
    require_extra("a picture", "plot", "matplotlib")
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    rows = [speakers(diarization), *([] if reference is None else [speakers(reference), KINDS])]
    heights = [2.4, *(0.4 + 0.3 * max(1, len(names)) for names in rows)]
    dpi = min(max(_FEWEST_DPI, probabilities.duration / 60 * _DOTS_A_MINUTE / _WIDTH_IN), _MOST_DPI)
    picture = Figure(figsize=(_WIDTH_IN, sum(heights) + 0.8), dpi=dpi, layout="constrained")
    axes = picture.subplots(len(heights), sharex=True, height_ratios=heights, squeeze=False)[:, 0]

    slots = probabilities.data.shape[1]
    colours = [COLOURS[slot % len(COLOURS)] for slot in range(slots)]
    shortest_s = probabilities.duration / _MOST_STEPS  # of a bar, so that it can be seen
    own = _matched(diarization, probabilities.data, probabilities)
    speaker_of = {slot: name for name, slot in own.items()}
    labels = [shortened(speaker_of.get(slot, f"voice {slot}")) for slot in range(slots)]
    columns = 8 if max(map(len, labels), default=0) <= 10 else 4
    _curves(axes[0], probabilities, colours, labels, columns)
    above_legend = 6 + 15 * -(-slots // columns)  # in points
    axes[0].set_title(shortened(diarization.uri, 60), loc="left", pad=above_legend, parse_math=False)
    _bars(axes[1], diarization, {name: colours[slot] for name, slot in own.items()}, "turns", shortest_s)
    if reference is not None:
        same = _matched(reference, _masks(diarization, rows[0], probabilities), probabilities)
        shades = {name: colours[own[rows[0][index]]] for name, index in same.items() if rows[0][index] in own}
        _bars(axes[2], reference, shades, "reference", shortest_s)
        _lanes(axes[3], compared(reference, diarization).errors)
    axes[-1].set_xlim(0, probabilities.duration)
    if probabilities.duration <= _IN_SECONDS:
        axes[-1].set_xlabel("seconds")
    else:
        axes[-1].set_xlabel("minutes")
        axes[-1].xaxis.set_major_locator(MaxNLocator(nbins=15, steps=[1, 1.5, 3, 6, 10]))
        axes[-1].xaxis.set_major_formatter(lambda at, _: f"{int(at) // 60}:{int(at) % 60:02d}")
    picture.align_ylabels()
    return picture


def image(picture: Figure, format: str = "png") -> bytes:
    """Return a picture as one of :data:`FORMATS`.

    Warns:
        SortformerWarning: when matplotlib's font lacks characters, once for all of them.
    """
    content, lacking = io.BytesIO(), []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        picture.savefig(content, format=format, dpi="figure")
    for warning in caught:
        if match := _LACKING.match(str(warning.message)):
            lacking.append(chr(int(match[1])))
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    if lacking:
        warn(
            f"the picture's font lacks {' '.join(dict.fromkeys(lacking))}, shown as boxes instead: "
            "set font.family in a matplotlibrc file to a font that has them",
            stacklevel=2,
        )
    return content.getvalue()


def _curves(axes: Axes, probabilities: Probabilities, colours: list[str], labels: list[str], columns: int) -> None:
    num_frames = len(probabilities.data)
    first = np.arange(0, num_frames, max(1, -(-num_frames // _MOST_STEPS)))
    edges = np.append(first, num_frames)
    means = np.add.reduceat(probabilities.data, first) / np.diff(edges)[:, None] if num_frames else probabilities.data
    times = edges * probabilities.step_s
    for slot, colour in enumerate(colours):
        style = _STYLES[slot // len(COLOURS) % len(_STYLES)]
        axes.stairs(means[:, slot], times, baseline=None, color=colour, linestyle=style, linewidth=1.0, label=str(slot))
    axes.set_ylim(-0.02, 1.02)
    axes.set_ylabel("probability")
    legend = axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=columns, fontsize="small", frameon=False)
    for text, label in zip(legend.get_texts(), labels, strict=True):  # matplotlib hides labels that begin with _
        text.set(text=label, parse_math=False)


def _bars(axes: Axes, turns: Turns, colours: dict[str, str], title: str, shortest_s: float) -> None:
    names = speakers(turns)
    for row, name in enumerate(names):
        spans = [(turn.start, max(turn.duration, shortest_s)) for turn in turns if turn.speaker == name]
        axes.broken_barh(spans, (row - 0.35, 0.7), facecolors=colours.get(name, _UNMATCHED))
    axes.set_ylim(max(1, len(names)) - 0.5, -0.5)
    axes.set_yticks(range(len(names)), map(shortened, names), parse_math=False)
    axes.set_ylabel(title)
    if not names:
        axes.set_yticks([])
        axes.text(0.5, 0.5, "nobody speaks", transform=axes.transAxes, ha="center", va="center", color="#777777")


def _lanes(axes: Axes, wrong: Sequence[Stretch]) -> None:
    for row, kind in enumerate(KINDS):
        spans = [(each.start, each.end - each.start) for each in wrong if kind in each.kinds]
        axes.broken_barh(spans, (row - 0.25, 0.5), facecolors="#222222")
    axes.set_ylim(len(KINDS) - 0.5, -0.5)
    axes.set_yticks(range(len(KINDS)), KINDS)
    axes.set_ylabel("errors")


def _matched(turns: Turns, activity: np.ndarray, probabilities: Probabilities) -> dict[str, int]:
    """Assign a column of an activity (T, N) to each speaker by overlap; return its index, for speakers with any."""
    names = speakers(turns)
    shared = _masks(turns, names, probabilities).T @ activity
    pairs = zip(*linear_sum_assignment(shared, maximize=True), strict=True)
    return {names[row]: int(column) for row, column in pairs if shared[row, column] > 0}


def _masks(turns: Turns, names: Sequence[str], probabilities: Probabilities) -> np.ndarray:
    """Return for each speaker (T, N), 1 in the frames whose middle lies in a turn of the speaker, else 0."""
    middles = (np.arange(len(probabilities.data)) + 0.5) * probabilities.step_s
    masks = np.zeros((len(middles), len(names)))
    for turn in turns:
        masks[(turn.start <= middles) & (middles < turn.end), names.index(turn.speaker)] = 1
    return masks
