"""The words of a transcript in the page: each in a turn of its speaker, with corrections too."""

from dataclasses import replace

import numpy as np
import pytest

from sortformer.annotation import Diarization, Turn
from sortformer.errors import InputError
from sortformer.formats import html
from sortformer.words import Word, assign_speakers
from tests.formats.opened_page import HANDS, MEETING, SAID
from tests.formats.test_html import HOSTILE, Scripts

SHOWN = """
  drawList();
  const texts = [...$("lines").children].map((line) => line.querySelector(".text")?.textContent.trim());
"""


def drawn(generator: np.random.Generator) -> tuple[Turn, ...]:
    starts = 100 * generator.integers(0, 200, generator.integers(1, 12))
    lengths = 100 * generator.integers(1, 40, len(starts))
    names = generator.choice(["Ada", "Bob", "Zoe"], len(starts))
    return tuple(
        Turn(start / 1000, (start + length) / 1000, str(name))
        for start, length, name in zip(starts, lengths, names, strict=True)
    )


def test_words_have_the_speakers_that_python_gives_them_with_corrections_too(outcome):
    generator = np.random.default_rng(5)
    states = [drawn(generator) for _ in range(200)]
    starts = generator.integers(0, 24_000, 150)
    lengths = generator.integers(0, 10, 150) * 100
    words = [(a / 1000, (a + b) / 1000, "x") for a, b in zip(starts.tolist(), lengths.tolist(), strict=True)]
    results = [Diarization(turns, 24.0) for turns in states]
    given = assign_speakers(words, results[0])
    turns = [[[t.start * 1000, t.end * 1000, t.speaker] for t in each] for each in results]
    script = f"""
      const all = {turns};
      const stated = (turns) => stateOf(turns.map(([start, end, speaker]) =>
        ({{ start: Math.round(start), end: Math.round(end), speaker, confidence: null }})), steps.state.speakers);
      return all.map((turns) => {{
        become(stated(turns));
        const placed = new Set(steps.state.turns.flatMap(wordsOf)).size;
        return [placed, JSON.parse(asJson(result, steps.state)).words];
      }});
    """
    seen = outcome(results[0], f"{HANDS} function test() {{ {script} }}", words=given)
    for result, (placed, saved) in zip(results, seen, strict=True):
        expected = sorted((w.start, w.end, w.text, w.speaker) for w in assign_speakers(words, result))
        assert sorted((w["start"], w["end"], w["text"], w["speaker"]) for w in saved) == expected
        assert placed == len(words)


def test_each_turn_shows_what_was_said_in_it_and_takes_it_to_another_speaker(outcome):
    script = f"""
      const seen = () => {{ {SHOWN} return texts; }};
      const before = seen();
      select(1);
      give(0);
      seek(2450);
      const owner = () => JSON.parse(asJson(result, steps.state)).words.map((word) => word.speaker.at(-1)).join("");
      const owners = [owner()];
      select(1);
      seek(2450);
      splitSelected();
      const split = seen();
      rename("speaker_2", "Zoe");
      owners.push(owner());
      undo();
      return [before, split, owners];
    """
    said = ["Good morning.", "Hello, Ada so", "yes", "<b>no"]
    assert outcome(MEETING, f"{HANDS} function test() {{ {script} }}", words=SAID) == [
        said,
        ["Good morning.", "Hello,", "Ada so", "yes", "<b>no"],
        ["0000021", "00000e1"],
    ]


def test_a_word_of_a_channel_stays_with_it_until_a_correction_changes_who_speaks(outcome):
    turns = (Turn(0.0, 4.0, "channel_1"), Turn(1.0, 3.0, "channel_2"))
    words = [Word(1.5, 2.0, "both", "channel_2"), Word(3.5, 3.9, "late", "channel_2"), Word(2.2, 2.6, "I", "channel_1")]
    script = """
      const owners = () => JSON.parse(asJson(result, steps.state)).words.map((word) => word.speaker);
      const seen = [owners()];
      rename("channel_2", "Bob");
      seen.push(owners());
      select(0);
      deleteSelected();
      seen.push(owners());
      undo();
      select(0);
      changeSelected({ start: 3000 });
      return [...seen, owners()];
    """
    seen = outcome(Diarization(turns, 4.0), f"{HANDS} function test() {{ {script} }}", words=words)
    order = [words.index(word) for word in sorted(words)]
    assert [[row[order.index(at)] for at in range(3)] for row in seen] == [
        ["channel_2", "channel_2", "channel_1"],
        ["Bob", "Bob", "channel_1"],
        ["Bob", "Bob", "Bob"],
        ["Bob", "Bob", "Bob"],
    ]


