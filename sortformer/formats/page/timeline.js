// The timeline, a canvas: a ruler, the waveform, one row per speaker. Nothing outside the view is drawn.

const RULER = 22;
const WAVE = 52;
const ROW = 32; // must match .names in style.css
const SHORTEST_VIEW = 500;
const NARROW = 3; // pixels: narrower bars are nothing but edges
const TICKS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400]; // seconds

const view = { start: 0, span: Math.max(limit, 1) };
let grip = null; // what the pointer drags: {x, turn, border, from, moved, held}

const canvas = () => $("timeline");
const toX = (ms) => ((ms - view.start) / view.span) * canvas().clientWidth;
const toMs = (x) => view.start + (x / canvas().clientWidth) * view.span;
const topOfRows = () => RULER + heightOfLanes + (sound.peaks ? WAVE : 0);

/** Move the view to another part of the recording. */
function look(start, span = view.span) {
  view.span = Math.max(1, Math.min(Math.max(span, SHORTEST_VIEW), limit));
  view.start = Math.max(0, Math.min(start, limit - view.span));
  redraw();
}

/** Zoom so that the time at x (by default the cursor's, if in view) stays where it is. */
function zoom(factor, x = toX(sound.cursor)) {
  const width = canvas().clientWidth;
  const at = 0 <= x && x <= width ? x : width / 2;
  const span = Math.max(SHORTEST_VIEW, Math.min(view.span * factor, limit));
  look(toMs(at) - (at / width) * span, span);
}

function keepInView(ms) {
  if (ms < view.start || ms > view.start + 0.95 * view.span) look(ms - 0.05 * view.span);
}

/** Scroll to the row of a turn's speaker, below the ruler. */
function revealRow(turn) {
  const row = steps.state.speakers.findIndex((speaker) => speaker.name === turn.speaker);
  bringIntoSight($("tracks"), topOfRows() + ROW * row - RULER, RULER + ROW);
}

function drawTimeline() {
  const bottom = topOfRows() + ROW * Math.max(1, steps.state.speakers.length);
  const height = bottom + heightOfReference();
  canvas().style.height = `${height}px`; // before its width is read: scrollbars come and go with the height
  const width = canvas().clientWidth;
  const pen = clearedPen(width, height);
  const css = getComputedStyle(document.documentElement);
  const colours = Object.fromEntries(
    ["panel", "ink", "quiet", "line", "edge", "veil", "faint", "cursor"].map((name) => [name, css.getPropertyValue(`--${name}`).trim()]),
  );
  drawGrid(pen, width, height, colours);
  if (sound.peaks) drawWave(pen, width, colours.faint);
  drawLanes(pen, width, colours);
  drawRows(pen, width, colours);
  drawReference(pen, width, bottom, colours);
  drawRuler(pen, width, colours);
  pen.fillStyle = colours.cursor;
  pen.fillRect(toX(sound.cursor) - 1, 0, 2, height);
}

/** The context of the cleared canvas of this size, in CSS pixels, whatever the resolution of the screen. */
function clearedPen(width, height) {
  const scale = window.devicePixelRatio || 1;
  const [wide, high] = [Math.round(width * scale), Math.round(height * scale)];
  if (canvas().width !== wide || canvas().height !== high) Object.assign(canvas(), { width: wide, height: high });
  const pen = canvas().getContext("2d");
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = "12px system-ui, sans-serif";
  return pen;
}

/** The positions (x) of the grid lines, and their labels on the ruler. */
function ticks(width) {
  const tick = 1000 * (TICKS.find((each) => 1000 * each * width >= 90 * view.span) ?? TICKS.at(-1));
  const found = [];
  for (let at = Math.ceil(view.start / tick) * tick; at <= view.start + view.span; at += tick) {
    found.push([toX(at), tick < 1000 ? clock(at) : clock(at).slice(0, -4)]);
  }
  return found;
}

function drawGrid(pen, width, height, colours) {
  pen.fillStyle = colours.line;
  for (const [x] of ticks(width)) pen.fillRect(x, 0, 1, height);
}

/** The ruler stays at the top while the rows scroll. */
function drawRuler(pen, width, colours) {
  const top = $("tracks").scrollTop;
  pen.fillStyle = colours.panel;
  pen.fillRect(0, top, width, RULER);
  for (const [x, text] of ticks(width)) {
    pen.fillStyle = colours.line;
    pen.fillRect(x, top, 1, RULER);
    pen.fillStyle = colours.quiet;
    pen.fillText(text, x + 4, top + 15);
  }
}

function drawWave(pen, width, colour) {
  pen.fillStyle = colour;
  for (let x = 0; x < width; x += 1) {
    const [first, last] = [Math.floor(toMs(x) / PEAK_MS), Math.ceil(toMs(x + 1) / PEAK_MS)];
    let peak = 0;
    for (let at = first; at < last && at < sound.peaks.length; at += 1) peak = Math.max(peak, sound.peaks[at]);
    pen.fillRect(x, RULER + heightOfLanes + (WAVE / 2) * (1 - peak), 1, Math.max(1, peak * WAVE));
  }
}

