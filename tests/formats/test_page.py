"""What the page does, in a browser: it saves what Python writes, and corrections as Python would make them."""

import json as standard
import re
import shutil
import subprocess
from dataclasses import replace
from html import unescape
from pathlib import Path

import numpy as np
import pytest

from sortformer.annotation import Diarization, Origin, TimeAxis, Turn
from sortformer.formats import html, json

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

pytestmark = pytest.mark.skipif(BROWSER is None, reason="needs chromium")

OFFLINE = "disable-gpu disable-quic no-first-run disable-background-networking disable-component-update disable-sync"


def outcome(folder: Path, recording: Diarization, script: str, comparison: dict | None = None, *flags: str):
    """Open the page of a recording, run a script in it, and return the value that its function ``test`` gives."""
    appended = f"""
<pre id="outcome"></pre>
<script>
{script}
addEventListener("error", (event) => ($("outcome").textContent = JSON.stringify(String(event.message))));
$("outcome").textContent = JSON.stringify(test());
</script>
"""
    page = folder / "page.html"
    page.write_text(html.format(recording, comparison) + appended, encoding="utf-8")
    options = [f"--{option}" for option in (*OFFLINE.split(), *flags)]
    command = [BROWSER, "--headless", "--no-sandbox", *options, f"--user-data-dir={folder / 'user'}", "--dump-dom"]
    done = subprocess.run([*command, page.as_uri()], capture_output=True, text=True, timeout=120, check=True)
    found = re.search(r'<pre id="outcome">(.+?)</pre>', done.stdout, re.DOTALL)
    assert found, done.stdout[-2000:]
    return standard.loads(unescape(found[1]))


NAMES = ("Ada", "the chair", "\u2028 x\x1c", "😀", "\ue000", "__proto__", "</script>", "\ufeffy", "Zoe\u0301")


def drawn(generator: np.random.Generator) -> Diarization:
    """A recording with turns that touch, overlap, end with it or later, and confidences that end in a 5."""
    names, coarse = generator.permutation(NAMES)[: generator.integers(1, 5)], generator.random() < 0.5
    turns = []
    for _ in range(generator.integers(0, 25)):
        start, length = generator.integers(0, 200, 2) * (100 if coarse else 17)
        sure = [None, generator.random(), generator.integers(0, 17) / 16, generator.integers(0, 2001) / 2000]
        turns.append(
            Turn(start / 1000, (start + length + 1) / 1000, str(generator.choice(names)), generator.choice(sure))
        )
    return Diarization(tuple(turns), float(generator.integers(1, 30_000)) / 1000 + 0.00006, "my  cafe\u0301")


# Their mean is 0.6905 but for what a sum rounds on the way.
TOUCHING = (Turn(0, 1, "a", 0.6245), Turn(1, 1.4, "a", 0.8735), Turn(1.4, 1.7, "a", 0.6665))


def test_an_untouched_result_is_saved_as_python_writes_it(tmp_path):
    generator = np.random.default_rng(7)
    recordings = [Diarization(TOUCHING, 2.0), *(drawn(generator) for _ in range(300))]
    documents = ",".join(json.format(each, ascii_only=True, exact=True).replace("<", "\\u003c") for each in recordings)
    saved = outcome(
        tmp_path,
        recordings[0],
        f"const documents = [{documents}];"
        "const test = () => documents.map((each) => [asRttm(each, opened(each)), asJson(each, opened(each))]);",
    )
    for recording, (rttm_text, json_text) in zip(recordings, saved, strict=True):
        assert rttm_text == recording.to_rttm()
        assert standard.loads(json_text) == standard.loads(recording.to_json())


ORIGIN = Origin("embedded", "0.1.0", {"onset": 0.5}, TimeAxis(0.0, 0.08, 125))
ONE, TWO = Turn(0.5, 2.0, "speaker_0", 0.9876), Turn(1.5, 3.0, "speaker_1", 0.61)
THREE, FOUR = Turn(4.0, 6.0, "speaker_2", 0.8), Turn(6.5, 8.0, "speaker_1", 0.9)
MEETING = Diarization((ONE, TWO, THREE, FOUR), 10.0, "meeting", ORIGIN)


