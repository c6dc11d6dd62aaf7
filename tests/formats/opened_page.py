"""Open a page in a browser, to test its behaviour."""

import json as standard
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path

from sortformer.annotation import Diarization, Origin, TimeAxis, Turn
from sortformer.formats import html

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

OFFLINE = "disable-gpu disable-quic no-first-run disable-background-networking disable-component-update disable-sync"


def outcome(folder: Path, recording: Diarization, script: str, comparison: dict | None = None, *flags: str):
    """Open the page of a recording, run a script in it, and return what its function ``test`` returns or promises."""
    appended = f"""
<pre id="outcome"></pre>
<script>
{script}
addEventListener("error", (event) => ($("outcome").textContent = JSON.stringify(String(event.message))));
(async () => test())().catch(String).then((seen) => ($("outcome").textContent = JSON.stringify(seen)));
</script>
"""
    page = folder / "page.html"
    page.write_text(html.format(recording, comparison) + appended, encoding="utf-8")
    options = [f"--{option}" for option in (*OFFLINE.split(), *flags)]
    command = [BROWSER, "--headless", "--no-sandbox", *options, f"--user-data-dir={folder / 'user'}", "--dump-dom"]
    done = subprocess.run([*command, page.as_uri()], capture_output=True, text=True, timeout=120, check=True)
    found = re.search(r'<pre id="outcome">(.+?)</pre>', done.stdout, re.DOTALL)
    assert found, done.stdout[-2000:]
    return standard.loads(unescape(found[1]))


ORIGIN = Origin("embedded", "0.1.0", {"onset": 0.5}, TimeAxis(0.0, 0.08, 125))
ONE, TWO = Turn(0.5, 2.0, "speaker_0", 0.9876), Turn(1.5, 3.0, "speaker_1", 0.61)
THREE, FOUR = Turn(4.0, 6.0, "speaker_2", 0.8), Turn(6.5, 8.0, "speaker_1", 0.9)
MEETING = Diarization((ONE, TWO, THREE, FOUR), 10.0, "meeting", ORIGIN)

HANDS = """
const select = (at) => choose(steps.state.turns[at]);
const put = (field, value) => { field.value = value; field.dispatchEvent(new Event("change", { bubbles: true })); };
const give = (at) => { $("speaker").selectedIndex = at; put($("speaker"), $("speaker").value); };
const press = (key, held, target = document.body) =>
  target.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, ...held }));
const pressThere = (key, held) => press(key, held, document.activeElement);
const touch = (field) => field.dispatchEvent(new Event("pointerdown", { bubbles: true }));
const at = (row, ms) => ({ button: 0, offsetX: toX(ms), offsetY: topOfRows() + ROW * (row + 0.5) });
const type = (field, text) => { field.select(); document.execCommand("insertText", false, text); }; // and not leave it
canvas().setPointerCapture = () => {}; // there is no real pointer
const pressAt = (row, ms) => { onPointerMove(at(row, ms)); onPointerDown(at(row, ms)); };
const click = (row, ms) => { pressAt(row, ms); onPointerUp(); };
const drag = (row, from, to) => { pressAt(row, from); onPointerMove(at(row, to)); onPointerUp(); };
const leaving = () => !dispatchEvent(new Event("beforeunload", { cancelable: true }));
const again = () => { become(opened(result)); look(0, limit); seek(0); say(""); };
"""
