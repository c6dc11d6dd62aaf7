"""Open a page in browsers, to test its behaviour in each that is installed."""

import json as standard
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import connect

from sortformer.annotation import Diarization, Origin, TimeAxis, Turn
from sortformer.formats import html
from sortformer.words import Word
from tests.processes import eventually

PROGRAMS = {
    "chromium": next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None),
    "firefox": next(filter(None, map(shutil.which, ("firefox", "firefox-esr"))), None),
}
BROWSERS = [
    pytest.param(name, marks=pytest.mark.skipif(program is None, reason=f"needs {name}"))
    for name, program in PROGRAMS.items()
]

OFFLINE = "disable-gpu disable-quic no-first-run disable-background-networking disable-component-update disable-sync"


@contextmanager
def opened_in(browser: str, folder: Path, width: int = 1280, high_contrast: bool = False) -> Iterator[Callable]:
    """Return a function that opens the page of a recording and runs a script in it.

    It returns what the script's function ``test`` returns or promises. The view is ``width`` pixels wide, with its
    scrollbar. The browser is started once, because that takes seconds.
    """
    page = folder / "page.html"
    with driven(browser, folder, width, high_contrast) as run:

        def outcome(recording: Diarization, script: str, comparison: dict | None = None, words: Any = None) -> Any:
            appended = f"""
<script>
{script}
const failed = new Promise((_, fail) => addEventListener("error", (event) => fail(Error(event.message))));
const outcome = Promise.race([failed, (async () => test())()]).then(JSON.stringify);
</script>
"""
            page.write_text(html.format(recording, words, comparison=comparison) + appended, encoding="utf-8")
            return standard.loads(run(page.as_uri(), "outcome")["value"])

        yield outcome


def driven(browser: str, folder: Path, width: int = 1280, high_contrast: bool = False) -> AbstractContextManager:
    """Start a browser; the context is a function that opens an address and returns what a script gives there."""
    return {"chromium": _chromium, "firefox": _firefox}[browser](folder, width, high_contrast)


@contextmanager
def _chromium(folder: Path, width: int, high_contrast: bool) -> Iterator[Callable[[str, str], dict]]:
    """Drive Chromium by its DevTools protocol (chromedevtools.github.io/devtools-protocol)."""
    flags = [*OFFLINE.split(), *["force-high-contrast"] * high_contrast]
    options = ["headless", "no-sandbox", "remote-debugging-port=0", *flags, f"user-data-dir={folder}"]
    with _driven("chromium", folder, [f"--{option}" for option in options]) as ask:
        target = ask("Target.createTarget", params={"url": "about:blank"})
        session = ask("Target.attachToTarget", params={**target, "flatten": True})["sessionId"]
        ask("Page.enable", sessionId=session)
        screen = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
        ask("Emulation.setDeviceMetricsOverride", sessionId=session, params=screen)

        def run(address: str, script: str) -> dict:
            ask("Page.navigate", "Page.loadEventFired", sessionId=session, params={"url": address})
            asked = {"expression": script, "awaitPromise": True}
            return ask("Runtime.evaluate", sessionId=session, params=asked)["result"]

        yield run


@contextmanager
def _firefox(folder: Path, width: int, high_contrast: bool) -> Iterator[Callable[[str, str], dict]]:
    """Drive Firefox by WebDriver BiDi (w3c.github.io/webdriver-bidi)."""
    if high_contrast:
        (folder / "user.js").write_text('user_pref("browser.display.document_color_use", 2);')
    options = ["--headless", "--remote-debugging-port", "0", "--profile", str(folder)]
    with _driven("firefox", folder, options, "/session") as ask:
        ask("session.new", params={"capabilities": {}})
        target = ask("browsingContext.create", params={"type": "tab"})  # it has the focus, unlike the first one
        ask("browsingContext.setViewport", params={**target, "viewport": {"width": width, "height": 800}})

        def run(address: str, script: str) -> dict:
            ask("browsingContext.navigate", params={**target, "url": address, "wait": "complete"})
            asked = {"expression": script, "awaitPromise": True, "target": target}
            return ask("script.evaluate", params=asked)["result"]

        yield run


@contextmanager
def _driven(browser: str, folder: Path, options: list[str], path: str = "") -> Iterator[Callable[..., dict]]:
    """Start a browser, and return a function that calls a method of its protocol and returns the result."""
    command, log = [PROGRAMS[browser], *options], folder / "log.txt"  # not a pipe, which would have to be read
    with log.open("wb") as said, subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said) as process:
        try:
            eventually(lambda: process.poll() is not None or _address(log))
            address = _address(log)
            assert address, f"{browser} did not start"
            with connect(address[0] + path, max_size=None) as socket:

                def ask(method: str, event: str | None = None, **message: Any) -> dict:
                    socket.send(standard.dumps({"id": 1, "method": method, **message}))
                    result = None
                    while result is None or event:  # the event that ends what was asked for
                        answer = standard.loads(socket.recv(timeout=120))
                        assert "error" not in answer, answer
                        result = answer.get("result", result)
                        assert "exceptionDetails" not in (result or ()), result  # of a script that failed
                        if result is not None and answer.get("method") == event:  # not that of the page before
                            event = None
                    return result

                yield ask
        finally:
            process.terminate()


def _address(log: Path) -> re.Match[str] | None:
    return re.search(r"ws://\S+(?=\n)", log.read_text(encoding="utf-8"))


ORIGIN = Origin("embedded", "0.1.0", {"onset": 0.5}, TimeAxis(0.0, 0.08, 125))
ONE, TWO = Turn(0.5, 2.0, "speaker_0", 0.9876), Turn(1.5, 3.0, "speaker_1", 0.61)
THREE, FOUR = Turn(4.0, 6.0, "speaker_2", 0.8), Turn(6.5, 8.0, "speaker_1", 0.9)
MEETING = Diarization((ONE, TWO, THREE, FOUR), 10.0, "meeting", ORIGIN)
SAID = [
    Word(0.6, 0.9, " Good", "speaker_0"),
    Word(0.9, 1.4, " morning.", "speaker_0"),
    Word(1.6, 2.4, " Hello,", "speaker_1"),
    Word(2.5, 2.9, " Ada", "speaker_1"),
    Word(3.2, 3.4, " so", "speaker_1"),
    Word(4.1, 4.6, " yes", "speaker_2"),
    Word(7.0, 7.5, " <b>no", "speaker_1"),
]

COMPARISON = {
    "score": "DER 30.0 %",
    "reference": [
        {"speaker": "Ada", "pair": "speaker_1", "turns": [[500, 2000], [6500, 8000]]},
        {"speaker": "<b>Bob", "pair": None, "turns": [[9000, 9500]]},
    ],
    "scored": [[0, 5000], [6000, 10000]],
    "errors": [
        {"span": [0, 500], "kinds": ["miss"], "text": "miss: Ada"},
        {"span": [2000, 3000], "kinds": ["false alarm"], "text": "false alarm: speaker_1"},
        {"span": [3000, 3150], "kinds": ["miss"], "text": "miss: Ada"},
        {"span": [9000, 9500], "kinds": ["miss", "confusion"], "text": "miss and confusion: <b>Bob"},
    ],
}

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