def of(*turns: Turn) -> Diarization:
    return replace(MEETING, turns=turns)


def by_hand(turn: Turn, **change: float | str) -> Turn:
    """A turn that a person has changed: the model's confidence was in another one."""
    return replace(turn, confidence=None, **change)  # pyright: ignore[reportArgumentType]


CORRECTIONS = {
    "nothing": ("", MEETING),
    "rename": ('put($("names").children[1].lastChild, " Ada ")', MEETING.relabel({"speaker_1": "Ada"})),
    "merge by name": (
        'put($("names").children[2].lastChild, "speaker_1")',
        MEETING.relabel({"speaker_2": "speaker_1"}),
    ),
    "merge by a name that is typed with its letters composed": (
        'put($("names").children[0].lastChild, "Zoe\\u0301"); put($("names").children[1].lastChild, "Zo\\u00e9")',
        MEETING.relabel({"speaker_0": "Zoe\u0301", "speaker_1": "Zoe\u0301"}),
    ),
    "merge": (
        '$("merged").value = "speaker_0"; $("into").value = "speaker_2"; $("merge").click()',
        MEETING.relabel({"speaker_0": "speaker_2"}),
    ),
    "reassign": ("select(1); give(2)", of(ONE, by_hand(TWO, speaker="speaker_2"), THREE, FOUR)),
    "to somebody new": ("select(3); give(3)", of(ONE, TWO, THREE, by_hand(FOUR, speaker="speaker_3"))),
    "to somebody new, whose name was nobody's before": (
        'put($("names").children[0].lastChild, "Ada"); select(3); give(3)',
        of(replace(ONE, speaker="Ada"), TWO, THREE, by_hand(FOUR, speaker="speaker_3")),
    ),
    "move by fields": (
        'select(0); put($("start"), "0:00:00.25"); put($("end"), "2,125")',
        of(by_hand(ONE, start=0.25, end=2.125), TWO, THREE, FOUR),
    ),
    "move to the cursor": (
        'select(2); seek(4500); press("i"); seek(5750); press("o")',
        of(ONE, TWO, by_hand(THREE, start=4.5, end=5.75), FOUR),
    ),
    "move by its handle": ("select(2); drag(2, 6000, 6250)", of(ONE, TWO, by_hand(THREE, end=6.25), FOUR)),
    "split": (
        'select(2); seek(5000); press("s")',
        of(ONE, TWO, replace(THREE, end=5.0), replace(THREE, start=5.0), FOUR),
    ),
    "split and reassign": (
        'select(2); seek(5000); $("split").click(); give(0)',
        of(ONE, TWO, replace(THREE, end=5.0), by_hand(THREE, start=5.0, speaker="speaker_0"), FOUR),
    ),
    "delete": ('select(1); press("Delete")', of(ONE, THREE, FOUR)),
    "delete by the key that is called so on a Mac": ('select(1); press("Backspace")', of(ONE, THREE, FOUR)),
    "delete somebody's only turn": ('select(2); $("remove").click()', of(ONE, TWO, FOUR)),
    "add": ('seek(3250); $("add").click()', of(ONE, TWO, by_hand(ONE, start=3.25, end=4.25), THREE, FOUR)),
    "add at the end": (
        'select(3); seek(9999); press("a")',
        of(ONE, TWO, THREE, FOUR, by_hand(FOUR, start=9.0, end=10.0)),
    ),
    "rename, and delete who was selected of two that speak at once": (
        'select(1); put($("start"), "0.5"); put($("end"), "2"); select(0);'
        'put($("names").children[0].lastChild, "zoe"); press("Delete")',
        of(by_hand(TWO, start=0.5, end=2.0), THREE, FOUR),
    ),
    "undo": ('select(1); press("Delete"); select(1); give(0); undo(); press("z", { ctrlKey: true })', MEETING),
    "redo": ('select(1); press("Delete"); select(1); give(0); undo(); undo(); redo()', of(ONE, THREE, FOUR)),
}

