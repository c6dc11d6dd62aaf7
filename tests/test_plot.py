"""The plot shows each slot, turn and reference speaker, in matching colours."""

import io
import sys
import warnings
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.colors import to_hex
from PIL import Image

from sortformer.annotation import Diarization, Turn
from sortformer.errors import InputError
from sortformer.estimates import Probabilities
from sortformer.formats.svg import COLOURS
from sortformer.plot import FORMATS, figure, image


@pytest.fixture
def probabilities() -> Probabilities:
    """Ten seconds: slot 1 speaks in the first half and slot 0 in the second."""
    data = np.full((125, 3), 0.1, np.float32)
    data[:62, 1] = data[62:, 0] = 0.9
    return Probabilities(data, 0.08, 10.0)


RESULT = Diarization((Turn(0, 4.96, "speaker_0"), Turn(4.96, 10, "speaker_1")), 10.0, "meeting")


def bars(axes) -> dict[str, str]:
    """Return the colours of bars by the name of their row; all are within the panel."""
    bottom, top = axes.get_ylim()
    names = {label.get_position()[1]: label.get_text() for label in axes.get_yticklabels()}
    colours = {}
    for collection in axes.collections:
        places = np.concatenate([path.vertices[:, 1] for path in collection.get_paths()])
        assert top <= places.min() < places.max() <= bottom
        row = places.mean()
        name = next(name for place, name in names.items() if abs(place - row) < 0.3)
        colours[name] = to_hex(collection.get_facecolor()[0])
    return colours


def test_a_speaker_has_the_colour_of_the_slot_and_of_the_reference(probabilities: Probabilities):
    reference = [Turn(0.5, 4, "Zoe"), Turn(5, 9, "Adam"), Turn(3, 3.1, "passer-by")]
    curves, turns, truth, _ = figure(probabilities, RESULT, reference).axes
    slots = [to_hex(patch.get_edgecolor()) for patch in curves.patches]
    assert len(set(slots)) == 3
    assert bars(turns) == {"speaker_0": slots[1], "speaker_1": slots[0]}
    assert bars(truth) == {"Zoe": slots[1], "Adam": slots[0], "passer-by": "#bbbbbb"}
    assert curves.get_title(loc="left") == "meeting"
    assert truth.get_xlim() == (0, 10)
    assert curves.get_ylim() == pytest.approx((0, 1), abs=0.05)
    assert [path.get_extents().intervalx.tolist() for each in turns.collections for path in each.get_paths()] == [
        [0, 4.96],
        [4.96, 10],
    ]


def test_text_stays_in_the_picture_and_the_name_clear_of_the_legend():
    """With twelve speakers, short names or long ones, and with line breaks."""
    probabilities = Probabilities(np.eye(12, dtype=np.float32).repeat(10, axis=0), 0.1, 12.0)
    for name in ("speaker_{}", "{} of Philadelphia,\n" + "and Wolfeschlegelsteinhausenbergerdorff " * 3):
        result = Diarization(tuple(Turn(at, at + 0.5, name.format(at)) for at in range(12)), 12.0, "recording " * 20)
        picture = figure(probabilities, result, result)
        picture.draw_without_rendering()
        curves, turns = picture.axes[:2]
        assert curves.get_position().width > 0.75
        title, legend = curves._left_title.get_window_extent(), curves.get_legend().get_window_extent()
        assert not title.overlaps(legend)
        for box in (title, legend, *(each.get_window_extent() for each in turns.get_yticklabels())):
            assert picture.bbox.x0 <= box.x0 < box.x1 <= picture.bbox.x1
            assert picture.bbox.y0 <= box.y0 < box.y1 <= picture.bbox.y1


