"""The page at ``/``: it sends what was chosen, and shows or saves the result."""

import io
import json
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import soundfile

from sortformer.config.postprocess import PostprocessConfig
from sortformer.diarizer import Diarizer
from sortformer.formats.kinds import FORMATS
from sortformer.serve import application
from sortformer.serve.form import Options
from tests.formats.opened_page import BROWSERS, driven
from tests.serve.running import Running, running
from tests.streaming.tiny import noise, tiny_model


def recorded(samples: np.ndarray) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, samples, 16_000, format="WAV")
    return file.getvalue()


pytestmark = pytest.mark.filterwarnings("always:.*the maximum, and any further one")  # as it shows them

DIARIZER = Diarizer(tiny_model(gain=5.0), PostprocessConfig(), "tiny")
WAV = recorded(noise(32_000))
TALK = json.dumps([{"word": "Hello", "start": 0.5, "end": 0.9}]).encode()

HANDS = """
  const $ = (id) => document.getElementById(id);
  const [form] = document.forms;
  const [go, said] = [$("go"), $("said")];
  const [progress] = document.getElementsByTagName("progress");
  const choose = (id, ...files) => {
    const chosen = new DataTransfer();
    const bytes = (content) => Uint8Array.from(atob(content), (letter) => letter.charCodeAt(0));
    for (const [name, content] of files) chosen.items.add(new File([bytes(content)], name));
    $(id).files = chosen.files;
  };
  const until = async (done) => {
    for (let turn = 0; !done(); turn += 1) {
      if (turn === 1500) throw Error(`never ${done}`);
      await new Promise((next) => setTimeout(next, 20));
    }
  };
  const sent = async () => {
    form.requestSubmit();
    const busy = [go.disabled, progress.checkVisibility()];
    await until(() => !go.disabled);
    return [...busy, progress.checkVisibility(), said.textContent];
  };
  const saved = [];
  URL.createObjectURL = (content) => (saved.push(content), "#");
  HTMLAnchorElement.prototype.click = function () {
    saved.push(this.download);
  };
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with running(application(DIARIZER, max_streams=1, max_upload_mb=1)) as found:
        yield found


@pytest.fixture(scope="module", params=BROWSERS)
def outcome(request: pytest.FixtureRequest, server: Running, tmp_path_factory) -> Iterator[Callable[[str], Any]]:
    """Open the page in a browser, and return what a script returns there."""
    with driven(request.param, tmp_path_factory.mktemp("browser")) as run:

        def opened(script: str) -> Any:
            asked = f"(async () => {{ {HANDS} {script} }})().then(JSON.stringify)"
            return json.loads(run(f"http://{server.address}/", asked)["value"])

        yield opened


def file(name: str, content: bytes) -> str:
    return json.dumps([name, b64encode(content).decode()])


def test_the_page_of_the_result_replaces_it_with_recording_and_words(outcome):
    script = f"""
      choose("file", {file("talk.wav", WAV)});
      choose("words", {file("talk.json", TALK)});
      form.requestSubmit();
      choose("file", {file("other.wav", WAV)});
      await until(() => document.querySelector(".word") && $("said").textContent);
      const texts = ["h1", ".word", "header a"].map((each) => document.querySelector(each).textContent.trim());
      const again = document.querySelector("header a").href === location.href;
      return [document.title, ...texts, again, $("file").files[0].name, $("said").textContent];
    """
    *seen, said = outcome(script)
    assert seen == ["talk", "talk", "Hello", "Another recording", True, "talk.wav"]
    # A machine without a sound device cannot play it, and Firefox says so.
    assert said.startswith(("Click a turn", "This browser cannot play talk.wav"))


def test_other_formats_are_saved_under_the_name_of_the_recording(outcome, server: Running):
    script = f"""
      choose("file", {file("my talk.1.wav", WAV)});
      $("format").value = "rttm";
      const seen = [(await sent()).at(-1)];
      $("number").value = "3";
      seen.push((await sent()).at(-1), await saved[0].text(), saved[1]);
      $("format").querySelector("[data-extension=html]").selected = true;
      await sent();
      return [...seen, saved.at(-1)];
    """
    warned, said, content, name, page = outcome(script)
    assert warned.startswith("Saved. Warning: my talk.1.wav has 3 speakers, the maximum, and any further one is merged")
    assert (said, name, page) == ("Saved.", "my talk.1.rttm", "my talk.1.html")
    assert content == server.post("my talk.1.wav", WAV, response_format="rttm").text


def test_a_dropped_file_is_the_recording_except_on_another_field(outcome):
    script = f"""
      const drop = (target, kind, ...files) => {{
        const dataTransfer = new DataTransfer();
        for (const name of files) dataTransfer.items.add(new File(["1"], name));
        if (!files.length) dataTransfer.setData("text/plain", "a text");
        const event = new DragEvent(kind, {{ dataTransfer, bubbles: true, cancelable: true }});
        return [!target.dispatchEvent(event), $("file").files[0].name];
      }};
      choose("file", {file("talk.wav", WAV)});
      const seen = ["dragover", "drop"].map((kind) => drop($("words"), kind, "talk.srt"));
      for (const names of [[], ["one.wav", "two.wav"], ["other.wav"]]) seen.push(drop(document.body, "drop", ...names));
      return [...seen, said.textContent];
    """
    *seen, said = outcome(script)
    assert seen == [[False, "talk.wav"]] * 2 + [[True, "talk.wav"]] * 2 + [[True, "other.wav"]]
    assert said == "Drop one recording at a time."


def test_what_is_chosen_is_sent_and_nothing_else(outcome):
    script = f"""
      let names;
      window.fetch = async (_, {{ body }}) => {{
        names = [...body].map(([name, value]) => [name, value.name ?? value]);
        return new Response("{{}}", {{ status: 400 }});
      }};
      choose("file", {file("talk.wav", WAV)});
      await sent();
      const seen = [names];
      choose("clips", {file("Ada.wav", WAV)}, {file("Bob.wav", WAV)});
      choose("words", {file("talk.srt", b"1")});
      $("number").value = "2";
      $("most").value = "3";
      $("channel").value = "each";
      await sent();
      return [...seen, names, [...$("channel").options].map((option) => option.value)];
    """
    always = [["file", "talk.wav"], ["response_format", "html"]]
    first, second, (mixed, *channels) = outcome(script)
    assert (first, mixed) == (always, "")
    assert [Options.model_validate({"channel": channel}).channel for channel in channels] == ["each", 1, 2]
    assert sorted(second) == sorted(
        [
            *always,
            *(["enroll", name] for name in ("Ada.wav", "Bob.wav")),
            *(["words", "talk.srt"], ["num_speakers", "2"], ["max_speakers", "3"], ["channel", "each"]),
        ]
    )


def test_a_number_of_speakers_excludes_the_greatest_number(outcome):
    script = """
      $("most").value = "3";
      return ["2", ""].map((typed) => {
        $("number").value = typed;
        $("number").dispatchEvent(new Event("input"));
        return new FormData(form).get("max_speakers");
      });
    """
    assert outcome(script) == [None, "3"]


def test_a_number_that_the_browser_restores_excludes_the_other(outcome):
    """As Firefox does after a reload."""
    script = """
      $("most").value = "3";
      $("number").value = "2";
      dispatchEvent(new PageTransitionEvent("pageshow"));
      return new FormData(form).get("max_speakers");
    """
    assert outcome(script) is None


def test_what_is_wrong_is_said(outcome):
    script = f"""
      choose("file", {file("talk.wav", b"no sound")});
      const seen = [(await sent()).at(-1)];
      $("format").value = "srt";
      seen.push((await sent()).at(-1));
      window.fetch = async () => new Response("<html>", {{ status: 502, statusText: "Bad Gateway" }});
      seen.push((await sent()).at(-1));
      window.fetch = async () => new Response("", {{ status: 413 }});
      seen.push((await sent()).at(-1));
      window.fetch = async () => {{ throw new TypeError("Failed to fetch"); }};
      seen.push((await sent()).at(-1), $("format").options.length, $("format").selectedOptions[0].text);
      return [...seen, [...$("format").options].filter((each) => each.text.endsWith("transcript")).length];
    """
    damaged, wordless, proxy, newer_proxy, gone, *formats = outcome(script)
    assert damaged.startswith("talk.wav ")
    assert wordless.startswith("srt needs words")
    assert proxy == "The server answers with 502 Bad Gateway."
    assert newer_proxy == "The server answers with 413."  # HTTP/2 has no reason
    assert gone.startswith("No answer: the server cannot be reached, or a chosen file has changed")
    needing = sum(each.turns is None for each in FORMATS.values())
    assert formats == [1 + len(FORMATS), "a file: .srt, which needs a transcript", needing]


def test_what_is_too_large_is_not_sent(outcome, server: Running):
    half, too_much = bytes(1 << 19), bytes((1 << 19) + 1)
    script = f"""
      let requests = 0;
      window.fetch = async () => (requests += 1, new Response("{{}}", {{ status: 400 }}));
      choose("file", {file("talk.wav", half)});
      choose("clips", {file("Ada.wav", half)});
      await sent();
      choose("clips", {file("Ada.wav", too_much)});
      return [(await sent()).at(-1), requests];
    """
    assert outcome(script) == [server.post(content=bytes(1 << 20)).json()["error"], 1]


def test_a_file_that_is_gone_or_shorter_since_it_was_chosen_is_not_sent(outcome):
    """As a browser reads it then; a real file cannot be chosen by a script."""
    script = f"""
      window.fetch = () => new Promise(() => {{}}); // as Firefox waits
      choose("file", {file("talk.wav", WAV)});
      Blob.prototype.slice = () => new Blob([]);
      const seen = [(await sent()).at(-1)];
      Blob.prototype.slice = () => ({{ arrayBuffer: async () => {{ throw Error("aborted"); }} }});
      return [...seen, (await sent()).at(-1)];
    """
    reasons = "the server cannot be reached, or a chosen file has changed or cannot be read"
    assert outcome(script) == [f"No answer: {reasons} ({why})." for why in ("talk.wav", "aborted")]


def test_a_result_is_not_left_before_it_is_saved_or_confirmed(outcome):
    script = f"""
      const asks = () => !dispatchEvent(new Event("beforeunload", {{ cancelable: true }}));
      choose("file", {file("talk.wav", WAV)});
      const seen = [asks()];
      form.requestSubmit();
      await until(() => document.querySelector("header a"));
      seen.push(asks(), $("unsaved").hidden, document.querySelector("header a").target);
      $("rttm").click();
      return [...seen, asks(), $("unsaved").hidden];
    """
    assert outcome(script) == [False, True, False, "_blank", False, True]


@pytest.mark.parametrize("browser", BROWSERS)
def test_it_fits_a_narrow_screen_and_its_fields_are_described(browser: str, server: Running, tmp_path: Path):
    script = """JSON.stringify([
      document.documentElement.scrollWidth <= 320,
      Math.min(...[...document.querySelectorAll("[type=file], select")].map((field) => field.offsetWidth)) > 200,
      ...[..."number most channel clips words".split(" ")].map((id) => document.getElementById(id).labels.length),
    ])"""
    with driven(browser, tmp_path, width=320) as run:
        assert json.loads(run(f"http://{server.address}/", script)["value"]) == [True, True, 2, 2, 1, 2, 2]


def test_the_page_may_load_nothing_and_be_in_no_frame(server: Running):
    for method in ("GET", "HEAD"):
        answer = httpx.request(method, f"http://{server.address}/", timeout=60)
        assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
        rules = answer.headers["content-security-policy"].split("; ")
        assert {"default-src 'none'", "connect-src 'self'", "frame-ancestors 'none'"} <= set(rules)
        assert "media-src blob:" in rules  # the chosen recording, which a machine without sound cannot play anyway
