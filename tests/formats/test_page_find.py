"""Find, in a page with words: places, spellings and keys."""

from sortformer.annotation import Diarization, Turn
from sortformer.words import Word
from tests.formats.opened_page import HANDS, MEETING, SAID


def test_each_place_where_something_was_said_can_be_found_and_is_played(outcome):
    script = """
      const next = (text) => {
        $("find").value = text;
        press("Enter", {}, $("find"));
        return [sound.cursor, steps.state.turns.indexOf(selected), $("said").textContent];
      };
      const seen = ["HELLO,  a", "o", "o", "o", " o ", "morning, Ada", " "].map(next);
      seek(2500);
      return [$("find").checkVisibility(), ...seen, next("a"), next("s")];
    """
    assert outcome(MEETING, f"{HANDS} function test() {{ {script} }}", words=SAID) == [
        True,
        [1600, 1, "1 of 1"],
        [3200, 1, "4 of 5"],
        [7000, 3, "5 of 5"],
        [600, 0, "1 of 5"],
        [900, 0, "2 of 5"],
        [900, 0, 'Nobody says "morning, Ada" within a turn.'],
        [900, 0, "Type what was said, to find it."],
        [2500, 1, "1 of 1"],
        [3200, 1, "1 of 2"],
    ]


def test_places_at_one_time_in_overlapping_turns_or_after_the_end_are_found_one_by_one(outcome):
    script = """
      $("find").value = "a";
      return [1, 2, 3, 4, 5, 6].map(() => (nextSaid(), [sound.cursor, $("said").textContent]));
    """
    words = [Word(*span, "a", "a") for span in ((0.0, 0.1), (0.0, 0.2), (12.0, 12.1), (13.0, 13.1))]
    words.append(Word(1.2, 1.3, "a", "b"))
    recording = Diarization((Turn(0.0, 9.0, "a"), Turn(1.0, 2.0, "b")), 10.0)
    seen = outcome(recording, f"{HANDS} function test() {{ {script} }}", words=words)
    places = [(0, 1), (0, 2), (1200, 3), (10000, 4), (10000, 5), (0, 1)]
    assert seen == [[ms, f"{number} of 5"] for ms, number in places]


def test_what_is_found_may_be_written_with_other_accents_letters_and_spaces(outcome):
    script = """
      const finds = (text) => {
        $("find").value = text;
        nextSaid();
        return wordsOf(selected).findIndex(isHeard);
      };
      const texts = ["cafe\\u0301", "CAFE a", "grosse", "\\u0631\\u062c\\u0644 x", "\\u304b", "\\u0e01"];
      return texts.map(finds);
    """
    said = ["café", "\N{NO-BREAK SPACE}a", "große", "رجلٌ", "x", "か", "ก็"]
    words = [Word(0.6 + at / 10, 0.65 + at / 10, f" {text}", "speaker_0") for at, text in enumerate(said)]
    assert outcome(MEETING, f"{HANDS} function test() {{ {script} }}", words=words) == [0, 0, 2, 3, 5, 6]


def test_what_is_said_with_a_pause_is_found_with_a_space_only_where_the_script_has_one(outcome):
    script = """
      return ["今日は元気", "สวัสดีครับ", "so then", "気 OK", "then今"].map((text) => {
        $("find").value = text;
        nextSaid();
        return $("said").textContent;
      });
    """
    said = ["今日は", "元気", "OK", "so", "then", "今", "สวัสดี", "ครับ"]
    words = [Word(2.0 * at, 2.0 * at + 0.5, text, "a") for at, text in enumerate(said)]
    seen = outcome(Diarization((Turn(0.0, 20.0, "a"),), 20.0), f"{HANDS} function test() {{ {script} }}", words=words)
    assert seen == ["1 of 1"] * 4 + ['Nobody says "then今" within a turn.']


def test_find_keeps_the_focus_until_escape_and_leaves_enter_to_who_composes_letters(outcome):
    script = """
      $("find").focus();
      $("find").value = "o";
      const seen = [];
      for (const [key, held] of [["Enter", { isComposing: true }], ["Enter", {}], ["Enter", {}], ["Escape", {}]]) {
        pressThere(key, held);
        seen.push([sound.cursor, document.activeElement.id]);
      }
      return seen;
    """
    seen = outcome(MEETING, f"{HANDS} function test() {{ {script} }}", words=SAID)
    assert seen == [[0, "find"], [600, "find"], [900, "find"], [900, "list"]]


def test_ctrl_f_finds_words_that_are_not_drawn_and_leaves_the_field_and_other_pages_to_the_browser(outcome):
    script = """
      const taken = (target) => {
        const event = new KeyboardEvent("keydown", { key: "f", ctrlKey: true, bubbles: true, cancelable: true });
        return !target.dispatchEvent(event);
      };
      return [taken(document.body), document.activeElement.id, taken($("find"))];
    """
    script = f"{HANDS} function test() {{ {script} }}"
    assert outcome(MEETING, script, words=SAID) == [True, "find", False]
    assert outcome(MEETING, script)[0] is False