HANDS = """
const select = (at) => choose(steps.state.turns[at]);
const put = (field, value) => { field.value = value; field.dispatchEvent(new Event("change")); };
const give = (at) => { $("speaker").selectedIndex = at; $("speaker").dispatchEvent(new Event("change")); };
const press = (key, held) => document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, ...held }));
const at = (row, ms) => ({ button: 0, offsetX: toX(ms), offsetY: topOfRows() + ROW * (row + 0.5) });
const drag = (row, from, to) => {
  onPointerMove(at(row, from));
  grip = { x: toX(from), from: view.start, moved: false, held: null, ...under(at(row, from)) };
  onPointerMove(at(row, to));
  onPointerUp();
};
const leaving = () => !dispatchEvent(new Event("beforeunload", { cancelable: true }));
const again = () => { become(opened(result)); look(0, limit); seek(0); say(""); };
"""


@pytest.fixture(scope="module")
def corrected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The RTTM and the JSON after each correction, all in one page."""
    cases = ", ".join(f"{standard.dumps(name)}: () => {{ {script}; }}" for name, (script, _) in CORRECTIONS.items())
    script = f"""{HANDS}
      const save = (correct) => (again(), correct(), [asRttm(result, steps.state), asJson(result, steps.state)]);
      const test = () => Object.fromEntries(Object.entries({{ {cases} }}).map(([name, each]) => [name, save(each)]));
    """
    return outcome(tmp_path_factory.mktemp("page"), MEETING, script)


@pytest.mark.parametrize("name", CORRECTIONS)
def test_what_is_corrected_is_saved_as_python_would_correct_it(corrected: dict[str, list[str]], name: str):
    rttm_text, json_text = corrected[name]
    expected = CORRECTIONS[name][1]
    assert rttm_text == expected.to_rttm()
    assert json.parse(json_text) == expected


def test_what_cannot_be_is_said_and_changes_nothing(tmp_path):
    refused = """
      const refusals = [
        () => { select(0); put($("end"), "0.25"); },
        () => { select(0); put($("start"), "soon"); },
        () => { select(0); put($("end"), "10.5"); },
        () => { select(0); seek(5000); splitSelected(); },
        () => put($("names").children[0].lastChild, "  "),
        () => { selected = null; press("Delete"); },
      ];
      const state = steps.state;
      return refusals.map((refusal) => (refusal(), [steps.state === state, $("said").textContent]));
    """
    answers = outcome(tmp_path, MEETING, f"{HANDS} function test() {{ {refused} }}")
    begins = "A turn begins before it ends, between 0 and 0:00:10.000; times are like 1:02:03.5 or 62.5."
    assert answers == [
        [True, begins],
        [True, begins],
        [True, begins],
        [True, "Put the cursor inside the turn to split it there."],
        [True, "A speaker needs a name."],
        [True, "Select a turn first."],
    ]


def test_a_field_that_says_what_is_so_leaves_undo_to_the_page(tmp_path):
    """The browser would take back letters of a name that was merged, and leaving the field would rename everybody."""
    script = """
      const field = (row) => $("names").children[row].lastChild;
      const undoIn = (target, key = "z") => {
        const event = new KeyboardEvent("keydown", { key, ctrlKey: true, bubbles: true, cancelable: true });
        target.dispatchEvent(event);
        return [event.defaultPrevented, steps.state.speakers.map((row) => row.name).join(" ")];
      };
      put(field(1), "speaker_0");
      const seen = [undoIn(field(1)), undoIn(field(0), "y")];
      field(0).value = "some"; // and is still being typed
      seen.push(undoIn(field(0)));
      put(field(0), " speaker_0 ");
      select(0);
      put($("end"), "1");
      return [...seen, undoIn($("end")), undoIn($("speaker"))];
    """
    whole, merged = "speaker_0 speaker_1 speaker_2", "speaker_0 speaker_2"
    assert outcome(tmp_path, MEETING, f"{HANDS} function test() {{ {script} }}") == [
        [True, whole],
        [True, merged],
        [False, merged],
        [True, merged],
        [True, whole],
    ]


def test_what_was_done_to_turns_or_taken_back_is_said(tmp_path):
    script = """
      const deeds = [
        () => { select(2); seek(5000); press("s"); },
        () => press("Delete"),
        () => { seek(3250); press("a"); },
        () => put($("names").children[1].lastChild, "speaker_0"),
        undo,
        redo,
      ];
      return deeds.map((deed) => (deed(), $("said").textContent));
    """
    assert outcome(tmp_path, MEETING, f"{HANDS} function test() {{ {script} }}") == [
        "Split at 0:00:05.000.",
        "Deleted at 0:00:05.000: speaker_2.",
        "Added at 0:00:03.250: speaker_0.",
        "speaker_1 and speaker_0 are one speaker now, speaker_0; undo takes it back.",
        "Undone.",
        "Done again.",
    ]


def test_the_row_of_a_chosen_turn_is_brought_into_sight_below_the_ruler(tmp_path):
    many = Diarization(tuple(Turn(at, at + 1.0, f"speaker_{at}", 0.5 if at == 39 else 0.9) for at in range(40)), 40.0)
    script = """
      const box = $("tracks");
      const inSight = (row) => {
        const top = topOfRows() + ROW * row - box.scrollTop;
        return RULER <= top && top + ROW <= box.clientHeight;
      };
      const seen = [inSight(39)];
      press("n");
      seen.push(inSight(39), under(at(39, 39_500)).turn === selected);
      drawTimeline();
      const scale = window.devicePixelRatio || 1;
      const ruler = canvas().getContext("2d").getImageData(0, box.scrollTop * scale, 200 * scale, RULER * scale).data;
      seen.push(new Set(ruler).size > 10); // its letters
      seen.push(under({ offsetX: toX(20_500), offsetY: box.scrollTop + RULER - 1 }).turn);
      select(3);
      return [...seen, inSight(3)];
    """
    expected = [False, True, True, True, None, True]
    assert outcome(tmp_path, many, f"{HANDS} function test() {{ {script} }}") == expected


def test_nothing_that_is_not_saved_is_left_without_a_warning(tmp_path):
    script = """
      const files = []; // a download that has begun may keep the browser from ending
      HTMLAnchorElement.prototype.click = function () { files.push(this.download); };
      const seen = [leaving()];
      put($("names").children[0].lastChild, "the chair");
      put($("names").children[1].lastChild, "the_chair");
      $("rttm").click();
      seen.push(leaving(), $("said").textContent);
      $("json").click();
      seen.push(leaving());
      undo();
      seen.push(leaving());
      redo();
      return [...seen, leaving(), ...files];
    """
    assert outcome(tmp_path, MEETING, f"{HANDS} function test() {{ {script} }}") == [
        False,
        True,
        "Two speakers have the same name but for white space, which RTTM cannot express: rename one.",
        False,
        True,
        False,
        "meeting.json",
    ]


def test_a_result_in_which_nobody_speaks_says_so(tmp_path):
    script = """
      const seen = [!$("nobody").hidden, asRttm(result, steps.state)];
      seek(1500);
      press("a");
      return [...seen, !$("nobody").hidden, asRttm(result, steps.state)];
    """
    recording = Diarization((), 2.0, "silence")
    line = "SPEAKER silence 1 1.000 1.000 <NA> <NA> speaker_0 <NA> <NA>\n"
    assert outcome(tmp_path, recording, f"{HANDS} function test() {{ {script} }}") == [True, "", False, line]


COMPARISON = {
    "score": "DER 30.0 %",
    "reference": [
        {"speaker": "Ada", "pair": "speaker_1", "turns": [[500, 2000], [6500, 8000]]},
        {"speaker": "<b>Bob", "pair": None, "turns": [[9000, 9500]]},
    ],
    "scored": [[0, 5000], [6000, 10000]],
    "errors": [
        {"span": [0, 500], "kinds": ["miss"], "text": "miss: Ada"},
        {"span": [2000, 3000], "kinds": ["false alarm"], "text": "false alarm: speaker_1"},
        {"span": [3000, 3150], "kinds": ["miss"], "text": "miss: Ada"},
        {"span": [9000, 9500], "kinds": ["miss", "confusion"], "text": "miss and confusion: <b>Bob"},
    ],
}


def test_errors_are_shown_in_lanes_and_what_is_not_scored_is_shaded(tmp_path):
    script = """
      const brightness = (ms, kind) => {
        drawTimeline();
        const at = [toX(ms), RULER + LANE * (KINDS.indexOf(kind) + 0.5)];
        const [x, y] = at.map((pixels) => pixels * (window.devicePixelRatio || 1));
        const [red, green, blue, alpha] = canvas().getContext("2d").getImageData(x, y, 1, 1).data;
        return alpha === 0 ? "empty" : red + green + blue < 150 ? "dark" : "shaded";
      };
      const names = (id) => [...$(id).children].map((each) => each.textContent);
      return [
        names("lanes"), names("reference"), $("score").textContent, $("errors").hidden,
        brightness(2500, "false alarm"), brightness(2500, "miss"), brightness(9250, "miss"),
        brightness(9250, "confusion"), brightness(5500, "miss"),
      ];
    """
    assert outcome(tmp_path, MEETING, f"{HANDS} function test() {{ {script} }}", COMPARISON) == [
        ["miss", "false alarm", "confusion"],
        ["reference", "Ada", "<b>Bob"],
        "DER 30.0 %",
        False,
        *["dark", "empty", "dark", "dark", "shaded"],
    ]


def test_pale_colours_and_short_turns_stand_out_from_the_page(tmp_path):
    """By 3 to 1, as WCAG 1.4.11 has it, somewhere in the bar: of every colour, sure or not, long or a pixel wide."""
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
    found = outcome(tmp_path, Diarization(turns, 100.0), f"{HANDS} function test() {{ {script} }}")
    assert np.min(found) >= 3, found


def test_all_turns_are_printed_as_text_that_is_not_scrolled(tmp_path):
    many = Diarization(tuple(Turn(at, at + 0.5, "a") for at in range(500)), 500.0)
    script = """
      const sheet = [...document.styleSheets[0].cssRules].find((rule) => rule.media?.mediaText === "print");
      const lines = () => $("lines").children.length;
      sheet.media.mediaText = "all"; // as on paper
      dispatchEvent(new Event("beforeprint"));
      const tools = [...document.querySelectorAll("button, input, select, canvas, summary")];
      const shown = tools.filter((each) => each.checkVisibility()).length;
      const seen = [lines(), $("list").clientHeight === LINE * lines(), shown];
      sheet.media.mediaText = "print";
      dispatchEvent(new Event("afterprint"));
      return [...seen, lines() < 500];
    """
    seen = outcome(tmp_path, many, f"{HANDS} function test() {{ {script} }}")
    assert seen == [500, True, 0, True]


def test_high_contrast_leaves_speakers_their_colours_and_shows_what_is_selected(tmp_path):
    script = """
      select(2);
      drawList();
      const [line] = document.querySelectorAll("[aria-selected=true]");
      return [getComputedStyle(line.firstChild).backgroundColor, getComputedStyle(line).outlineStyle];
    """
    found = outcome(tmp_path, MEETING, f"{HANDS} function test() {{ {script} }}", None, "force-high-contrast")
    assert found == ["rgb(34, 136, 51)", "solid"]


def test_a_narrow_screen_is_not_scrolled_sideways(tmp_path):
    """Chromium's windows have 500 pixels and more, so that it is the body that is made narrow."""
    script = 'const test = () => { document.body.style.width = "320px"; return document.body.scrollWidth; };'
    assert outcome(tmp_path, MEETING, script, COMPARISON, "window-size=500,800") == 320


