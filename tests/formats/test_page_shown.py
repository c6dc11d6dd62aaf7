"""The display of the page in a browser: turns and errors, on screen and paper; saved files: test_page.py."""

from dataclasses import replace

from sortformer.annotation import Diarization, Turn
from sortformer.formats import json
from tests.formats.opened_page import COMPARISON, HANDS, MEETING


def test_the_row_of_a_chosen_turn_is_brought_into_sight_below_the_ruler(outcome):
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
    assert outcome(many, f"{HANDS} function test() {{ {script} }}") == expected


def test_the_timeline_is_drawn_as_wide_as_it_is_shown(outcome):
    """Also when scrollbars come or go with the number of speakers, or with what is below."""
    script = """
      const stretched = async () => {
        for (let frame = 0; frame < 3; frame += 1) await new Promise(requestAnimationFrame);
        return (canvas().clientWidth * window.devicePixelRatio) / canvas().width;
      };
      const seen = [await stretched()];
      become(stateOf(steps.state.turns.slice(0, 3), steps.state.speakers));
      seen.push(await stretched());
      document.body.style.width = "700px"; // as by a scrollbar, when the help is opened
      return [...seen, await stretched()];
    """
    many = Diarization(tuple(Turn(at, at + 1.0, f"speaker_{at}") for at in range(40)), 40.0)
    for recording in (MEETING, many):
        assert outcome(recording, f"{HANDS} async function test() {{ {script} }}") == [1, 1, 1]


def test_messages_are_in_sight_of_the_list_and_take_no_space_when_there_are_none(outcome):
    script = """
      scrollTo(0, document.body.scrollHeight);
      say("Nobody says that.");
      const line = $("said").getBoundingClientRect();
      const seen = [scrollY > 200, line.top, document.elementFromPoint(line.x + 1, line.y + 1) === $("said")];
      say("");
      return [...seen, $("said").getBoundingClientRect().bottom < 0];
    """
    many = Diarization(tuple(Turn(at, at + 1.0, f"speaker_{at}") for at in range(40)), 40.0)
    assert outcome(many, f"{HANDS} function test() {{ {script} }}") == [True, 0, True, True]


def test_turns_too_narrow_to_be_seen_are_drawn_as_one(outcome):
    """Thousands of outlines take a browser a third of a second, for each step of the cursor."""
    script = """
      const drawn = () => {
        const bars = [];
        Path2D.prototype.rect = (...bar) => bars.push(bar);
        drawTimeline();
        const insides = bars.filter((_, at) => at % 2 === 0); // each is followed by its outline
        return insides.map(([x, _, width]) => [x, x + width].map((at) => Math.round(toMs(at))));
      };
      const whole = drawn();
      look(0, 2000);
      return [whole.length, ...whole[0], drawn()];
    """
    close = tuple(Turn(at / 2, at / 2 + 0.5, "Ada") for at in range(2_000))  # a turn is half a pixel wide
    close += (Turn(1_100.0, 1_101.0, "Ada"),)
    count, start, end, near = outcome(Diarization(close, 1_200.0), f"{HANDS} function test() {{ {script} }}")
    assert (count, start, 1_000_000 <= end <= 1_002_000) == (2, 0, True)
    assert near[:3] == [[0, 500], [500, 1_000], [1_000, 1_500]]


def test_errors_are_shown_in_lanes_and_what_is_not_scored_is_shaded(outcome):
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
    assert outcome(MEETING, f"{HANDS} function test() {{ {script} }}", COMPARISON) == [
        ["miss", "false alarm", "confusion"],
        ["reference", "Ada", "<b>Bob"],
        "DER 30.0 %",
        False,
        *["dark", "empty", "dark", "dark", "shaded"],
    ]


def test_all_turns_are_printed_as_text_that_is_not_scrolled(outcome):
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
    seen = outcome(many, f"{HANDS} function test() {{ {script} }}")
    assert seen == [500, True, 0, True]


def test_the_score_is_printed_too(outcome):
    script = """const test = () => {
      [...document.styleSheets[0].cssRules].find((rule) => rule.media?.mediaText === "print").media.mediaText = "all";
      return $("turns").parentElement.nextElementSibling.innerText.trim().split(/\\n+/);
    }"""
    assert outcome(MEETING, script, COMPARISON) == ["Errors", "DER 30.0 %"]
    assert outcome(MEETING, script) == [""]