def test_a_word_of_a_channel_does_not_go_to_a_new_speaker_with_the_colour_of_a_deleted_one(outcome):
    turns = (Turn(0.0, 40.0, "channel_1"), Turn(1.0, 3.0, "channel_2"))
    script = """
      select(1);
      deleteSelected();
      selected = null;
      seek(30000);
      addTurn();
      give(1);
      const { speakers, turns, words } = JSON.parse(asJson(result, steps.state));
      return [steps.state.speakers.map((row) => row.colour), speakers, turns.length, words[0].speaker];
    """
    words = [Word(1.5, 2.0, "echo", "channel_2")]
    seen = outcome(Diarization(turns, 40.0), f"{HANDS} function test() {{ {script} }}", words=words)
    assert seen == [[0, 1], ["channel_1", "speaker_0"], 2, "channel_1"]


def test_the_lines_are_as_high_as_their_texts_and_the_visible_ones_are_drawn(outcome):
    generator = np.random.default_rng(6)
    turns = tuple(Turn(float(at), at + 0.9, f"speaker_{at % 3}") for at in range(400))
    words = [
        Word(turn.start + 0.1, turn.start + 0.2, "word" + "o" * int(generator.integers(9)), turn.speaker)
        for turn in turns[::2]
        for _ in range(generator.integers(1, 120))
    ]
    script = """
      const fits = () => {
        const tops = topsOfLines();
        const lines = [...$("lines").children];
        const gaps = lines.map((line) => {
          const at = Number(line.getAttribute("aria-posinset")) - 1;
          return Math.abs(line.offsetHeight - (tops[at + 1] - tops[at])) + Math.abs(line.offsetTop - tops[at]);
        });
        const [first, last] = [lines[0], lines.at(-1)];
        const box = $("list");
        const covered = first.offsetTop <= box.scrollTop &&
          last.offsetTop + last.offsetHeight >= Math.min(box.scrollTop + box.clientHeight, box.scrollHeight);
        return [Math.max(...gaps) < 2, covered, lines.length < 60];
      };
      const seen = [];
      for (const width of ["1200px", "500px"]) {
        document.body.style.width = width;
        for (const at of [null, 0, 200, 399]) {
          if (at !== null) select(at);
          drawList();
          seen.push(...fits());
        }
      }
      const [line] = document.querySelectorAll("[aria-selected=true]");
      const [inner, outer] = [line.getBoundingClientRect(), $("list").getBoundingClientRect()];
      return [...seen, outer.top <= inner.top && inner.bottom <= outer.bottom + 1];
    """
    recording = Diarization(turns, 400.0)
    assert outcome(recording, f"{HANDS} function test() {{ {script} }}", words=words) == [True] * 25


def test_lines_are_laid_out_anew_when_the_scrollbar_or_the_width_changes(outcome):
    turns = tuple(Turn(float(at), at + 0.9, "a") for at in range(100))
    script = """
      const seen = [];
      const look = () => {
        drawList();
        const [first, second] = $("lines").children;
        seen.push([laid.width === $("lines").clientWidth, first.offsetHeight === second.offsetTop]);
      };
      drawList();
      become(stateOf(steps.state.turns.slice(0, 2), steps.state.speakers));
      look();
      document.body.style.width = "900px";
      look();
      undo();
      look();
      return seen;
    """
    words = [Word(0.1, 0.2, "word " * 50, "a")]
    seen = outcome(Diarization(turns, 100.0), f"{HANDS} function test() {{ {script} }}", words=words)
    assert seen == [[True, True]] * 3


def test_a_click_on_a_word_plays_from_it_and_the_word_at_the_cursor_is_marked(outcome):
    script = """
      drawList();
      const click = (element) => {
        element.scrollIntoView({ block: "center" });
        const { left, top, width, height } = element.getBoundingClientRect();
        onLine({ clientX: left + width / 2, clientY: top + height / 2 });
        drawList();
        return [sound.cursor, sound.until, steps.state.turns.indexOf(selected)];
      };
      const nth = (at) => document.querySelectorAll(".word")[at];
      const marked = () => [...document.querySelectorAll(".word.heard")].map((word) => word.textContent);
      const seen = [click(nth(2)), marked(), click(nth(4)), click(document.querySelectorAll(".line .who")[2])];
      for (const cursor of [2500, 2900]) {
        seek(cursor);
        drawList();
        seen.push(marked());
      }
      return seen;
    """
    seen = outcome(MEETING, f"{HANDS} function test() {{ {script} }}", words=SAID)
    assert seen == [[1600, 3000, 1], [" Hello,"], [3200, 3400, 1], [4000, 6000, 2], [" Ada"], []]


