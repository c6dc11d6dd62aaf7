// The list of turns; only the visible lines are in the page, so that thousands cost nothing.

const LINE = 28; // must match .line in style.css

let drawn = []; // the values that the lines in the page were made from
let printing = false; // then all lines are in the page

function drawList() {
  const { turns } = steps.state;
  const box = $("list");
  const first = printing ? 0 : Math.max(0, Math.floor(box.scrollTop / LINE) - 5);
  const shown = printing ? turns : turns.slice(first, first + Math.ceil(box.clientHeight / LINE) + 10);
  const heard = shown.filter((turn) => turn.start <= sound.cursor && sound.cursor < turn.end);
  const basis = [steps.state, selected, first, shown.length, $("threshold").value, ...heard];
  if (basis.length === drawn.length && basis.every((each, index) => each === drawn[index])) return;
  drawn = basis;
  const colours = new Map(steps.state.speakers.map((row) => [row.name, colourOf(row)]));
  $("lines").style.height = `${turns.length * LINE}px`;
  $("lines").replaceChildren(
    ...shown.map((turn, index) => lineOf(turn, first + index, colours.get(turn.speaker), heard.includes(turn))),
  );
  const at = turns.indexOf(selected);
  if (at < 0) box.removeAttribute("aria-activedescendant");
  else box.setAttribute("aria-activedescendant", `turn-${at}`);
}

function onPrint(now) {
  printing = now;
  drawList();
}

function lineOf(turn, index, colour, heard) {
  const line = document.createElement("div");
  line.id = `turn-${index}`;
  line.className = heard ? "line heard" : "line";
  line.style.top = `${index * LINE}px`;
  line.setAttribute("role", "option");
  line.setAttribute("aria-selected", String(turn === selected));
  line.setAttribute("aria-posinset", String(index + 1));
  line.setAttribute("aria-setsize", String(steps.state.turns.length));
  line.append(swatch(colour), cell("time", clock(turn.start)), cell("time", `${seconds(turn.end - turn.start)} s`));
  line.append(cell("who", turn.speaker), cell("sure", sureness(turn)));
  return line;
}

/** A click on a line, by its position: during playback, lines are replaced between press and release. */
function onLine(event) {
  const turn = steps.state.turns[Math.floor((event.clientY - $("lines").getBoundingClientRect().top) / LINE)];
  if (turn) choose(turn);
}

/** The confidence in per cent; below the threshold it is rounded down, so as not to be shown as equal to it. */
function sureness(turn) {
  if (turn.confidence === null) return "";
  if (!isUnsure(turn)) return `${Math.round(100 * turn.confidence)} %`;
  return `unsure ${Math.floor(100 * turn.confidence + 1e-9)} %`; // 0.57 is not quite 57 hundredths
}

function cell(name, text) {
  const span = document.createElement("span");
  span.className = name;
  span.textContent = text;
  return span;
}

function swatch(colour) {
  const span = cell("swatch", "");
  span.style.backgroundColor = colour;
  return span;
}

/** Scroll to the line of a turn. */
function revealLine(turn) {
  const index = steps.state.turns.indexOf(turn);
  if (index >= 0) bringIntoSight($("list"), LINE * index, LINE);
}

/** Scroll a box until its content from top to top + height is visible. */
function bringIntoSight(box, top, height) {
  if (top < box.scrollTop) box.scrollTop = top;
  if (top + height > box.scrollTop + box.clientHeight) box.scrollTop = top + height - box.clientHeight;
}
