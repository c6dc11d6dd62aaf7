// Export: RTTM, byte for byte as formats/rttm.py writes it, and JSON with the schema of formats/json.py.

// Python's white space, which differs from JavaScript's \s, and control characters.
const WHITE_SPACE = /[\0-\x20\x7f-\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/;

/** RTTM of a state: sorted, white space in names as _, touching turns of a speaker joined. */
function asRttm(result, state) {
  const names = new Map(state.speakers.map((row) => [row.name, withoutWhiteSpace(row.name)]));
  if (new Set(names.values()).size < names.size) {
    throw new Refusal("Two speakers have the same name except for white space, which RTTM cannot express: rename one.");
  }
  const uri = withoutWhiteSpace(result.uri);
  const turns = state.turns.map((turn) => ({ ...turn, speaker: names.get(turn.speaker) }));
  return joined(turns).map((turn) => rttmLine(uri, turn)).join("");
}

function rttmLine(uri, { start, end, speaker, confidence }) {
  const sure = confidence === null ? "<NA>" : fixed(confidence, 3);
  return `SPEAKER ${uri} 1 ${seconds(start)} ${seconds(end - start)} <NA> <NA> ${speaker} ${sure} <NA>\n`;
}

function seconds(ms) {
  return `${Math.floor(ms / 1000)}.${String(ms % 1000).padStart(3, "0")}`;
}

function withoutWhiteSpace(name) {
  return name.normalize("NFC").split(WHITE_SPACE).filter(Boolean).join("_") || "_";
}

/** Join the turns of each speaker that overlap or touch; the confidence is their mean, weighted by duration. */
function joined(turns) {
  const groups = [];
  const last = new Map();
  for (const turn of [...turns].sort(byTime)) {
    const group = last.get(turn.speaker);
    if (group && turn.start <= group.end) {
      group.end = Math.max(group.end, turn.end);
      group.parts.push(turn);
    } else {
      last.set(turn.speaker, { start: turn.start, end: turn.end, speaker: turn.speaker, parts: [turn] });
      groups.push(last.get(turn.speaker));
    }
  }
  return groups.map(({ parts, ...turn }) => ({ ...turn, confidence: meanConfidence(parts) })).sort(byTime);
}

function meanConfidence(turns) {
  if (turns.length === 1) return turns[0].confidence;
  if (turns.some((turn) => turn.confidence === null)) return null;
  const weighted = exactSum(turns.map((turn) => turn.confidence * (turn.end - turn.start)));
  return weighted / exactSum(turns.map((turn) => turn.end - turn.start));
}

/** A sum without intermediate rounding (Shewchuk 1997), as Python's math.fsum: the last digit may depend on it. */
function exactSum(values) {
  const partials = [];
  for (let value of values) {
    let kept = 0;
    for (let partial of partials) {
      if (Math.abs(value) < Math.abs(partial)) [value, partial] = [partial, value];
      const high = value + partial;
      const low = partial - (high - value);
      if (low) partials[kept++] = low;
      value = high;
    }
    partials.length = kept;
    partials.push(value);
  }
  return partials.reduceRight((sum, partial) => sum + partial, 0);
}

/** A number with this many decimals, rounded as in Python: ties to even, while toFixed rounds them up. */
function fixed(value, digits) {
  const text = value.toFixed(digits);
  const tie = Math.abs(value * 2 ** (digits + 1)) % 2 === 1;
  const odd = Number(text.at(-1)) % 2 === 1;
  return tie && odd ? (Number(text) - Math.sign(value) * 10 ** -digits).toFixed(digits) : text;
}

/** JSON of a state; everything but speakers, turns and words is that of the result. */
function asJson(result, state) {
  const turns = state.turns.map(({ start, end, speaker, confidence }) => ({
    start: start / 1000,
    end: end / 1000,
    speaker,
    confidence: confidence === null ? null : Number(fixed(confidence, 4)),
  }));
  return JSON.stringify({ ...result, speakers: byArrival(state.turns), turns, ...wordsAsJson(state) }, null, 1) + "\n";
}

/** The speakers in order of arrival; ties are broken by name. */
function byArrival(turns) {
  const starts = new Map();
  for (const turn of turns) if (!starts.has(turn.speaker)) starts.set(turn.speaker, turn.start);
  return [...starts.keys()].sort((a, b) => starts.get(a) - starts.get(b) || byCodePoint(a, b));
}