def test_names_are_a_column_of_single_lines_that_begin_with_their_first_letters(outcome):
    """Also names with a line break, and Hebrew ones, which begin at the right."""
    script = """
      const names = [...document.querySelectorAll("#lines .who")];
      const aligned = (each) => [each.getBoundingClientRect().left, each.clientHeight].join();
      const [field] = $("names").querySelectorAll("input");
      const styles = [names[0], field].map((each) => getComputedStyle(each).unicodeBidi);
      return [new Set(names.map(aligned)).size, names[0].clientHeight < LINE, styles];
    """
    spans = ((0.0, 0.5, "\u05e9\u05dc\u05d5\u05dd"), (1.0, 13.0, "line\nbreak"), (20.0, 119.0, "Ada"))
    result = Diarization(tuple(Turn(*each) for each in spans), 300.0)
    drawn = f"{HANDS} function test() {{ drawList(); {script} }}"
    assert outcome(result, drawn) == [1, True, ["plaintext", "plaintext"]]


def test_an_unsure_turn_is_not_said_to_be_as_sure_as_the_threshold(outcome):
    script = "const test = () => [0.6999, 0.57, 0.7, 0.996, null].map((confidence) => sureness({ confidence }));"
    assert outcome(MEETING, script) == ["unsure 69 %", "unsure 57 %", "70 %", "100 %", ""]


def test_errors_are_gone_through_one_by_one(outcome):
    """Also if they touch, and from the cursor's position."""
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
    assert outcome(MEETING, f"{HANDS} function test() {{ {script} }}", COMPARISON) == [
        [0, "miss: Ada", False],
        [1500, "false alarm: speaker_1", False],
        [2500, "miss: Ada", False],
        [8500, "miss and confusion: <b>Bob", False],
        [0, "miss: Ada", False],
        [8500, "miss and confusion: <b>Bob", False],
        True,
    ]


def test_a_short_error_is_zoomed_to_and_the_view_begins_with_what_is_scored(outcome):
    long = Diarization((Turn(1000.0, 1001.0, "a"),), 36_000.0)
    short = {"span": [1_000_000, 1_000_020], "kinds": ["miss"], "text": "miss: b"}
    scored = {"score": "", "reference": [], "scored": [[900_000, 1_100_000]], "errors": [short]}
    script = 'const before = [view.start, view.span]; press("e"); return [before, [view.start, view.span]];'
    assert outcome(long, f"{HANDS} function test() {{ {script} }}", scored) == [
        [900_000, 200_000],
        [995_010, 10_000],
    ]


def test_borders_are_no_errors_to_stop_at_where_there_are_longer_ones(outcome):
    errors = [
        {"span": [start, end], "kinds": ["miss"], "text": str(start)}
        for start, end in ((0, 99), (2000, 2100), (5000, 5020))
    ]
    scored = {"score": "", "reference": [], "scored": [[0, 10_000]], "errors": errors}
    script = 'return [1, 2].map(() => { press("e"); return error.span[0]; });'
    assert outcome(MEETING, f"{HANDS} function test() {{ {script} }}", scored) == [2000, 2000]


def test_a_recording_may_be_longer_than_what_was_said_in_it(outcome):
    script = """
      const odd = (ms) => {
        Object.defineProperty(sound.player, "duration", { value: ms / 1000, configurable: true });
        learnLength(lengthOfFile());
        return [mismatch({ name: "a.wav" }) !== "", limit, JSON.parse(asJson(result, steps.state)).duration];
      };
      return [odd(7000), odd(12000), odd(NaN)];
    """
    assert outcome(replace(MEETING, origin=None), f"{HANDS} function test() {{ {script} }}") == [
        [True, 10_000, 10],
        [False, 12_000, 12],
        [False, 12_000, 12],
    ]


def test_an_excerpt_is_shown_from_its_start_and_may_be_of_a_longer_recording(outcome):
    script = """
      const length = (s) => Object.defineProperty(sound.player, "duration", { value: s, configurable: true });
      const asked = (s) => (length(s), mismatch({ name: "a.wav" }));
      const seen = [view.start, view.span, sound.cursor, asked(3610), asked(7200), asked(1800), asked(Infinity)];
      const drawn = []; // of which lengths, as longer ones would take gigabytes
      window.drawWaveformOf = () => drawn.push(sound.player.duration);
      listen(new File([], "a.wav"));
      for (const each of [36_000, 3610, Infinity]) (length(each), sound.player.onloadedmetadata());
      return [...seen, drawn.map(String)];
    """
    excerpt = MEETING.shift(3600.0)
    assert outcome(excerpt, f"{HANDS} function test() {{ {script} }}") == [
        *[3_600_000, 10_000, 3_600_000, ""],
        "a.wav lasts 2:00:00.000, but this result ends at 1:00:10.000: "
        "if this is not the result of an excerpt, choose the right recording.",
        "a.wav lasts 0:30:00.000, but this result ends at 1:00:10.000: choose the right recording.",
        "",
        ["3610", "Infinity"],
    ]


