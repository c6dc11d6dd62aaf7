// The recording, which the user chooses: playback with a cursor, and its peaks as the waveform.

const PEAK_MS = 10;
const LONGEST_DECODED_MS = 75 * 60 * 1000; // decoded at once: an hour takes 0.8 GB at 16 kHz, 3 to 4 in 48 kHz stereo

const sound = { player: new Audio(), cursor: 0, until: null, peaks: null, loaded: false, frame: 0 };

sound.player.onpause = () => refreshPlaying();
sound.player.onplay = () => {
  refreshPlaying();
  takeSpeed(); // with another file, browsers return to 1
  cancelAnimationFrame(sound.frame);
  follow();
};

function takeSpeed() {
  sound.player.playbackRate = Number($("speed").value);
}

/** Load a file as the recording. */
function listen(file) {
  URL.revokeObjectURL(sound.player.src);
  Object.assign(sound, { peaks: null, loaded: false });
  sound.player.src = URL.createObjectURL(file);
  sound.player.onerror = () => {
    // Firefox fails so on a machine without a sound device, too.
    say(`This browser cannot play ${file.name}: if it plays other sounds, convert this one to WAV or MP3.`);
    refresh();
  };
  sound.player.onloadedmetadata = () => {
    sound.loaded = true;
    learnLength(lengthOfFile());
    sound.player.currentTime = sound.cursor / 1000;
    const short = Math.max(limit, lengthOfFile()) <= LONGEST_DECODED_MS;
    say(mismatch(file) || `Click a turn or the timeline to play it${short ? "" : " (waveforms are limited to 75 minutes)"}.`);
    refresh();
    if (short) drawWaveformOf(file);
  };
}

/** Its duration in ms; 0 if the file does not tell. */
function lengthOfFile() {
  return Number.isFinite(sound.player.duration) ? 1000 * sound.player.duration : 0;
}

/** A warning if the duration of a file shows that it may be another recording than that of the result. */
function mismatch(file) {
  const length = lengthOfFile();
  if (!length || Math.abs(length - limit) < 1000) return "";
  const lengths = `${file.name} lasts ${clock(length)}, but this result ends at ${clock(limit)}`;
  return `${lengths}: ${length > limit ? "if this is not the result of an excerpt, " : ""}choose the right recording.`;
}

async function drawWaveformOf(file) {
  const { src } = sound.player; // another one by the end, if another file was chosen meanwhile
  try {
    const context = new OfflineAudioContext(1, 1, 8000); // resampled: a sixth of the memory, and enough for display
    const peaks = peaksOf(await context.decodeAudioData(await file.arrayBuffer()));
    if (sound.player.src !== src) return;
    sound.peaks = peaks;
    refresh();
  } catch {
    if (sound.player.src === src) say(`${file.name} plays, but this browser cannot decode it for a waveform.`);
  }
}

/** The peak over all channels in each PEAK_MS, scaled so that the highest is 1. */
function peaksOf(decoded) {
  const step = (decoded.sampleRate * PEAK_MS) / 1000;
  const peaks = new Float32Array(Math.ceil(decoded.length / step));
  for (let channel = 0; channel < decoded.numberOfChannels; channel += 1) {
    const samples = decoded.getChannelData(channel);
    for (let index = 0; index < samples.length; index += 1) {
      const at = Math.floor(index / step);
      peaks[at] = Math.max(peaks[at], Math.abs(samples[index]));
    }
  }
  const loudest = peaks.reduce((most, peak) => Math.max(most, peak), 1e-9);
  return peaks.map((peak) => peak / loudest);
}

/** Move the cursor (ms), and playback with it. */
function seek(ms) {
  sound.cursor = Math.max(0, Math.min(Math.round(ms), limit));
  sound.until = null;
  followed = { turn: null }; // the list goes there, wherever the user has scrolled it
  if (sound.loaded) sound.player.currentTime = sound.cursor / 1000;
  redraw();
}

/** Play from a time (ms) up to another one or the end of the result; without a recording, only move the cursor. */
function hear(from, until = null) {
  seek(from);
  sound.until = until;
  if (sound.loaded) sound.player.play().catch(() => {}); // rejected if it is paused at once
}

function pause() {
  sound.player.pause();
  sound.until = null;
}

function toggle() {
  if (!sound.loaded) say("Choose the recording first, to play it.");
  else if (sound.player.paused) hear(sound.cursor < limit ? sound.cursor : part()[0]);
  else pause();
}

/** Move the cursor, the view and the list with the playback. */
function follow() {
  if (sound.player.paused) return;
  const [now, end] = [Math.round(1000 * sound.player.currentTime), sound.until ?? limit];
  sound.cursor = Math.min(now, end);
  keepInView(sound.cursor);
  redraw();
  if (now >= end) pause();
  else sound.frame = requestAnimationFrame(follow);
}