def test_an_unsure_turn_is_not_said_to_be_as_sure_as_the_threshold(tmp_path):
    script = "const test = () => [0.6999, 0.57, 0.7, 0.996, null].map((confidence) => sureness({ confidence }));"
    assert outcome(tmp_path, MEETING, script) == ["unsure 69 %", "unsure 57 %", "70 %", "100 %", ""]


def test_fields_say_whose_name_they_hold_and_what_becomes_of_it(tmp_path):
    script = """
      put($("names").children[1].lastChild, "Ada");
      const fields = [...$("names").querySelectorAll("input"), $("merged"), $("into")];
      return fields.map((field) => field.getAttribute("aria-label"));
    """
    assert outcome(tmp_path, MEETING, f"{HANDS} function test() {{ {script} }}") == [
        "name of speaker_0",
        "name of Ada",
        "name of speaker_2",
        "Make this speaker one with another",
        "and this one, whose name stays",
    ]


def test_the_list_is_gone_through_by_keys(tmp_path):
    script = """
      return ["End", "ArrowUp", "Home", "ArrowDown", "ArrowDown"].map((key) => {
        $("list").dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
        return steps.state.turns.indexOf(selected);
      });
    """
    assert outcome(tmp_path, MEETING, f"{HANDS} function test() {{ {script} }}") == [3, 2, 0, 1, 2]


