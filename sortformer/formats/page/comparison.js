// The reference of a scored result: a lane for each kind of error, and a row for each reference speaker.
// The errors are those of the original result, without the corrections.

const LANE = 16; // must match .lane in style.css
const KINDS = ["miss", "false alarm", "confusion"];
const SEEN = 6; // pixels that an error needs to be seen; if it has fewer, the view zooms to AROUND ms
const AROUND = 10_000;
const MARGIN = 500; // played before and after an error, because most errors are short
const SLACK = 250; // how late a player may stop
const HEARD = 100; // shorter errors are mere borders, and skipped if there are longer ones

const comparison = JSON.parse($("comparison").textContent); // null without a reference
const reference = comparison?.reference ?? [];
const wrong = comparison?.errors ?? [];
const long = wrong.filter(({ span: [start, end] }) => end - start >= HEARD);
const stops = long.length ? long : wrong;
const lanes = comparison ? KINDS.map((kind) => wrong.filter((each) => each.kinds.includes(kind)).map((each) => each.span)) : [];
const heightOfLanes = LANE * lanes.length;
const heightOfReference = () => (comparison ? LANE + ROW * reference.length : 0);

let error = null; // the last one visited

/** The colour of the speaker of the result to whom a reference speaker is mapped. */
function colourOfPair({ pair }, unpaired) {
  const colour = result.speakers.indexOf(pair);
  return colour < 0 ? unpaired : COLOURS[colour % COLOURS.length];
}

/** The stretches (start, end) in view, as bars of this height. */
function barsOf(stretches, y, height, width) {
  const scale = width / view.span;
  return stretches
    .filter(([start, end]) => end >= view.start && start <= view.start + view.span)
    .map(([start, end]) => [(start - view.start) * scale, y, Math.max(1, (end - start) * scale), height]);
}

function drawLanes(pen, width, colours) {
  for (const [lane, stretches] of lanes.entries()) {
    const y = RULER + LANE * lane;
    pen.fillStyle = colours.line;
    pen.fillRect(0, y, width, 1);
    fill(pen, barsOf(stretches, y + 4, LANE - 7, width), colours.ink);
  }
  if (!comparison) return;
  const borders = [0, ...comparison.scored.flat(), limit];
  const left = borders.flatMap((start, at) => (at % 2 || borders[at + 1] <= start ? [] : [[start, borders[at + 1]]]));
  fill(pen, barsOf(left, RULER + 1, heightOfLanes - 1, width), colours.line);
}

function drawReference(pen, width, top, colours) {
  for (const [row, each] of reference.entries()) {
    const y = top + LANE + ROW * row;
    pen.fillStyle = colours.line;
    pen.fillRect(0, y, width, 1);
    const bars = barsOf(each.turns, y + 9, ROW - 17, width);
    drawBars(pen, bars, colourOfPair(each, colours.faint), colours.veil, 1, colours.edge, []);
  }
}

function fill(pen, bars, colour) {
  const inside = new Path2D();
  for (const bar of bars) inside.rect(...bar);
  pen.fillStyle = colour;
  pen.fill(inside);
}

/** Go to the next audible error, after the last one to the first, play it and describe it. */
function nextError() {
  if (!stops.length) return say(comparison ? "There are no errors." : "This page was made without a reference.");
  const stayed = error && error.span[0] - MARGIN <= sound.cursor && sound.cursor <= error.span[1] + MARGIN + SLACK;
  error = (stayed ? stops[stops.indexOf(error) + 1] : stops.find(({ span }) => span[0] >= sound.cursor)) ?? stops[0];
  const [start, end] = error.span;
  hear(Math.max(0, start - MARGIN), Math.min(limit, end + MARGIN));
  keepInView(start);
  if (toX(end) - toX(start) < SEEN) look((start + end - AROUND) / 2, AROUND);
  redraw();
  say(`${clock(start)} to ${clock(end)}: ${error.text}`);
}

/** The labels of lanes and rows. */
function nameComparison() {
  $("errors").hidden = !comparison;
  if (!comparison) return;
  $("score").textContent = comparison.score;
  for (const kind of KINDS) $("lanes").append(cell("lane", kind));
  $("reference").append(cell("lane", "reference"));
  for (const each of reference) {
    const row = cell("referee", "");
    row.append(swatch(colourOfPair(each, "var(--faint)")), cell("who", each.speaker));
    row.title = each.speaker;
    $("reference").append(row);
  }
}

/** Start and end (ms) of the part of the recording that was scored, or of which the result is. */
function part() {
  const excerpt = Math.min(1000 * (result.time_axis?.start_s ?? 0), steps.state.turns[0]?.start ?? Infinity);
  return [comparison?.scored.at(0)?.[0] ?? excerpt, comparison?.scored.at(-1)?.[1] ?? limit];
}

/** Start where this part begins, and view it. */
function lookAtPart() {
  const [first, last] = part();
  seek(first);
  if (last > first) look(first, last - first);
}

/** Extend a result that may end with its last turn, as of a scored one or an RTTM, to the duration of the recording. */
function learnLength(ms) {
  if (result.time_axis || ms <= limit) return;
  result.duration = ms / 1000;
  limit = limitOf(result);
}
