// The state of the page: the original result, the corrections so far, the selected turn.

const $ = (id) => document.getElementById(id);
const result = JSON.parse($("result").textContent);
const COLOURS = JSON.parse($("colours").textContent);
let limit = limitOf(result);

const steps = { state: opened(result), past: [], future: [], saved: null };
steps.saved = steps.state;
let selected = null;

const colourOf = (row) => COLOURS[row.colour % COLOURS.length];
const isUnsure = (turn) => turn.confidence !== null && turn.confidence < Number($("threshold").value);

/** Make a state the current one, and select a turn of it. */
function become(state, turn = null) {
  steps.past.push(steps.state);
  steps.future = [];
  steps.state = state;
  selected = turn;
  refresh();
}

function undo() {
  stepTo(steps.past, steps.future, "Undone.");
}

function redo() {
  stepTo(steps.future, steps.past, "Redone.");
}

function stepTo(from, to, sentence) {
  if (!from.length) return;
  to.push(steps.state);
  steps.state = from.pop();
  if (!steps.state.turns.includes(selected)) selected = null;
  say(sentence);
  refresh();
}

/** Run an action, and show the message if it is refused. */
function attempt(action) {
  try {
    say("");
    action();
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    say(error.message);
    refresh();
  }
}

function say(sentence) {
  $("said").textContent = sentence;
}