def test_lines_stay_while_their_words_are_marked_even_words_without_duration(outcome):
    script = """
      drawList();
      const lines = [...$("lines").children];
      const marks = [700, 950, 2500].map((cursor) => {
        seek(cursor);
        drawList();
        return [...document.querySelectorAll(".word.heard")].map((word) => word.textContent);
      });
      return [marks, lines.every((line, at) => line === $("lines").children[at])];
    """
    words = [*SAID[:1], Word(0.95, 0.95, " uh", "speaker_0"), *SAID[2:]]
    seen = outcome(MEETING, f"{HANDS} function test() {{ {script} }}", words=words)
    assert seen == [[[" Good"], [" uh"], [" Ada"]], True]


def test_the_list_follows_the_words_of_a_long_turn_until_the_user_scrolls_away(outcome):
    turns = (Turn(0.0, 900.0, "a"), Turn(500.0, 501.0, "b"), Turn(900.0, 910.0, "b"))
    words = [Word(at / 2, at / 2 + 0.4, " word", "a") for at in range(1800)] + [Word(500.1, 500.4, " yes", "b")]
    script = """
      const box = $("list");
      const draw = () => { drawList(); revealHeard(); drawList(); };
      const inSight = () => {
        const [inner, outer] = [document.querySelector(".word.heard"), box].map((each) => each.getBoundingClientRect());
        return outer.top <= inner.top && inner.bottom <= outer.bottom;
      };
      const play = (from, to) => {
        for (sound.cursor = from; sound.cursor < to; sound.cursor += 500) {
          draw();
          if (!inSight()) return `lost at ${sound.cursor}`;
        }
        return "followed";
      };
      const [turn] = steps.state.turns;
      choose(turn, wordsOf(turn)[700]);
      draw();
      const seen = [inSight(), play(350_000, 600_000)];
      const { scrollTop } = box;
      choose(turn, wordsOf(turn)[1190]);
      draw();
      seen.push(box.scrollTop === scrollTop);
      box.scrollTop = 0;
      seen.push(play(600_000, 700_000), box.scrollTop);
      step(100);
      draw();
      seen.push(inSight());
      seek(450);
      draw();
      seen.push(play(500, 3000));
      box.scrollTop = 3000;
      choose(turn);
      draw();
      seen.push(box.scrollTop);
      choose(steps.state.turns[2]); // below the end of the first one, which stays where it is when a word is clicked
      draw();
      const end = box.scrollTop;
      choose(turn, wordsOf(turn).at(-1));
      draw();
      return [...seen, inSight(), box.scrollTop === end];
    """
    seen = outcome(Diarization(turns, 910.0), f"{HANDS} function test() {{ {script} }}", words=words)
    assert seen == [True, "followed", True, "lost at 600000", 0, True, "followed", 0, True, True]


def test_a_word_is_in_the_turn_of_its_speaker_that_shares_most_with_it(outcome):
    turns = tuple(Turn(*span, "a") for span in ((0.0, 4.0), (1.0, 2.0), (1.5, 3.8), (7.0, 8.0)))
    spans = {"long": (3.5, 4.5), "brief": (1.4, 1.8), "before": (5.0, 5.4), "after": (6.0, 6.9)}
    words = [Word(*span, text, "a") for text, span in spans.items()]
    script = f"{SHOWN} return texts;"
    assert outcome(Diarization(turns, 9.0), f"{HANDS} function test() {{ {script} }}", words=words) == [
        "long before",
        "brief",
        None,
        "after",
    ]


def test_text_can_be_selected_without_playing_it(outcome):
    script = """
      select(2);
      drawList();
      const word = document.querySelector(".word");
      word.scrollIntoView({ block: "center" });
      const { left, top } = word.getBoundingClientRect();
      const chosen = (selects) => {
        getSelection().empty();
        if (selects) getSelection().selectAllChildren(word);
        onLine({ clientX: left + 2, clientY: top + 2 });
        return steps.state.turns.indexOf(selected);
      };
      return [chosen(true), chosen(false)];
    """
    assert outcome(MEETING, f"{HANDS} function test() {{ {script} }}", words=SAID) == [2, 0]