/** The bars of a row are drawn in two batches, sure and unsure: thousands one by one would be slow. */
function drawRows(pen, width, colours) {
  const rows = new Map(steps.state.speakers.map((speaker, row) => [speaker.name, { row, sure: [], unsure: [] }]));
  const scale = width / view.span;
  for (const turn of steps.state.turns) {
    const { start, end } = (turn === grip?.turn && grip.held) || turn;
    if (end < view.start || start > view.start + view.span) continue;
    const { row, sure, unsure } = rows.get(turn.speaker);
    const bar = [(start - view.start) * scale, topOfRows() + ROW * row + 5, Math.max(1, (end - start) * scale), ROW - 9];
    (isUnsure(turn) ? unsure : sure).push(bar);
    if (turn === selected) drawHandles(pen, bar, colours.ink);
  }
  for (const speaker of steps.state.speakers) {
    const { row, sure, unsure } = rows.get(speaker.name);
    pen.fillStyle = colours.line;
    pen.fillRect(0, topOfRows() + ROW * row, width, 1);
    drawBars(pen, sure, colourOf(speaker), colours.veil, 1, colours.edge, []);
    drawBars(pen, unsure, colourOf(speaker), colours.veil, 0.35, colours.ink, [3, 3]);
  }
}

/** The veil lightens the colours on a dark page; the edge gives contrast, even to bars that are nothing else. */
function drawBars(pen, bars, colour, veil, opacity, edge, dashes) {
  const [inside, around] = [new Path2D(), new Path2D()];
  for (const [x, y, width, height] of withoutNarrow(bars)) {
    inside.rect(x, y, width, height);
    around.rect(x + 0.75, y + 0.75, Math.max(0, width - 1.5), height - 1.5);
  }
  Object.assign(pen, { fillStyle: colour, strokeStyle: edge, globalAlpha: opacity, lineWidth: 1.5 });
  pen.fill(inside);
  pen.fillStyle = veil;
  pen.fill(inside);
  pen.globalAlpha = 1;
  pen.setLineDash(dashes);
  pen.stroke(around);
  pen.setLineDash([]);
}

/** The bars of a row, sorted, but narrow ones joined to the one before if it is near: thousands would be slow. */
function withoutNarrow(bars) {
  const found = [];
  for (const [x, y, width, height] of bars) {
    const last = found.at(-1);
    if (last && width < NARROW && x < last[0] + last[2] + 1) last[2] = Math.max(last[2], x + width - last[0]);
    else found.push([x, y, width, height]);
  }
  return found;
}

function drawHandles(pen, [x, y, width, height], colour) {
  Object.assign(pen, { fillStyle: colour, strokeStyle: colour, lineWidth: 2 });
  pen.strokeRect(x - 1, y - 2, width + 2, height + 4);
  pen.fillRect(x - 4, y + 4, 4, height - 8);
  pen.fillRect(x + width, y + 4, 4, height - 8);
}

/** What is under the pointer: a turn, and its border if it is the selected one, which has handles. */
function under({ offsetX, offsetY, pointerType }) {
  const onRuler = offsetY < $("tracks").scrollTop + RULER;
  const speaker = onRuler ? undefined : steps.state.speakers[Math.floor((offsetY - topOfRows()) / ROW)];
  const ofRow = steps.state.turns.filter((turn) => turn.speaker === speaker?.name);
  if (ofRow.includes(selected)) {
    const away = (border) => Math.abs(toX(selected[border]) - offsetX);
    const border = away("start") < away("end") ? "start" : "end";
    if (away(border) <= (pointerType === "touch" ? 16 : 7)) return { turn: selected, border };
  }
  const ms = toMs(offsetX);
  return { turn: ofRow.findLast((turn) => turn.start <= ms && ms < turn.end) ?? null, border: null };
}

function onPointerDown(event) {
  if (event.button !== 0) return;
  document.activeElement.blur(); // what was typed takes effect first: it may replace the turn under the pointer
  canvas().setPointerCapture(event.pointerId);
  grip = { x: event.offsetX, from: view.start, moved: false, held: null, ...under(event) };
}

/** Drag the border of a turn, or else the view. */
function onPointerMove(event) {
  if (!grip) {
    canvas().style.cursor = under(event).border ? "ew-resize" : "default";
    return;
  }
  grip.moved ||= Math.abs(event.offsetX - grip.x) > 3;
  if (!grip.moved) return;
  if (grip.border) grip.held = withBorder(grip.turn, grip.border, Math.round(toMs(event.offsetX)));
  else look(grip.from - ((event.offsetX - grip.x) / canvas().clientWidth) * view.span);
  redraw();
}

function withBorder(turn, border, ms) {
  const shortest = Math.min(10, turn.end - turn.start);
  if (border === "start") return { ...turn, start: Math.max(0, Math.min(ms, turn.end - shortest)) };
  return { ...turn, end: Math.min(limit, Math.max(ms, turn.start + shortest)) };
}

function onPointerUp() {
  const { turn, held, moved, x } = grip ?? { moved: true };
  grip = null;
  if (held) changeSelected({ start: held.start, end: held.end });
  else if (!moved && turn) choose(turn);
  else if (!moved) hear(toMs(x));
}

function onWheel(event) {
  event.preventDefault();
  const sideways = event.shiftKey ? event.deltaX || event.deltaY : event.deltaX;
  if (Math.abs(sideways) > Math.abs(event.deltaY) || event.shiftKey) look(view.start + (sideways / 1000) * view.span);
  else zoom(1.002 ** event.deltaY, event.offsetX);
}
