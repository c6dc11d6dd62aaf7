"""The page in a browser: it saves the same files as Python, with corrections too."""

import json as standard
from dataclasses import replace

import numpy as np
import pytest

from sortformer.annotation import Diarization, Turn
from sortformer.formats import json
from tests.formats.opened_page import FOUR, HANDS, MEETING, ONE, THREE, TWO

NAMES = ("Ada", "the chair", "\x9b\u2028 x\x1c\x1b", "😀", "\ue000", "__proto__", "</script>", "\ufeffy", "Zoe\u0301")


def drawn(generator: np.random.Generator) -> Diarization:
    """A recording with turns that touch, overlap, and end with it or later, and confidences that end in a 5."""
    names, coarse = generator.permutation(NAMES)[: generator.integers(1, 5)], generator.random() < 0.5
    turns = []
    for _ in range(generator.integers(0, 25)):
        start, length = generator.integers(0, 200, 2) * (100 if coarse else 17)
        sure = [None, generator.random(), generator.integers(0, 17) / 16, generator.integers(0, 2001) / 2000]
        turns.append(
            Turn(start / 1000, (start + length + 1) / 1000, str(generator.choice(names)), generator.choice(sure))
        )
    return Diarization(tuple(turns), float(generator.integers(1, 30_000)) / 1000 + 0.00006, "my  cafe\u0301")


# Their mean is 0.6905, except for rounding of the sum.
TOUCHING = (Turn(0, 1, "a", 0.6245), Turn(1, 1.4, "a", 0.8735), Turn(1.4, 1.7, "a", 0.6665))


def test_an_untouched_result_is_saved_as_python_writes_it(outcome):
    generator = np.random.default_rng(7)
    recordings = [Diarization(TOUCHING, 2.0), *(drawn(generator) for _ in range(300))]
    documents = ",".join(json.format(each, ascii_only=True, exact=True).replace("<", "\\u003c") for each in recordings)
    saved = outcome(
        recordings[0],
        f"const documents = [{documents}];"
        "const test = () => documents.map((each) => [asRttm(each, opened(each)), asJson(each, opened(each))]);",
    )
    for recording, (rttm_text, json_text) in zip(recordings, saved, strict=True):
        assert rttm_text == recording.to_rttm()
        assert standard.loads(json_text) == standard.loads(recording.to_json())


def of(*turns: Turn) -> Diarization:
    return replace(MEETING, turns=turns)


def by_hand(turn: Turn, **change: float | str) -> Turn:
    """Return a turn as edited by a person, without the model's confidence."""
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
    "merge by a double click, which merges nobody else": (
        '$("merged").value = "speaker_0"; $("into").value = "speaker_2"; $("merge").click(); $("merge").click()',
        MEETING.relabel({"speaker_0": "speaker_2"}),
    ),
    "merge those who were chosen before another speaker went": (
        'select(0); put($("merged"), "speaker_1"); put($("into"), "speaker_2"); press("Delete"); $("merge").click()',
        of(replace(TWO, speaker="speaker_2"), THREE, replace(FOUR, speaker="speaker_2")),
    ),
    "reassign": ("select(1); give(2)", of(ONE, by_hand(TWO, speaker="speaker_2"), THREE, FOUR)),
    "reassign by mouse, and split by a letter with which a name begins": (
        'select(2); seek(5000); $("speaker").focus(); touch($("speaker")); give(0); pressThere("s")',
        of(ONE, TWO, *(by_hand(THREE, **part, speaker="speaker_0") for part in ({"end": 5.0}, {"start": 5.0})), FOUR),
    ),
    "reassign by keys alone, of which letters select names": (
        'select(2); seek(5000); touch($("speaker")); pressThere("Tab"); $("speaker").focus(); give(0); pressThere("s")',
        of(ONE, TWO, by_hand(THREE, speaker="speaker_0"), FOUR),
    ),
    "type a time, enter it and split": (
        'select(2); seek(5000); type($("end"), "5.5"); pressThere("Enter"); pressThere("s")',
        of(ONE, TWO, by_hand(THREE, end=5.0), by_hand(THREE, start=5.0, end=5.5), FOUR),
    ),
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
    "type a name or a time, and choose that turn by a click on the timeline": (
        'type($("names").children[2].lastChild, "Ada"); click(2, 5000); press("Delete");'
        'select(0); type($("start"), "0.25"); click(0, 1000); seek(1750); press("o")',
        of(by_hand(ONE, start=0.25, end=1.75), TWO, FOUR),
    ),
    "type a time, and move the other border by its handle": (
        'select(2); type($("start"), "4.5"); pressAt(2, 6000); onPointerMove(at(2, 6250)); onPointerUp()',
        of(ONE, TWO, by_hand(THREE, start=4.5, end=6.25), FOUR),
    ),
    "rename, and delete who was selected of two that speak at once": (
        'select(1); put($("start"), "0.5"); put($("end"), "2"); select(0);'
        'put($("names").children[0].lastChild, "zoe"); press("Delete")',
        of(by_hand(TWO, start=0.5, end=2.0), THREE, FOUR),
    ),
    "undo": ('select(1); press("Delete"); select(1); give(0); undo(); press("z", { ctrlKey: true })', MEETING),
    "end a word by Enter, in a name that is typed with an input method": (
        'type($("names").children[2].lastChild, "Ad"); pressThere("Enter", { isComposing: true })',
        MEETING,
    ),
    "split and undo on a Russian keyboard": (
        'const [s, z] = [["\u044b", { code: "KeyS" }], ["\u044f", { code: "KeyZ", ctrlKey: true }]];'
        'select(2); seek(5000); press(...s); press("Delete"); press(...z)',
        of(ONE, TWO, replace(THREE, end=5.0), replace(THREE, start=5.0), FOUR),
    ),
    "redo": ('select(1); press("Delete"); select(1); give(0); undo(); undo(); redo()', of(ONE, THREE, FOUR)),
}


