// The buttons, fields and keys, and their actions.

/** Select a turn, show it and play it, from its start or a word of it. */
function choose(turn, word = null) {
  selected = turn;
  hear(word?.start ?? turn.start, Math.max(turn.end, word?.end ?? 0));
  keepInView(sound.cursor);
  if (!word || !isHeard(turn)) revealLine(turn); // the list follows the word
  revealRow(turn);
  refresh();
}

function ofSelected(action) {
  if (!selected) throw new Refusal("Select a turn first.");
  action(selected);
}

function changeSelected(change) {
  attempt(() =>
    ofSelected((turn) => {
      if (Object.entries(change).every(([key, value]) => turn[key] === value)) return refresh();
      const now = changed(turn, change, limit);
      become(replaced(steps.state, turn, now), now);
    }),
  );
}

function splitSelected() {
  attempt(() =>
    ofSelected((turn) => {
      const [left, right] = halves(turn, sound.cursor);
      become(replaced(steps.state, turn, left, right), right);
      say(`Split at ${clock(right.start)}.`);
    }),
  );
}

function deleteSelected() {
  attempt(() =>
    ofSelected((turn) => {
      become(replaced(steps.state, turn));
      say(`Deleted at ${clock(turn.start)}: ${turn.speaker}.`);
    }),
  );
}

/** Add a turn of a second at the cursor: of the selected turn's speaker, the first speaker or a new one. */
function addTurn() {
  attempt(() => {
    const speaker = selected?.speaker ?? steps.state.speakers[0]?.name ?? freeName(steps.state, result.speakers);
    const end = Math.min(sound.cursor + 1000, limit);
    const turn = changed({ speaker }, { start: Math.max(0, Math.min(sound.cursor, end - 1000)), end }, limit);
    become(replaced(steps.state, null, turn), turn);
    revealLine(turn);
    revealRow(turn);
    say(`Added at ${clock(turn.start)}: ${turn.speaker}.`);
  });
}

function rename(from, typed) {
  attempt(() => {
    // Typed letters with diacritics may be composed or decomposed.
    const known = steps.state.speakers.find((row) => row.name.normalize("NFC") === typed.normalize("NFC"));
    const to = known?.name ?? typed;
    if (from === to) return refresh();
    const merging = steps.state.speakers.some((row) => row.name === to);
    const state = renamed(steps.state, from, to);
    const now = selected && { ...selected, speaker: selected.speaker === from ? to : selected.speaker };
    const same = (turn) => ["start", "end", "speaker"].every((key) => turn[key] === now?.[key]);
    become(state, merging ? null : (state.turns.find(same) ?? null));
    if (merging) say(`${from} is merged into ${to}; Undo separates them again.`);
  });
}

function mergeChosen() {
  const [from, to] = [$("merged").value, $("into").value];
  attempt(() => {
    if (!from || !to || from === to) throw new Refusal("Choose two speakers to merge.");
    rename(from, to);
  });
}

function download(suffix, content) {
  attempt(() => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([content(result, steps.state)], { type: "application/octet-stream" }));
    link.download = `${result.uri}.${suffix}`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
    steps.saved = steps.state;
    refresh();
  });
}

function chooseAt(index) {
  const { turns } = steps.state;
  if (turns.length) choose(turns[Math.max(0, Math.min(index, turns.length - 1))]);
}

function moveSelection(by) {
  const { turns } = steps.state;
  chooseAt(selected ? turns.indexOf(selected) + by : turns.findLastIndex((turn) => turn.start <= sound.cursor));
}

function step(ms) {
  seek(sound.cursor + ms);
  keepInView(sound.cursor);
}

function nextUnsure() {
  const { turns } = steps.state;
  const after = turns.indexOf(selected) + 1;
  const next = [...turns.slice(after), ...turns.slice(0, after)].find(isUnsure);
  if (next) choose(next);
  else say("No turn has a confidence below that.");
}

let found = null; // the word at which Find stopped last

/** Go to the next place after the cursor where a text was said, after the last to the first, and play from there. */
function nextSaid() {
  const typed = $("find").value.trim();
  const wanted = folded(typed).trim();
  if (!wanted) return say("Type what was said, to find it.");
  const places = steps.state.turns.flatMap((turn) => wordsWith(wanted, turn).map((word) => ({ turn, word })));
  if (!places.length) return say(`Nobody says "${typed}" within a turn.`);
  const at = (place) => Math.min(place.word.start, limit);
  places.sort((a, b) => at(a) - at(b));
  const last = places.findIndex((place) => place.word === found && at(place) === sound.cursor);
  const next = places[last + 1 || places.findIndex((place) => at(place) >= sound.cursor)] ?? places[0];
  found = next.word;
  choose(next.turn, next.word);
  say(`${places.indexOf(next) + 1} of ${places.length}`);
}