def test_a_long_turn_is_printed_from_where_it_begins_and_without_marks_of_the_screen(outcome):
    script = """
      [...document.styleSheets[0].cssRules].find((rule) => rule.media?.mediaText === "print").media.mediaText = "all";
      press("ArrowRight");
      $("list").focus();
      drawList();
      const style = (name) => getComputedStyle(document.querySelector(name));
      const [line, head] = [style(".line"), style(".head")];
      return [line.breakInside, head.breakAfter, style(".word.heard").textDecorationLine, style("#list").outlineStyle];
    """
    seen = outcome(MEETING, f"{HANDS} function test() {{ seek(700); {script} }}", words=SAID)
    assert seen == ["auto", "avoid", "none", "none"]


def test_a_second_click_pauses_at_the_word_so_that_the_turn_can_be_split_there(outcome):
    script = """
      const calls = [];
      sound.loaded = true;
      sound.player.play = async () => calls.push("play");
      sound.player.pause = () => calls.push("pause");
      drawList();
      const [, , , word] = document.querySelectorAll(".word");
      word.scrollIntoView({ block: "center" });
      getSelection().selectAllChildren(word); // as browsers do
      const { left, top } = word.getBoundingClientRect();
      onLine({ type: "dblclick", clientX: left + 9, clientY: top + 5 });
      splitSelected();
      return [calls, getSelection().isCollapsed, steps.state.turns.map((turn) => textOf(turn))];
    """
    said = ["Good morning.", "Hello,", "Ada so", "yes", "<b>no"]
    seen = outcome(MEETING, f"{HANDS} function test() {{ {script} }}", words=SAID)
    assert seen == [["play", "pause"], True, said]


def test_without_a_transcript_there_are_no_words(outcome):
    script = f"""
      {SHOWN}
      const help = document.querySelector("details");
      help.open = true;
      const told = help.innerText.includes("words");
      return [texts, $("find").checkVisibility(), told, "words" in JSON.parse(asJson(result, steps.state))];
    """
    assert outcome(MEETING, f"{HANDS} function test() {{ {script} }}") == [[None] * 4, False, False, False]
    assert outcome(MEETING, f"{HANDS} function test() {{ {script} }}", words=SAID)[1:] == [True, True, True]
    silent = replace(MEETING, turns=())
    script = "return JSON.parse(asJson(result, steps.state)).words.map((word) => word.speaker);"
    words = [word._replace(speaker=None) for word in SAID]
    assert outcome(silent, f"{HANDS} function test() {{ {script} }}", words=words) == [None] * 7


def test_words_that_have_no_turn_are_shown_until_one_is_added_where_they_are(outcome):
    script = """
      const shown = () => [$("unassigned").checkVisibility(), $("unassigned").textContent.trim()];
      const seen = [shown()];
      $("unassigned").children[3].click();
      seen.push(sound.cursor);
      addTurn();
      seen.push(shown(), textOf(steps.state.turns[0]).length);
      undo();
      return [...seen, shown()];
    """
    words = [word._replace(speaker=None) for word in SAID]
    seen = outcome(replace(MEETING, turns=()), f"{HANDS} function test() {{ {script} }}", words=words)
    text = "Good morning. Hello, Ada so yes <b>no"
    assert seen == [[True, text], 2500, [False, ""], len(text), [True, text]]


def test_words_are_joined_as_in_text(outcome):
    texts = ["今日は", "元気", "?", "OK", "then"]
    words = [Word(0.6 + at / 10, 0.65 + at / 10, text, "speaker_0") for at, text in enumerate(texts)]
    script = f"{SHOWN} return texts[0];"
    assert outcome(MEETING, f"{HANDS} function test() {{ {script} }}", words=words) == "今日は元気? OK then"


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_word_stays_data(text):
    page = html.format(MEETING, [Word(0.0, 1.0, text, "speaker_0")])
    plain = Scripts(html.format(MEETING)).found
    found = Scripts(page).found
    assert (plain["words"], {**found, "words": "null"}) == ("null", plain)
    assert page.isascii()


def test_what_is_not_a_word_is_refused():
    with pytest.raises(InputError, match="words must be"):
        html.format(MEETING, ["Hello"])  # pyright: ignore[reportArgumentType]