def test_a_brief_turn_of_a_long_recording_can_be_seen():
    """On a screen of 1440 pixels: the colour is 108 and the background 255."""
    result = Diarization((Turn(1800, 1800.3, "speaker_0"),), 3600.0)
    picture = figure(Probabilities(np.eye(1, 3600, dtype=np.float32).T, 1.0, 3600.0), result)
    shown = Image.open(io.BytesIO(image(picture))).convert("L")
    shown = np.array(shown.resize((1440, shown.height * 1440 // shown.width)))
    box = picture.axes[1].get_position()
    seen = shown[round((1 - (box.y0 + box.y1) / 2) * len(shown)), round(1440 * box.x0) + 5 : round(1440 * box.x1) - 5]
    assert seen.min() < 200


def test_who_is_never_heard_has_nobodys_colour(probabilities: Probabilities):
    found = Diarization(RESULT.turns[:1], 10.0, "meeting")
    truth = figure(probabilities, found, [Turn(5, 9, "Adam")]).axes[2]
    assert bars(truth) == {"Adam": "#bbbbbb"}


def test_who_has_no_slot_has_nobodys_colour(probabilities: Probabilities):
    """More speakers than slots, as voices are told apart by clustering."""
    found = Diarization(tuple(Turn(2 * at, 2 * at + 2, f"speaker_{at}") for at in range(5)), 10.0)
    curves, turns, truth, _ = figure(probabilities, found, found).axes
    assert set(bars(turns).values()) == {*(to_hex(patch.get_edgecolor()) for patch in curves.patches), "#bbbbbb"}
    assert bars(truth) == bars(turns)


def legend(curves) -> list[str]:
    return [text.get_text() for text in curves.get_legend().get_texts()]


def test_a_curve_is_called_as_the_speaker_of_its_turns(probabilities: Probabilities):
    odd = r"_a$\x$"
    picture = figure(probabilities, RESULT.relabel({"speaker_0": odd}))
    assert legend(picture.axes[0]) == ["speaker_1", odd, "voice 2"]
    assert image(picture).startswith(b"\x89PNG")


def test_curves_that_share_a_colour_differ_in_their_lines():
    data = np.full((125, 20), 0.1, np.float32)
    curves = figure(Probabilities(data, 0.08, 10.0), Diarization((), 10.0)).axes[0]
    looks = [(to_hex(patch.get_edgecolor()), patch.get_linestyle()) for patch in curves.patches]
    assert len(set(looks)) == 20
    assert len({line for _, line in looks[: len(COLOURS)]}) == 1


def test_errors_are_drawn_where_they_are(probabilities: Probabilities):
    reference = [Turn(0, 4.96, "Zoe"), Turn(4.96, 9, "Adam"), Turn(7, 8, "Eve")]
    *_, wrong = figure(probabilities, RESULT, reference).axes
    assert [label.get_text() for label in wrong.get_yticklabels()] == ["miss", "false alarm", "confusion"]
    spans = [[path.get_extents().intervalx.tolist() for path in each.get_paths()] for each in wrong.collections]
    assert spans == [[[7, 8]], [[9, 10]], []]


def test_an_hour_is_drawn_in_means_and_minutes():
    data = np.random.default_rng(0).random((45_000, 2), np.float32)
    curves, turns = figure(Probabilities(data, 0.08, 3600.0), Diarization((), 3600.0)).axes
    values, edges, _ = curves.patches[1].get_data()
    assert len(values) <= 1000
    assert (edges[0], edges[-1]) == pytest.approx((0, 3600))
    for index in (0, 500, -1):
        start, end = np.rint(edges[:-1][index] / 0.08), np.rint(edges[1:][index] / 0.08)
        assert values[index] == pytest.approx(data[int(start) : int(end), 1].mean())
    assert turns.get_xlabel() == "minutes"
    assert [turns.xaxis.get_major_formatter()(at, None) for at in (754.0, 65.0)] == ["12:34", "1:05"]


@pytest.mark.parametrize(("duration_s", "dots"), [(10.0, 1440), (240.0, 1920), (3600.0, 4800)])
def test_a_long_recording_has_finer_dots_and_letters_of_the_same_share_of_the_picture(duration_s: float, dots: int):
    found = Probabilities(np.zeros((100, 2), np.float32), duration_s / 100, duration_s)
    picture = figure(found, Diarization((), duration_s))
    assert picture.get_figwidth() == 12
    assert int.from_bytes(image(picture)[16:20], "big") == dots


def test_without_a_reference_there_are_two_panels(probabilities: Probabilities):
    assert len(figure(probabilities, RESULT).axes) == 2


def test_nobody_speaks_on_either_side(probabilities: Probabilities):
    _, turns, truth, _ = figure(probabilities, Diarization((), 10.0), []).axes
    for axes in (turns, truth):
        assert [text.get_text() for text in axes.texts] == ["nobody speaks"]


@pytest.mark.parametrize(
    ("format", "beginning"), list(zip(FORMATS, (b"\x89PNG", b"<?xml", b"%PDF", b"\xff\xd8\xff"), strict=True))
)
def test_a_picture_is_what_it_is_called(probabilities: Probabilities, format: str, beginning: bytes):
    assert image(figure(probabilities, RESULT), format).startswith(beginning)


def test_without_matplotlib_the_way_to_it_is_named(probabilities: Probabilities, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match=r"a picture needs matplotlib: pip install matplotlib, or"):
        figure(probabilities, RESULT)


def test_names_are_taken_as_they_are_and_not_as_formulas(probabilities: Probabilities):
    odd = r"a$\x$_y"
    picture = figure(probabilities, replace(RESULT.relabel({"speaker_0": odd}), uri=odd), [Turn(0, 1, odd)])
    assert image(picture).startswith(b"\x89PNG")
    shown = {text.get_text() for axes in picture.axes for text in axes.get_yticklabels()}
    assert odd in shown


def test_letters_that_the_font_lacks_are_one_warning(probabilities: Probabilities):
    picture = figure(probabilities, replace(RESULT.relabel({"speaker_0": "会議"}), uri="会議録"))
    with pytest.warns(UserWarning, match="^the picture's font lacks 会 議 録, shown as boxes") as caught:
        image(picture)
    assert len(caught) == 1


def test_other_warnings_of_matplotlib_go_through(probabilities: Probabilities, monkeypatch: pytest.MonkeyPatch):
    picture = figure(probabilities, RESULT)
    monkeypatch.setattr(picture, "savefig", lambda *_, **__: warnings.warn("something else", stacklevel=1))
    with pytest.warns(UserWarning, match="^something else$"):
        image(picture)
