// The corrections, as functions from one state to the next. A state is {turns, speakers} and immutable, so undo returns
// to an earlier one. turns: {start, end (whole ms), speaker, confidence or null}, sorted; speakers: {name, colour (its
// index), origin (in the speakers of the result, if it is one of them)}, the rows of the timeline from the top.

/** An edit or an export that is impossible; the message is for the user. */
class Refusal extends Error {}

/** The initial state of a result (a document of formats/json.py). */
function opened(result) {
  const turns = result.turns.map((turn) => ({
    start: Math.round(1000 * turn.start),
    end: Math.round(1000 * turn.end),
    speaker: turn.speaker,
    confidence: turn.confidence,
  }));
  return stateOf(turns, result.speakers.map((name, index) => ({ name, colour: index, origin: index })));
}

/** The last whole millisecond of a recording, the latest end of a turn. */
function limitOf(result) {
  return Math.floor(1000 * result.duration + 1e-6);
}

/** A state of these turns: rows keep order and colour, those without a turn are removed, new ones appended. */
function stateOf(turns, rows) {
  const sorted = [...turns].sort(byTime);
  const names = new Set(sorted.map((turn) => turn.speaker));
  const speakers = rows.filter((row) => names.delete(row.name));
  for (const name of names) speakers.push({ name, colour: freeColour(speakers) });
  return { turns: sorted, speakers };
}

function freeColour(speakers) {
  const taken = new Set(speakers.map((row) => row.colour));
  let colour = 0;
  while (taken.has(colour)) colour += 1;
  return colour;
}

/** A name for a new speaker, unused here and in the result, so that it is not taken for a known speaker. */
function freeName(state, former) {
  const taken = new Set([...former, ...state.speakers.map((row) => row.name)]);
  let number = 0;
  while (taken.has(`speaker_${number}`)) number += 1;
  return `speaker_${number}`;
}

/** Rename a speaker everywhere; the name of another speaker merges the two. */
function renamed(state, from, to) {
  if (!to) throw new Refusal("A speaker needs a name.");
  const turns = state.turns.map((turn) => (turn.speaker === from ? { ...turn, speaker: to } : turn));
  const known = state.speakers.some((row) => row.name === to);
  const rows = state.speakers.map((row) => (row.name === from && !known ? { ...row, name: to } : row));
  return stateOf(turns, rows);
}

/** Replace a turn by others; if it is null, only add these. */
function replaced(state, turn, ...others) {
  return stateOf([...state.turns.filter((each) => each !== turn), ...others], state.speakers);
}

/** A turn with another start, end or speaker; it loses its confidence, which is the model's. */
function changed(turn, change, limit) {
  const { start, end, speaker } = { ...turn, ...change };
  if (!(0 <= start && start < end && end <= limit)) {
    throw new Refusal(`A turn must begin before it ends, between 0 and ${clock(limit)}; times are like 1:02:03.5 or 62.5.`);
  }
  return { start, end, speaker, confidence: null };
}

/** The two halves of a turn. */
function halves(turn, at) {
  if (!(turn.start < at && at < turn.end)) throw new Refusal("Put the cursor inside the turn to split it there.");
  return [{ ...turn, end: at }, { ...turn, start: at }];
}

/** The order of turns: by start, end and speaker. */
function byTime(a, b) {
  return a.start - b.start || a.end - b.end || byCodePoint(a.speaker, b.speaker);
}

/** The order of strings in Python, by code points; JavaScript's < compares surrogates. */
function byCodePoint(a, b) {
  const [left, right] = [[...a], [...b]];
  const at = left.findIndex((letter, index) => letter !== right[index]);
  if (at < 0) return left.length - right.length;
  return at < right.length ? left[at].codePointAt(0) - right[at].codePointAt(0) : 1;
}

/** Milliseconds as h:mm:ss.mmm. */
function clock(ms) {
  const [seconds, rest] = [Math.floor(ms / 1000), Math.floor(ms % 1000)];
  const two = (number) => String(number).padStart(2, "0");
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  return `${hours}:${two(minutes)}:${two(seconds % 60)}.${String(rest).padStart(3, "0")}`;
}

/** The milliseconds of a typed time, h:mm:ss.mmm or seconds; NaN for anything else. */
function parsedClock(text) {
  const fields = text.trim().replace(",", ".").split(":");
  if (fields.length > 3 || !fields.every((field) => /^\d+(\.\d*)?$/.test(field))) return NaN;
  return Math.round(1000 * fields.reduce((sum, field) => 60 * sum + Number(field), 0));
}