/** Instead of the browser's search, which knows only visible lines; Ctrl+F in the field still opens that. */
function goToFind() {
  $("find").focus();
  $("find").select();
}

const CLICKS = {
  play: toggle,
  closer: () => zoom(1 / 2),
  wider: () => zoom(2),
  whole: () => look(0, limit),
  undo,
  redo,
  rttm: () => download("rttm", asRttm),
  json: () => download("json", asJson),
  hear: () => attempt(() => ofSelected(choose)),
  startHere: () => changeSelected({ start: sound.cursor }),
  endHere: () => changeSelected({ end: sound.cursor }),
  split: splitSelected,
  remove: deleteSelected,
  add: addTurn,
  unsure: nextUnsure,
  found: nextSaid,
  wrong: nextError,
  merge: mergeChosen,
};

const KEYS = new Map([
  [" ", toggle],
  ["+", CLICKS.closer],
  ["-", CLICKS.wider],
  ["0", CLICKS.whole],
  ["i", CLICKS.startHere],
  ["o", CLICKS.endHere],
  ["s", splitSelected],
  ["a", addTurn],
  ["n", nextUnsure],
  ["e", nextError],
  ["Delete", deleteSelected],
  ["Backspace", deleteSelected],
]);

/** Keys with another meaning elsewhere, which are active only in the timeline and the list. */
const KEYS_WITHIN = new Map([
  ["ArrowLeft", () => step(-100)],
  ["ArrowRight", () => step(100)],
  ["PageUp", () => step(-5000)],
  ["PageDown", () => step(5000)],
  ["ArrowUp", () => moveSelection(-1)],
  ["ArrowDown", () => moveSelection(1)],
  ["Home", () => chooseAt(0)],
  ["End", () => chooseAt(Infinity)],
  ["Enter", () => attempt(() => ofSelected(choose))],
]);

/** Keys of the slider: Firefox would move it by a millisecond, or by a tenth of the recording. */
const KEYS_OF_SLIDER = new Map([
  ["ArrowLeft", () => look(view.start - view.span / 10)],
  ["ArrowDown", () => look(view.start - view.span / 10)],
  ["ArrowRight", () => look(view.start + view.span / 10)],
  ["ArrowUp", () => look(view.start + view.span / 10)],
  ["PageDown", () => look(view.start - view.span)],
  ["PageUp", () => look(view.start + view.span)],
]);

let pointed = null; // what was last clicked or touched, unless a key was pressed since

/** Leave a menu or field in which something was chosen by mouse: a letter then acts on the turns, not on the menu. */
function onChange({ target }) {
  if (target === pointed) target.blur();
}

function onKey(event) {
  pointed = null;
  const within = (where) => event.target.closest?.(where);
  if (event.isComposing) return; // of Chinese or Japanese, for example: Enter ends the composition only
  if (event.key === "Enter" && within("#find")) return nextSaid(); // again and again
  if (event.key === "Escape" && within("#find")) return $("list").focus();
  if (event.key === "Enter" && within("input:not([type])")) return event.target.blur();
  const { value, defaultValue = value } = event.target; // as set by refresh()
  const unfinished = value !== defaultValue; // the user is typing, and undo is that of the browser
  // The keys of other alphabets are those of the Latin letters in their places.
  const letter = /^[^ -~]$/.test(event.key) ? event.code.replace(/^Key/, "") : event.key;
  const key = letter.length === 1 ? letter.toLowerCase() : letter;
  const undoing = (event.ctrlKey || event.metaKey) && /^[zy]$/.test(key) && !unfinished;
  if (event.altKey || (!undoing && within("input:not([type=range]), select"))) return;
  const here = within("#position") ? KEYS_OF_SLIDER : within("#timeline, #list") ? KEYS_WITHIN : null;
  let action = KEYS.get(key) ?? here?.get(key);
  if (event.ctrlKey || event.metaKey) {
    action = { z: event.shiftKey ? redo : undo, y: redo, f: words.length ? goToFind : undefined }[key];
  } else if (key === " " && within("button, summary")) {
    return; // it presses the button
  } else if (/^[^ ]$/.test(key) && !$("single").checked) {
    return; // it may be a word that was dictated (WCAG 2.1.4)
  }
  if (!action) return;
  event.preventDefault();
  action();
}
