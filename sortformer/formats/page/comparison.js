// What a result was scored against, where it was: a lane for each kind of error, and rows of who speaks by the reference.
// The errors are those of the result that the page was made of, whatever is corrected.

const LANE = 16; // as .lane in style.css has it
const KINDS = ["miss", "false alarm", "confusion"];
const SEEN = 6; // pixels that an error needs to be seen; where it has less, so much around it is in view
const AROUND = 10_000;
const MARGIN = 500; // that is heard before and after an error, most of which are short
const SLACK = 250; // by which a player stops late
const HEARD = 100; // shorter ones are borders, and passed over where there are others

const comparison = JSON.parse($("comparison").textContent); // null where there is none
const reference = comparison?.reference ?? [];
const wrong = comparison?.errors ?? [];
const long = wrong.filter(({ span: [start, end] }) => end - start >= HEARD);
const stops = long.length ? long : wrong;
const lanes = comparison ? KINDS.map((kind) => wrong.filter((each) => each.kinds.includes(kind)).map((each) => each.span)) : [];
const heightOfLanes = LANE * lanes.length;
const heightOfReference = () => (comparison ? LANE + ROW * reference.length : 0);

let error = null; // that was gone to last

/** The colour of the speaker of the result with whom somebody of the reference is paired. */
function colourOfPair({ pair }, unpaired) {
  const colour = result.speakers.indexOf(pair);
  return colour < 0 ? unpaired : COLOURS[colour % COLOURS.length];
}

/** What of stretches (start, end) is in view, as bars of this height. */
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

/** Go to the next error that can be heard, and behind the last to the first, let it be heard, and say what it is. */
function nextError() {
  if (!stops.length) return say(comparison ? "Nothing is wrong." : "This page was made without a reference.");
  const stayed = error && error.span[0] - MARGIN <= sound.cursor && sound.cursor <= error.span[1] + MARGIN + SLACK;
  error = (stayed ? stops[stops.indexOf(error) + 1] : stops.find(({ span }) => span[0] >= sound.cursor)) ?? stops[0];
  const [start, end] = error.span;
  hear(Math.max(0, start - MARGIN), Math.min(limit, end + MARGIN));
  keepInView(start);
  if (toX(end) - toX(start) < SEEN) look((start + end - AROUND) / 2, AROUND);
  redraw();
  say(`${clock(start)} to ${clock(end)}: ${error.text}`);
}

/** Beside lanes and rows, what they are. */
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

/** Begin with what was scored; of a part of a recording, that may be little of it. */
function lookAtScored() {
  const [first, last] = [comparison?.scored.at(0)?.[0] ?? 0, comparison?.scored.at(-1)?.[1] ?? limit];
  if (last > first) look(first, last - first);
}

/** A reference says when its last turn ends, and no more: the recording may be longer, as it turns out. */
function learnLength(ms) {
  if (!comparison || !Number.isFinite(ms) || ms <= limit) return;
  result.duration = ms / 1000;
  limit = limitOf(result);
}
