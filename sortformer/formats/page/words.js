// The words of the transcript, each in a turn of its speaker. A word keeps the speaker it came with until a correction
// changes who speaks longest during it; then it gets that speaker, as from words.py.

const given = JSON.parse($("words").textContent); // null without a transcript
const words = (given ?? []).map(([start, end, text, speaker]) => {
  return { start, end, text, origin: result.speakers.indexOf(speaker) };
});
const formerly = speakersOf(steps.state).map((row) => row?.origin);

let placed = { state: null }; // the last state whose words were placed, and the result

/** The words of a turn of the current state, in order. */
function wordsOf(turn) {
  return (words.length && placedIn(steps.state).byTurn.get(turn)) || [];
}

function textOf(turn) {
  return wordsOf(turn).map((word) => word.text).join("").trim();
}

/** The words of a turn at which a text begins that is folded. */
function wordsWith(wanted, turn) {
  const said = wordsOf(turn);
  const texts = said.map((word) => folded(word.text));
  const whole = texts.join("");
  let [end, place] = [0, whole.indexOf(wanted)];
  return said.filter((_, at) => {
    const start = end;
    end += texts[at].length;
    if (place >= 0 && place < start) place = whole.indexOf(wanted, start);
    return start <= place && place < end;
  });
}

/** A text without what searches ignore: case, diacritics, the width of spaces. */
function folded(text) {
  return text.normalize("NFKD").replace(/\p{Diacritic}/gu, "").replace(/\s+/g, " ").toUpperCase();
}

/** The words of a state for its JSON, if there are any, with the schema of formats/json.py. */
function wordsAsJson(state) {
  if (!given) return {};
  const { names } = placedIn(state);
  const listed = words.map(({ start, end, text }, at) => ({
    start: start / 1000,
    end: end / 1000,
    text: text.trim(),
    speaker: names[at],
  }));
  return { words: listed };
}

function placedIn(state) {
  if (placed.state === state) return placed;
  const byOrigin = new Map(state.speakers.map((row) => [row.origin, row]));
  const rows = speakersOf(state).map((row, at) => {
    return (row?.origin === formerly[at] && byOrigin.get(words[at].origin)) || row;
  });
  const turns = indexed(state.turns);
  const byTurn = new Map();
  for (const [at, row] of rows.entries()) {
    if (!row) break;
    const { turn } = during(words[at], turns.get(row.name));
    if (!byTurn.has(turn)) byTurn.set(turn, []);
    byTurn.get(turn).push(words[at]);
  }
  placed = { state, byTurn, names: rows.map((row) => row?.name ?? null) };
  return placed;
}

/** The row of who speaks longest during each word or, if nobody does, nearest to it; ties go to who arrives first. */
function speakersOf(state) {
  const rows = new Map(state.speakers.map((row) => [row.name, row]));
  const turns = indexed(joined(state.turns));
  const names = byArrival(state.turns);
  return words.map((word) => {
    const shares = names.map((name) => during(word, turns.get(name)).share);
    return rows.get(names[shares.indexOf(Math.max(...shares))]);
  });
}

/** The turns of each speaker, sorted, and for each the one of these up to it that ends last. */
function indexed(turns) {
  const found = new Map();
  for (const turn of turns) {
    if (!found.has(turn.speaker)) found.set(turn.speaker, { sorted: [], longest: [] });
    const { sorted, longest } = found.get(turn.speaker);
    sorted.push(turn);
    longest.push(longest.length && longest.at(-1).end >= turn.end ? longest.at(-1) : turn);
  }
  return found;
}

/** How long the turns of a speaker last during a word, or minus the distance to them, and the turn nearest to it. */
function during({ start, end }, { sorted, longest }) {
  const next = firstFrom(sorted.length, (at) => sorted[at].start >= end);
  let found = { share: 0, turn: null };
  let most = 0;
  for (let at = next - 1; at >= 0 && longest[at].end > start; at -= 1) {
    const shared = Math.max(0, Math.min(end, sorted[at].end) - Math.max(start, sorted[at].start));
    found.share += shared;
    if (shared > most) [most, found.turn] = [shared, sorted[at]];
  }
  if (found.turn) return found;
  const away = (turn) => Math.max(0, turn.start - end, start - turn.end);
  const [before, after] = [longest[next - 1], sorted[next]];
  const turn = !after || (before && away(before) <= away(after)) ? before : after;
  return { share: -away(turn), turn };
}

/** The first of so many indices for which this holds, as it does for all that follow. */
function firstFrom(count, holds) {
  let [low, high] = [0, count];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
