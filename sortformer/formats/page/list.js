// The list of turns, with what was said in them; only visible lines are in the page, so that thousands cost nothing.

const LINE = 28; // must match .head in style.css

let drawn = []; // the values that the lines in the page were made from
let printing = false; // then all lines are in the page
let laid = { state: null, width: 0, tops: [0], heights: new Map() }; // where each line begins and, last, where they end

function drawList() {
  const { turns } = steps.state;
  const box = $("list");
  const tops = topsOfLines();
  const [above, below] = [box.scrollTop - 5 * LINE, box.scrollTop + box.clientHeight + 5 * LINE];
  const first = printing ? 0 : firstFrom(turns.length, (at) => tops[at + 1] > above);
  const shown = printing ? turns : turns.slice(first, firstFrom(turns.length, (at) => tops[at] > below));
  const basis = [laid, selected, first, shown.length, $("threshold").value];
  if (basis.some((each, index) => each !== drawn[index])) putLines(shown, first);
  drawn = basis;
  markHeard(shown);
}

function putLines(shown, first) {
  const { turns } = steps.state;
  const colours = new Map(steps.state.speakers.map((row) => [row.name, colourOf(row)]));
  $("lines").replaceChildren(...shown.map((turn, index) => lineOf(turn, first + index, colours.get(turn.speaker))));
  const at = turns.indexOf(selected);
  if (at < 0) $("list").removeAttribute("aria-activedescendant");
  else $("list").setAttribute("aria-activedescendant", `turn-${at}`);
}

/** Mark turns and words at the cursor, in lines that stay: to draw an hour of words for each of them would be slow. */
function markHeard(shown) {
  for (const [index, turn] of shown.entries()) {
    const line = $("lines").children[index];
    line.classList.toggle("heard", isHeard(turn));
    const spans = line.querySelectorAll(".word");
    for (const [at, word] of wordsOf(turn).entries()) spans[at].classList.toggle("heard", isHeard(word));
  }
}

/** Whether the cursor is in a turn or word; words without duration, which recognisers return, last a millisecond. */
function isHeard({ start, end }) {
  return start <= sound.cursor && sound.cursor < Math.max(end, start + 1);
}

/** Where the lines of the state begin (px); the heights of their texts are measured once for each width. */
function topsOfLines() {
  const width = $("lines").clientWidth;
  if (laid.state === steps.state && laid.width === width) return laid.tops;
  const heights = laid.width === width ? laid.heights : new Map([["", 0]]);
  const texts = steps.state.turns.map(textOf);
  measure(new Set(texts.filter((text) => !heights.has(text))), heights);
  const tops = [0];
  for (const text of texts) tops.push(tops.at(-1) + LINE + heights.get(text));
  laid = { state: steps.state, width, tops, heights };
  $("lines").style.height = `${tops.at(-1)}px`;
  return topsOfLines(); // the scrollbar may have come or gone, and changed the width
}

/** Add the heights of texts as wrapped in the list, in one layout. */
function measure(texts, heights) {
  if (!texts.size) return;
  const cells = [...texts].map((text) => paragraph(text));
  const line = document.createElement("div");
  line.className = "line";
  line.append(...cells);
  $("lines").append(line);
  for (const each of cells) heights.set(each.textContent, each.getBoundingClientRect().height);
  line.remove();
}

function paragraph(...parts) {
  const text = document.createElement("p");
  text.className = "text";
  text.dir = "auto";
  text.append(...parts);
  return text;
}

function onPrint(now) {
  printing = now;
  drawList();
}

function lineOf(turn, index, colour) {
  const [line, head] = [document.createElement("div"), document.createElement("div")];
  line.id = `turn-${index}`;
  line.className = "line";
  line.style.top = `${laid.tops[index]}px`;
  line.setAttribute("role", "option");
  line.setAttribute("aria-selected", String(turn === selected));
  line.setAttribute("aria-posinset", String(index + 1));
  line.setAttribute("aria-setsize", String(steps.state.turns.length));
  head.className = "head";
  head.append(swatch(colour), cell("time", clock(turn.start)), cell("time", `${seconds(turn.end - turn.start)} s`));
  head.append(cell("who", turn.speaker), cell("sure", sureness(turn)));
  line.append(head);
  const said = wordsOf(turn);
  if (said.length) line.append(paragraph(...said.map((word) => cell("word", word.text))));
  return line;
}

/** A click on a line or a word, by its position, as lines may be replaced meanwhile; a double one pauses there. */
function onLine({ type, clientX, clientY }) {
  const again = type === "dblclick";
  if (!again && !getSelection().isCollapsed) return; // text was selected to be copied
  const under = document.elementFromPoint(clientX, clientY);
  const line = under?.closest(".line");
  if (!line) return;
  const turn = steps.state.turns[Number(line.getAttribute("aria-posinset")) - 1];
  choose(turn, wordsOf(turn)[[...line.querySelectorAll(".word")].indexOf(under)]);
  if (!again) return;
  pause();
  getSelection().empty();
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
  const tops = topsOfLines();
  if (index >= 0) bringIntoSight($("list"), tops[index], tops[index + 1] - tops[index]);
}

/** Where the row of text with the cursor begins in the list (px), if a word of this turn is there. */
function topOfHeard(turn) {
  const line = $(`turn-${steps.state.turns.indexOf(turn)}`);
  const word = line?.querySelector(".word.heard");
  return word ? line.offsetTop + word.offsetTop : undefined;
}

/** Scroll a box until its content from top to top + height is visible, or as much of its beginning as fits. */
function bringIntoSight(box, top, height) {
  if (top < box.scrollTop) box.scrollTop = top;
  if (top + height > box.scrollTop + box.clientHeight) box.scrollTop = Math.min(top, top + height - box.clientHeight);
}