@pytest.fixture(scope="module")
def corrected(outcome) -> dict[str, list[str]]:
    """Return the RTTM and the JSON after each correction, all in one page."""
    cases = ", ".join(f"{standard.dumps(name)}: () => {{ {script}; }}" for name, (script, _) in CORRECTIONS.items())
    script = f"""{HANDS}
      const save = (correct) => (again(), correct(), [asRttm(result, steps.state), asJson(result, steps.state)]);
      const test = () => Object.fromEntries(Object.entries({{ {cases} }}).map(([name, each]) => [name, save(each)]));
    """
    return outcome(MEETING, script)


@pytest.mark.parametrize("name", CORRECTIONS)
def test_what_is_corrected_is_saved_as_python_would_correct_it(corrected: dict[str, list[str]], name: str):
    rttm_text, json_text = corrected[name]
    expected = CORRECTIONS[name][1]
    assert rttm_text == expected.to_rttm()
    assert json.parse(json_text) == expected


def test_what_cannot_be_is_said_and_changes_nothing(outcome):
    refused = """
      const refusals = [
        () => { select(0); put($("end"), "0.25"); },
        () => { select(0); put($("start"), "soon"); },
        () => { select(0); put($("end"), "10.5"); },
        () => { select(0); seek(5000); splitSelected(); },
        () => put($("names").children[0].lastChild, "  "),
        () => { selected = null; press("Delete"); },
        () => $("merge").click(),
        () => { $("merged").value = $("into").value = "speaker_1"; $("merge").click(); },
      ];
      const state = steps.state;
      return refusals.map((refusal) => (refusal(), [steps.state === state, $("said").textContent]));
    """
    answers = outcome(MEETING, f"{HANDS} function test() {{ {refused} }}")
    begins = "A turn must begin before it ends, between 0 and 0:00:10.000; times are like 1:02:03.5 or 62.5."
    assert answers == [
        [True, begins],
        [True, begins],
        [True, begins],
        [True, "Put the cursor inside the turn to split it there."],
        [True, "A speaker needs a name."],
        [True, "Select a turn first."],
        [True, "Choose two speakers to merge."],
        [True, "Choose two speakers to merge."],
    ]


def test_a_field_that_says_what_is_so_leaves_undo_to_the_page(outcome):
    """Otherwise the browser would undo letters of a merged name, and leaving the field would rename the speaker."""
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
    assert outcome(MEETING, f"{HANDS} function test() {{ {script} }}") == [
        [True, whole],
        [True, merged],
        [False, merged],
        [True, merged],
        [True, whole],
    ]


def test_what_was_done_to_turns_or_taken_back_is_said(outcome):
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
    assert outcome(MEETING, f"{HANDS} function test() {{ {script} }}") == [
        "Split at 0:00:05.000.",
        "Deleted at 0:00:05.000: speaker_2.",
        "Added at 0:00:03.250: speaker_0.",
        "speaker_1 is merged into speaker_0; Undo separates them again.",
        "Undone.",
        "Redone.",
    ]


def test_nothing_that_is_not_saved_is_left_without_a_warning(outcome):
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
    assert outcome(MEETING, f"{HANDS} function test() {{ {script} }}") == [
        False,
        True,
        "Two speakers have the same name except for white space, which RTTM cannot express: rename one.",
        False,
        True,
        False,
        "meeting.json",
    ]


def test_a_result_in_which_nobody_speaks_says_so(outcome):
    script = """
      const seen = [!$("nobody").hidden, asRttm(result, steps.state)];
      seek(1500);
      press("a");
      return [...seen, !$("nobody").hidden, asRttm(result, steps.state)];
    """
    recording = Diarization((), 2.0, "silence")
    line = "SPEAKER silence 1 1.000 1.000 <NA> <NA> speaker_0 <NA> <NA>\n"
    assert outcome(recording, f"{HANDS} function test() {{ {script} }}") == [True, "", False, line]