def test_errors_are_gone_through_one_by_one(tmp_path):
    """Those that touch, too, and from where the cursor was put meanwhile."""
    script = """
      const seen = [];
      const next = (end) => {
        press("e");
        seen.push([sound.cursor, $("said").textContent.split(": ").slice(1).join(": "), view.span < limit]);
        seek(error.span[1] + MARGIN); // as where it has been heard
      };
      for (let step = 0; step < 5; step += 1) next();
      seek(8500);
      next();
      return [...seen, steps.state === steps.saved];
    """
    assert outcome(tmp_path, MEETING, f"{HANDS} function test() {{ {script} }}", COMPARISON) == [
        [0, "miss: Ada", False],
        [1500, "false alarm: speaker_1", False],
        [2500, "miss: Ada", False],
        [8500, "miss and confusion: <b>Bob", False],
        [0, "miss: Ada", False],
        [8500, "miss and confusion: <b>Bob", False],
        True,
    ]


def test_a_short_error_is_zoomed_to_and_the_view_begins_with_what_is_scored(tmp_path):
    long = Diarization((Turn(1000.0, 1001.0, "a"),), 36_000.0)
    short = {"span": [1_000_000, 1_000_020], "kinds": ["miss"], "text": "miss: b"}
    scored = {"score": "", "reference": [], "scored": [[900_000, 1_100_000]], "errors": [short]}
    script = 'const before = [view.start, view.span]; press("e"); return [before, [view.start, view.span]];'
    assert outcome(tmp_path, long, f"{HANDS} function test() {{ {script} }}", scored) == [
        [900_000, 200_000],
        [995_010, 10_000],
    ]


