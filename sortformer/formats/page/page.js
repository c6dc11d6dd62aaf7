// The display of the state: refresh() after a change, redraw() if only the cursor or the view moved.

let asked = false;
let followed = { turn: null }; // by the list: a turn, and where its row of text with the cursor begins (px)

/** Draw the timeline and the list in the next frame, once. */
function redraw() {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => {
    asked = false;
    $("position").max = Math.max(0, limit - view.span);
    $("position").value = view.start;
    $("position").ariaValueText = clock(view.start);
    $("now").textContent = clock(sound.cursor);
    drawTimeline();
    drawList();
    revealHeard();
  });
}

/**
 * Scroll the list to the turn that the cursor enters, and through a long one with the words, until the user scrolls
 * away. A turn is followed to its end, whoever says a "yes" meanwhile.
 */
function revealHeard() {
  const { turns } = steps.state;
  const isStill = (turn) => turns.includes(turn) && isHeard(turn);
  const turn = [selected, followed.turn].find(isStill) ?? turns.findLast(isHeard) ?? null;
  const box = $("list");
  const isInSight = (row) => box.scrollTop <= row && row + LINE <= box.scrollTop + box.clientHeight;
  if (turn?.start !== followed.turn?.start) {
    followed = { turn };
    if (!isInSight(topOfHeard(turn))) revealLine(turn);
    drawList();
  }
  followed.turn = turn; // another object, if it was corrected
  const top = topOfHeard(turn);
  if (top === undefined || top === followed.top) return;
  if (isInSight(followed.top ?? box.scrollTop) && !isInSight(top)) box.scrollTop = top - box.clientHeight / 4;
  followed.top = top;
}

function refreshPlaying() {
  $("play").textContent = sound.player.paused ? "Play" : "Pause";
}

function refresh() {
  const { turns, speakers } = steps.state;
  $("about").textContent = `${clock(limit).slice(0, -4)}, ${speakers.length} speaker${speakers.length === 1 ? "" : "s"}, ` +
    `${turns.length} turn${turns.length === 1 ? "" : "s"}`;
  $("nobody").hidden = turns.length > 0 || comparison !== null;
  $("unassigned").replaceChildren(...(turns.length ? [] : words.map(unassignedWord)));
  $("unsaved").hidden = steps.state === steps.saved;
  $("undo").disabled = !steps.past.length;
  $("redo").disabled = !steps.future.length;
  refreshPlaying();
  refreshNames(speakers);
  refreshSelected(speakers);
  const names = speakers.map((row) => row.name);
  for (const select of [$("merged"), $("into")]) offer(select, names, names.indexOf(select.value));
  redraw();
}

/** The name fields beside the rows; the elements are reused, so that the focus is kept. */
function refreshNames(speakers) {
  const box = $("names");
  box.style.paddingTop = `${topOfRows() - RULER - heightOfLanes}px`;
  box.style.minHeight = `${topOfRows() - RULER - heightOfLanes + ROW}px`;
  while (box.children.length > speakers.length) box.lastElementChild.remove();
  while (box.children.length < speakers.length) box.append(nameField());
  for (const [index, label] of [...box.children].entries()) {
    const [mark, field] = label.children;
    mark.style.backgroundColor = colourOf(speakers[index]);
    field.value = field.defaultValue = field.title = field.dataset.name = speakers[index].name;
    field.setAttribute("aria-label", `name of ${speakers[index].name}`);
  }
}

function warningLine(sentence) {
  const line = document.createElement("p");
  line.textContent = `Warning: ${sentence}`;
  return line;
}

/** A word of a transcript without turns: a click on it plays it, and a turn can be added there. */
function unassignedWord(word) {
  const span = cell("word", word.text);
  span.onclick = () => hear(word.start, word.end);
  return span;
}

function nameField() {
  const [label, field] = [document.createElement("label"), document.createElement("input")];
  field.onchange = () => rename(field.dataset.name, field.value.trim());
  label.append(swatch(""), field);
  return label;
}

function refreshSelected(speakers) {
  if (!selected && $("selected").contains(document.activeElement)) $("list").focus(); // what is disabled would lose it
  $("selected").disabled = !selected;
  const names = speakers.map((row) => row.name);
  offer($("speaker"), [...names, "(new speaker)"], selected ? names.indexOf(selected.speaker) : -1);
  for (const border of ["start", "end"]) {
    $(border).value = $(border).defaultValue = selected ? clock(selected[border]) : "";
  }
}

function offer(select, names, index) {
  select.replaceChildren(...names.map((name) => new Option(name, name)));
  select.selectedIndex = index;
}

function onSpeaker({ target }) {
  const row = steps.state.speakers[target.selectedIndex];
  changeSelected({ speaker: row ? row.name : freeName(steps.state, result.speakers) });
}

function takeFile(files) {
  if (files.length) listen(files[0]);
}

function wire() {
  document.title = $("uri").textContent = result.uri;
  $("warnings").append(...(result.warnings ?? []).map(warningLine));
  nameComparison();
  for (const [id, action] of Object.entries(CLICKS)) $(id).onclick = action;
  document.addEventListener("click", (event) => event.detail && event.target.closest("button")?.blur()); // space plays
  document.addEventListener("pointerdown", ({ target }) => (pointed = target));
  document.addEventListener("change", onChange);
  document.addEventListener("keydown", onKey);
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", (event) => (event.preventDefault(), takeFile(event.dataTransfer.files)));
  $("file").onchange = ({ target }) => takeFile(target.files);
  takeFile($("file").files); // Firefox keeps the recording when the page is reloaded
  $("speaker").onchange = onSpeaker;
  $("start").onchange = ({ target }) => changeSelected({ start: parsedClock(target.value) });
  $("end").onchange = ({ target }) => changeSelected({ end: parsedClock(target.value) });
  for (const part of document.querySelectorAll(".with-words")) part.hidden = !words.length;
  $("speed").onchange = takeSpeed;
  $("threshold").oninput = redraw;
  $("position").oninput = ({ target }) => look(Number(target.value));
  $("tracks").onscroll = redraw;
  Object.assign($("list"), { onscroll: redraw, onclick: onLine, ondblclick: onLine });
  Object.assign(canvas(), { onpointerdown: onPointerDown, onpointermove: onPointerMove, onpointerup: onPointerUp });
  canvas().onpointercancel = () => (grip = null);
  canvas().addEventListener("wheel", onWheel, { passive: false });
  addEventListener("resize", redraw);
  new ResizeObserver(redraw).observe(canvas()); // also when a scrollbar comes or goes
  addEventListener("beforeprint", () => onPrint(true));
  addEventListener("afterprint", () => onPrint(false));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  addEventListener("beforeunload", (event) => steps.state !== steps.saved && event.preventDefault());
}

wire();
refresh();
lookAtPart();
