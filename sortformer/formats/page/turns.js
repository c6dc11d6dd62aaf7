// What can be corrected, as functions from one state to the next. A state is {turns, speakers}; nothing in it ever changes,
// so that a step back is the state of before. turns: {start, end (whole ms), speaker, confidence or null}, sorted;
// speakers: {name, colour (its index)}, the rows of the timeline from above.

/** An edit or an export that cannot be; its message is for the user. */
class Refusal extends Error {}

/** The state that a result (the document of formats/json.py) begins with. */
function opened(result) {
  const turns = result.turns.map((turn) => ({
    start: Math.round(1000 * turn.start),
    end: Math.round(1000 * turn.end),
    speaker: turn.speaker,
    confidence: turn.confidence,
  }));
  return stateOf(turns, result.speakers.map((name, colour) => ({ name, colour })));
}

/** The last whole millisecond of a recording: no turn ends after it. */
function limitOf(result) {
  return Math.floor(1000 * result.duration + 1e-6);
}

/** A state of these turns: rows keep their order and colour, those without a turn go, new ones come last. */
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

/** A name for somebody new that nobody bears, nor bore in the result: it would be taken for theirs. */
function freeName(state, former) {
  const taken = new Set([...former, ...state.speakers.map((row) => row.name)]);
  let number = 0;
  while (taken.has(`speaker_${number}`)) number += 1;
  return `speaker_${number}`;
}

/** Give a speaker another name everywhere; the name of somebody else makes the two one. */
function renamed(state, from, to) {
  if (!to) throw new Refusal("A speaker needs a name.");
  const turns = state.turns.map((turn) => (turn.speaker === from ? { ...turn, speaker: to } : turn));
  const known = state.speakers.some((row) => row.name === to);
  const rows = state.speakers.map((row) => (row.name === from && !known ? { ...row, name: to } : row));
  return stateOf(turns, rows);
}

/** Put others in the place of a turn (of none, where it is null). */
function replaced(state, turn, ...others) {
  return stateOf([...state.turns.filter((each) => each !== turn), ...others], state.speakers);
}

/** A turn with another start, end or speaker; what a person has decided is no longer the model's to be sure of. */
function changed(turn, change, limit) {
  const { start, end, speaker } = { ...turn, ...change };
  if (!(0 <= start && start < end && end <= limit)) {
    throw new Refusal(`A turn begins before it ends, between 0 and ${clock(limit)}; times are like 1:02:03.5 or 62.5.`);
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

/** As Python compares strings; JavaScript's < would take halves of the characters beyond 16 bits. */
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

/** Milliseconds of a time as people write it, h:mm:ss.mmm or seconds; NaN of anything else. */
function parsedClock(text) {
  const fields = text.trim().replace(",", ".").split(":");
  if (fields.length > 3 || !fields.every((field) => /^\d+(\.\d*)?$/.test(field))) return NaN;
  return Math.round(1000 * fields.reduce((sum, field) => 60 * sum + Number(field), 0));
}