def test_borders_are_no_errors_to_stop_at_where_there_are_longer_ones(tmp_path):
    errors = [
        {"span": [start, end], "kinds": ["miss"], "text": str(start)}
        for start, end in ((0, 99), (2000, 2100), (5000, 5020))
    ]
    scored = {"score": "", "reference": [], "scored": [[0, 10_000]], "errors": errors}
    script = 'return [1, 2].map(() => { press("e"); return error.span[0]; });'
    assert outcome(tmp_path, MEETING, f"{HANDS} function test() {{ {script} }}", scored) == [2000, 2000]


def test_a_recording_may_be_longer_than_what_was_said_in_it(tmp_path):
    script = """
      const odd = (ms) => {
        Object.defineProperty(sound.player, "duration", { value: ms / 1000, configurable: true });
        learnLength(ms);
        return [mismatch({ name: "a.wav" }) !== "", limit, JSON.parse(asJson(result, steps.state)).duration];
      };
      return [odd(7000), odd(12000), odd(NaN)];
    """
    assert outcome(tmp_path, MEETING, f"{HANDS} function test() {{ {script} }}", COMPARISON) == [
        [True, 10_000, 10],
        [False, 12_000, 12],
        [False, 12_000, 12],
    ]


def test_without_a_reference_there_are_no_errors_to_go_through(tmp_path):
    script = 'press("e"); return [$("errors").hidden, $("lanes").children.length, $("said").textContent, topOfRows()];'
    assert outcome(tmp_path, MEETING, f"{HANDS} function test() {{ {script} }}") == [
        True,
        0,
        "This page was made without a reference.",
        22,
    ]
