"""The page in a browser, for those who use keys, a screen reader, few colours or a high zoom (WCAG 2.2)."""

import numpy as np
import pytest

from sortformer.annotation import Diarization, Turn
from tests.formats.opened_page import BROWSERS, COMPARISON, HANDS, MEETING, opened_in


def test_pale_colours_and_short_turns_stand_out_from_the_page(outcome):
    """With a contrast of 3 to 1 (WCAG 1.4.11) in part of the bar: any colour, any confidence, long or a pixel wide."""
    spans = ((1.0, 40.0, 0.9), (41.0, 80.0, 0.3), (85.0, 85.01, 0.9), (90.0, 90.01, 0.3))
    turns = tuple(Turn(start, end, f"speaker_{row}", sure) for row in range(8) for start, end, sure in spans)
    script = """
      const luminance = (rgb) => {
        const linear = rgb.map((each) => (each <= 10 ? each / 3294 : ((each / 255 + 0.055) / 1.055) ** 2.4));
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
      };
      const contrast = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
      const panel = getComputedStyle($("tracks")).backgroundColor.match(/\\d+/g).map(Number);
      const scale = window.devicePixelRatio || 1;
      const best = (row, start) => {
        const [x, y] = [toX(start) + 0.5, topOfRows() + ROW * row + 5].map((each) => Math.round(each * scale) - 1);
        const { data } = canvas().getContext("2d").getImageData(x, y + 2, 3, 16);
        const seen = [];
        for (let at = 0; at < data.length; at += 4) {
          const alpha = data[at + 3] / 255;
          const rgb = panel.map((each, index) => each * (1 - alpha) + data[at + index] * alpha);
          seen.push(contrast(luminance(rgb), luminance(panel)));
        }
        return Math.max(...seen);
      };
      drawTimeline();
      const starts = [1000, 41_000, 85_000, 90_000];
      return steps.state.speakers.map((_, row) => starts.map((start) => best(row, start)));
    """
    found = outcome(Diarization(turns, 100.0), f"{HANDS} function test() {{ {script} }}")
    assert np.min(found) >= 3, found


@pytest.mark.parametrize("browser", BROWSERS)
def test_high_contrast_leaves_speakers_their_colours_and_shows_what_is_selected(tmp_path, browser: str):
    script = """
      select(2);
      drawList();
      const [line] = document.querySelectorAll("[aria-selected=true]");
      return [getComputedStyle(line.querySelector(".swatch")).backgroundColor, getComputedStyle(line).outlineStyle];
    """
    with opened_in(browser, tmp_path, high_contrast=True) as outcome:
        assert outcome(MEETING, f"{HANDS} function test() {{ {script} }}") == ["rgb(34, 136, 51)", "solid"]


@pytest.mark.parametrize("browser", BROWSERS)
def test_a_narrow_screen_is_not_scrolled_sideways(tmp_path, browser: str):
    script = "const test = ([page] = [document.documentElement]) => page.scrollWidth - page.clientWidth;"
    with opened_in(browser, tmp_path, width=320) as outcome:
        assert outcome(MEETING, script, COMPARISON) == 0


@pytest.mark.parametrize("browser", BROWSERS)
def test_names_can_be_read_in_the_list_of_a_narrow_screen(tmp_path, browser: str):
    """Also beside the widest confidence, and 320 pixels wide, as at a zoom of 400 % (WCAG 1.4.10)."""
    script = """
      drawList();
      return [...document.querySelectorAll("#lines .who")].every((each) => each.scrollWidth <= each.clientWidth);
    """
    names = Diarization((Turn(0.0, 100.0, "speaker_10", 0.88), Turn(1.0, 2.0, "speaker_11", 0.44)), 100.0)
    with opened_in(browser, tmp_path, width=320) as outcome:
        assert outcome(names, f"{HANDS} function test() {{ {script} }}")


def test_fields_say_whose_name_they_hold_and_what_becomes_of_it(outcome):
    script = """
      put($("names").children[1].lastChild, "Ada");
      const fields = [...$("names").querySelectorAll("input"), $("merged"), $("into")];
      return fields.map((field) => field.getAttribute("aria-label"));
    """
    assert outcome(MEETING, f"{HANDS} function test() {{ {script} }}") == [
        "name of speaker_0",
        "name of Ada",
        "name of speaker_2",
        "Merge this speaker into another",
        "into this one, whose name is kept",
    ]


def test_the_list_is_gone_through_by_keys(outcome):
    script = """
      return ["End", "ArrowUp", "Home", "ArrowDown", "ArrowDown"].map((key) => {
        $("list").dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
        return steps.state.turns.indexOf(selected);
      });
    """
    assert outcome(MEETING, f"{HANDS} function test() {{ {script} }}") == [3, 2, 0, 1, 2]


def test_shortcuts_of_single_letters_can_be_turned_off_for_those_who_dictate(outcome):
    script = """
      select(2);
      seek(5000);
      $("single").click();
      for (const key of ["s", "a", "i", "+"]) press(key);
      const seen = [steps.state === steps.saved, view.span];
      press("Delete");
      press("z", { ctrlKey: true });
      $("single").click();
      select(2);
      seek(5000);
      press("s");
      return [...seen, steps.past.length, steps.state.turns.length];
    """
    assert outcome(MEETING, f"{HANDS} function test() {{ {script} }}") == [True, 10_000, 1, 5]


def test_the_slider_is_moved_by_keys_in_parts_of_the_view_and_says_the_time(outcome):
    script = """
      look(4000, 2000);
      const seen = [];
      for (const key of ["ArrowRight", "PageUp", "ArrowDown", "ArrowLeft", "PageDown"]) {
        press(key, { cancelable: true }, $("position"));
        await new Promise(requestAnimationFrame);
        seen.push(view.start);
      }
      await new Promise(requestAnimationFrame);
      return [...seen, $("position").getAttribute("aria-valuetext")];
    """
    found = outcome(MEETING, f"{HANDS} async function test() {{ {script} }}")
    assert found == [4200, 6200, 6000, 5800, 3800, "0:00:03.800"]


def test_the_focus_goes_from_a_deleted_turn_to_the_list(outcome):
    """Not to the top of the page, as from any button that is disabled."""
    script = """
      select(1);
      $("remove").focus();
      $("remove").click();
      const seen = [document.activeElement.id];
      pressThere("ArrowUp");
      $("split").focus();
      undo();
      return [...seen, selected.start, document.activeElement.id];
    """
    assert outcome(MEETING, f"{HANDS} function test() {{ {script} }}") == ["list", 500, "split"]