def test_playback_ends_with_the_result_of_an_excerpt(outcome):
    script = """
      const ends = [];
      const play = (s, until) => {
        for (const [name, value] of [["paused", false], ["currentTime", s], ["pause", () => ends.push(sound.cursor)]]) {
          Object.defineProperty(sound.player, name, { value, configurable: true });
        }
        sound.until = until;
        follow();
      };
      play(9.99, null);
      play(10.02, null);
      play(5.02, 5000);
      cancelAnimationFrame(sound.frame);
      return ends;
    """
    assert outcome(MEETING, f"{HANDS} function test() {{ {script} }}") == [10_000, 5000]


def test_from_the_end_playback_returns_to_where_the_excerpt_begins(outcome):
    script = "sound.loaded = true; seek(limit); toggle(); return sound.cursor;"
    assert outcome(MEETING.shift(3600.0), f"{HANDS} function test() {{ {script} }}") == 3_600_000


def test_a_correction_leaves_the_list_where_the_user_has_scrolled_it(outcome):
    turns = tuple(Turn(float(at), at + 0.9, f"speaker_{at % 2}") for at in range(100))
    script = """
      const box = $("list");
      const whereItIs = () => {
        drawList();
        revealHeard();
        return box.scrollTop;
      };
      select(90);
      const seen = [whereItIs() > 0];
      box.scrollTop = 0;
      for (const correct of [() => rename("speaker_0", "Ada"), undo, redo]) {
        correct();
        seen.push(whereItIs());
      }
      seek(91_000);
      return [...seen, whereItIs() > 0];
    """
    seen = outcome(Diarization(turns, 100.0), f"{HANDS} function test() {{ {script} }}")
    assert seen == [True, 0, 0, 0, True]


def test_the_speed_is_that_of_the_menu_with_another_file_too(outcome):
    script = """
      const seen = [sound.player.playbackRate];
      put($("speed"), "1.5");
      seen.push(sound.player.playbackRate);
      sound.player.playbackRate = 1;
      sound.player.onplay();
      return [...seen, sound.player.playbackRate];
    """
    assert outcome(MEETING, f"{HANDS} function test() {{ {script} }}") == [1, 1.5, 1.5]


def test_a_recording_that_firefox_kept_when_the_page_was_reloaded_is_opened(outcome):
    script = """
      const [kept, opened] = [new DataTransfer(), []];
      kept.items.add(new File([], "a.wav"));
      $("file").files = kept.files; // as is so before the page's script runs
      window.listen = (file) => opened.push(file.name);
      wire();
      return opened;
    """
    assert outcome(MEETING, f"{HANDS} function test() {{ {script} }}") == ["a.wav"]


def test_the_waveform_is_that_of_the_file_chosen_last(outcome):
    """Also if the one before was longer, and takes more time to be decoded."""
    script = """
      const decoding = [];
      OfflineAudioContext.prototype.decodeAudioData = () => new Promise((...ends) => decoding.push(ends));
      const take = (name) => {
        listen(new File([], name));
        return drawWaveformOf({ name, arrayBuffer: async () => null });
      };
      const decoded = (length) =>
        ({ sampleRate: 100, length, numberOfChannels: 1, getChannelData: () => Array(length).fill(1) });
      const all = [take("wrong.wav"), take("damaged.wav"), take("right.wav")];
      while (decoding.length < 3) await null;
      decoding[2][0](decoded(5));
      decoding[0][0](decoded(7));
      decoding[1][1]("damaged");
      await Promise.all(all);
      return [sound.peaks.length, $("said").textContent];
    """
    assert outcome(MEETING, f"{HANDS} async function test() {{ {script} }}") == [5, ""]


def test_without_a_reference_there_are_no_errors_to_go_through(outcome):
    script = 'press("e"); return [$("errors").hidden, $("lanes").children.length, $("said").textContent, topOfRows()];'
    assert outcome(MEETING, f"{HANDS} function test() {{ {script} }}") == [
        True,
        0,
        "This page was made without a reference.",
        22,
    ]


def test_warnings_are_shown_and_saved(outcome):
    script = """function test() {
      return [$("warnings").innerText, asJson(result, steps.state)];
    }"""
    sentence = "talk.mp3 is damaged <b>: using 1.0 s"
    shown, saved = outcome(MEETING.warned([sentence]), script)
    assert shown.strip() == f"Warning: {sentence}"
    assert json.parse(saved) == MEETING.warned([sentence])
    assert outcome(MEETING, script)[0] == ""
