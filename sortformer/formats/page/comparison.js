// What a result was compared with, where it was: rows of who speaks by the reference, and a lane for each kind of error.
// The errors are those of the result that the page was made of, whatever is corrected.

const LANE = 16; // as .lane in style.css has it
const KINDS = ["miss", "false alarm", "confusion"];

const comparison = JSON.parse($("comparison").textContent); // null where there is none
const referees = comparison?.reference.map((each) => each.speaker) ?? [];

const heightOfComparison = () => (comparison ? ROW * referees.length + LANE * KINDS.length : 0);

/** The colour of the speaker of the result with whom somebody of the reference is paired. */
function colourOfReferee({ pair }, faint) {
  const colour = result.speakers.indexOf(pair);
  return colour < 0 ? faint : COLOURS[colour % COLOURS.length];
}

function drawComparison(pen, width, top, colours) {
  if (!comparison) return;
  const boxes = (stretches, y, height) => stretches
    .filter(([start, end]) => end >= view.start && start <= view.start + view.span)
    .map(([start, end]) => [toX(start), y, Math.max(1, toX(end) - toX(start)), height]);
  for (const [row, each] of comparison.reference.entries()) {
    const y = top + ROW * row;
    pen.fillStyle = colours.line;
    pen.fillRect(0, y, width, 1);
    drawBars(pen, boxes(each.turns, y + 9, ROW - 17), colourOfReferee(each, colours.faint), colours.veil, 1, colours.edge, []);
  }
  for (const [lane, kind] of KINDS.entries()) {
    const y = top + ROW * referees.length + LANE * lane;
    pen.fillStyle = colours.line;
    pen.fillRect(0, y, width, 1);
    pen.fillStyle = colours.ink;
    const wrong = comparison.errors.filter((each) => each.kinds.includes(kind)).map(({ start, end }) => [start, end]);
    for (const box of boxes(wrong, y + 4, LANE - 7)) pen.fillRect(...box);
  }
}

/** Go to the next error, or from the last to the first, let it be heard, and say what it is. */
function nextError() {
  const found = comparison?.errors ?? [];
  if (!found.length) return say(comparison ? "Nothing is wrong." : "This page was made without a reference.");
  const next = found.find((each) => each.start > sound.cursor) ?? found[0];
  hear(next.start, next.end);
  keepInView(next.start);
  redraw();
  say(`${clock(next.start)} to ${clock(next.end)}: ${next.text}`);
}

/** Beside the rows and lanes, whose they are. */
function nameComparison() {
  $("errors").hidden = !comparison;
  if (!comparison) return;
  $("score").textContent = comparison.score;
  for (const each of comparison.reference) {
    const row = cell("truth", "");
    row.append(swatch(colourOfReferee(each, "")), cell("who", `truth: ${each.speaker}`));
    row.title = each.speaker;
    $("truths").append(row);
  }
  for (const kind of KINDS) $("truths").append(cell("lane", kind));
}
