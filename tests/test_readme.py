"""The README and its pages are correct: their code runs, and the test commands are those of CI."""

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnxruntime.quantization import quantize_dynamic

from sortformer import audio
from sortformer.annotation import Diarization, Turn
from sortformer.checkpoint.contents import Checkpoint
from sortformer.checkpoint.onnx_export import write_onnx
from sortformer.config.postprocess import PostprocessConfig
from sortformer.config.strict import from_dict
from sortformer.config.train import TrainConfig
from sortformer.diarizer import Diarizer
from sortformer.formats import rttm
from sortformer.formats.kinds import FORMATS
from sortformer.metrics.der import der
from sortformer.model import Sortformer
from tests.processes import started

ROOT = Path(__file__).resolve().parents[1]
README, CONTRIBUTING = ROOT / "README.md", ROOT / "CONTRIBUTING.md"
SERVING, COMING, NVIDIA, ONNX = (ROOT / "docs" / f"{name}.md" for name in ("serving", "coming_from", "nvidia", "onnx"))
MECHANISMS, COMMANDS, TALK = (ROOT / "docs" / f"{name}.md" for name in ("mechanisms", "command_line", "talk_time"))
PAGES = [README, *sorted((ROOT / "docs").glob("*.md"))]
EMBEDDED = ROOT / "sortformer" / "weights" / "model.safetensors"

with_weights = pytest.mark.skipif(not EMBEDDED.exists(), reason="the package has no weights yet")


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def stem(page: Path) -> str:
    return page.stem


def commands(page: Path) -> list[str]:
    """Return the commands that need no installation and train nothing, in order."""
    lines = [line.split("  #")[0].strip() for block in blocks(page, "bash") for line in block.splitlines()]
    left_out = ("train", "runs/", "serve")
    return [line for line in lines if line.startswith("sortformer") and not any(word in line for word in left_out)]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with the demos, as a reader has it."""
    shutil.copytree(ROOT / "demos", tmp_path / "demos")
    return tmp_path


@with_weights
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python") and page != SERVING], ids=stem)
def test_the_python_runs(checkout: Path, page: Path):
    if page == ONNX:
        write_graph(checkout / "sortformer.onnx")
    program = "".join(blocks(page, "python"))  # each continues from the state of the last one
    done = subprocess.run([sys.executable, "-c", program], cwd=checkout, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout


@with_weights
def test_talk_time_is_counted_as_its_page_says(checkout: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(checkout)
    page: dict[str, Any] = {}
    exec(blocks(TALK, "python")[0], page)
    turns = [Turn(0, 5, "Ada"), Turn(2, 3, "Bob"), Turn(4.5, 6, "Bob"), Turn(6.4, 7, "Bob"), Turn(8, 9, "Ada")]
    talks = [Diarization(tuple(turns), 10, "talk").merge(0.5), Diarization((), 10, "silence")]
    columns = ["talk", "turns", "mean", "longest", "share"]
    told = page["talk"](talks)[columns].to_dict("index")
    assert told == {
        ("talk", "Ada"): dict(zip(columns, (6.0, 2, 3.0, 5.0, 6 / 9.5), strict=True)),
        ("talk", "Bob"): dict(zip(columns, (3.5, 2, 1.75, 2.5, 3.5 / 9.5), strict=True)),
    }
    assert page["taken"](talks[0]).values.tolist() == [
        ["Bob", "Ada", -3.0, True],
        ["Bob", "Ada", -0.5, False],
        ["Ada", "Bob", 1.0, False],
    ]
    talk, silence = page["taking"](talks).to_dict("records")
    assert talk == {"silence": 2, "overlap": 1.5, "changes": 2, "offset": 0.25, "interrupting": 1, "within": 1}
    assert (silence["silence"], silence["overlap"], silence["changes"]) == (10, 0, 0)


@pytest.mark.skipif(shutil.which("awk") is None, reason="awk is absent")
def test_a_file_a_speaker_becomes_one_recording(tmp_path: Path):
    join = next(code for code in re.findall(r"`([^`]+)`", COMMANDS.read_text("utf-8")) if "alone/*.rttm" in code)
    (tmp_path / "alone").mkdir()
    for name, turns in {"Ada": (Turn(1, 2, "speaker_0"),), "Bob B": (Turn(1.5, 3, "speaker_0"),), "Cy": ()}.items():
        rttm.write(tmp_path / "alone" / f"{name}.rttm", Diarization(turns, 4, name))
    subprocess.run(join, shell=True, cwd=tmp_path, check=True)
    assert rttm.read(tmp_path / "meeting.rttm") == {"meeting": (Turn(1, 2, "Ada"), Turn(1.5, 3, "Bob_B"))}


def test_the_clips_of_a_speaker_are_the_longest_turns_alone(checkout: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(checkout)
    cut = next(block for block in blocks(ROOT / "docs" / "python.md", "python") if "soundfile.write" in block)
    turns = [Turn(0, 2, "Ada"), Turn(1, 4, "Bob"), Turn(4, 26, "Ada"), Turn(26, 27, "Cy"), Turn(26, 27, "Bob")]
    exec(cut, {"known": Diarization(tuple(turns), 30, "meeting"), "audio": audio})
    clips = {path.stem: audio.read(path) for path in checkout.glob("*.wav")}
    wave = audio.read("demos/meeting.wav")
    assert clips.keys() == {"Ada", "Bob"}  # Cy is never alone
    np.testing.assert_array_equal(clips["Ada"], wave[4 * 16000 : 24 * 16000])
    np.testing.assert_array_equal(clips["Bob"], wave[2 * 16000 : 4 * 16000])


def write_graph(path: Path) -> None:
    """Write an int8 graph with the inputs of the package's own, which would take a minute or more, but fewer layers."""
    model = Diarizer.load(device="cpu").model.config
    encoder = replace(model.encoder, layers=1, attention=model.encoder.attention[:1])
    head = replace(model.head, layers=1, estimate_layers=(), permutation="none", attention=())
    small = Sortformer(replace(model, encoder=encoder, head=head)).eval()
    write_onnx(path, Checkpoint(small, PostprocessConfig()))
    quantize_dynamic(path, path)  # which adds metadata of its own


@with_weights
@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)], ids=stem)
def test_the_commands_run(checkout: Path, page: Path):
    for line in commands(page):
        words, _, piped = line.partition(" < ")
        with (checkout / piped if piped else Path(os.devnull)).open() as stdin:
            process = started(*shlex.split(words)[1:], stdin=stdin, cwd=checkout)
            out, err = process.communicate()
        assert process.returncode == 0, (line, err)
        assert out or " -o " in line, line
    if page == README:
        assert {path.suffix for path in (checkout / "results").iterdir()} == {".rttm", ".json", ".txt", ".html"}


@with_weights
def test_what_is_shown_of_the_demo_is_what_comes_out():
    lines = re.findall(r"^SPEAKER .*$", README.read_text(encoding="utf-8"), re.MULTILINE)
    shown = rttm.parse("\n".join(lines))["meeting"]
    found = Diarizer.load(device="cpu")(ROOT / "demos" / "meeting.wav").turns
    assert len(shown) == 3
    for turn in shown:  # with another processor's rounding a border may be a frame off
        assert any(
            turn.speaker == each.speaker
            and (turn.start, turn.end, turn.confidence)
            == pytest.approx((each.start, each.end, each.confidence), abs=0.1)
            for each in found
        )
    told = re.search(r"DER of ([\d.]+) %", (ROOT / "demos" / "README.md").read_text(encoding="utf-8"))
    assert told is not None
    truth = rttm.read(ROOT / "demos" / "meeting.rttm")["meeting"]
    assert float(told[1]) == pytest.approx(100 * der(truth, found).rate, abs=1.0)


@with_weights
def test_what_an_early_exit_costs_on_the_demo_is_as_told():
    (threshold, told), *others = re.findall(
        r"`exit_confidence=([\d.]+)`\s+the turns of `demos/meeting.wav` have a DER of ([\d.]+) %",
        MECHANISMS.read_text(encoding="utf-8"),
    )
    assert not others
    whole, early = (
        Diarizer.load(device="cpu", exit_confidence=exit)(ROOT / "demos" / "meeting.wav").turns
        for exit in (None, float(threshold))
    )
    assert float(told) == pytest.approx(100 * der(whole, early).rate, abs=1.0)


def test_there_is_something_to_run():
    assert all(commands(page) or blocks(page, "python") for page in PAGES if page not in (COMING, NVIDIA))


@with_weights
def test_the_server_serves_as_its_page_says(checkout: Path):
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = str(found.getsockname()[1])
    lines = [line.split("  #")[0] for block in blocks(SERVING, "bash") for line in block.splitlines()]
    (command,) = (line.replace("8000", port).split() for line in lines if line.startswith("sortformer"))
    options = {"cwd": checkout, "text": True, "env": os.environ | {"no_proxy": "127.0.0.1"}}
    with started(*command[1:], cwd=checkout) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == f"listening on http://127.0.0.1:{port}\n"
        asked = [line.replace("8000", port) for line in lines if line.startswith("curl") and shutil.which("curl")]
        answers = [subprocess.check_output(f"{line} -sS --fail-with-body", shell=True, **options) for line in asked]
        (program,) = blocks(SERVING, "python")
        said = subprocess.check_output([sys.executable, "-c", program.replace("8000", port)], **options)
        server.send_signal(signal.SIGTERM)
        _, complaints = server.communicate()
    assert (server.returncode, complaints) == (0, "")
    for words, answer in zip(('"turns": [', "SPEAKER meeting 1", '"ok"'), answers, strict=False):
        assert words in answer
    assert "speaker_0" in said.splitlines()[-1]


def test_what_its_tables_import_is_there():
    lines = re.findall(r"`(from sortformer[^`]* import [^`]*)`", COMING.read_text(encoding="utf-8"))
    assert lines
    for line in lines:
        exec(line, {})


RECIPE = {"steps": 1, "stages": [{"until_step": 1, "duration_s": 10, "batch_size": 1}], "data": {"bank": "voices"}}


@pytest.mark.parametrize("block", [block for page in PAGES for block in blocks(page, "toml")])
def test_what_is_shown_of_recipes_can_be_read(block: str):
    from_dict(TrainConfig, RECIPE | tomllib.loads(block))


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as on GitHub."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=stem)
def test_links_lead_somewhere(page: Path):
    links = re.findall(r"\]\(([^):#]*)(?:#([^)]*))?\)", page.read_text(encoding="utf-8"))
    assert links
    for link, anchor in links:
        target = page.parent / link if link else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), f"{link}#{anchor}"


def test_the_floors_that_are_shown_are_those_that_are_checked():
    (shown,) = re.findall(r"^cli  >  .*?(?=^```)", CONTRIBUTING.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    (checked,) = (each["layers"] for each in settings["contracts"] if each["name"] == "floors")
    floors, expected = ([set(re.findall(r"\w+", floor)) for floor in part] for part in (shown.split(">"), checked))
    assert floors == expected


def test_the_page_of_the_commands_lists_every_format():
    rows = re.findall(r"^\| (`.*?`) \| (`NAME.*?`) \|", COMMANDS.read_text(encoding="utf-8"), re.MULTILINE)
    listed = [pair for row in rows for pair in zip(*(re.findall(r"`(.*?)`", cell) for cell in row), strict=True)]
    assert sorted(listed) == sorted((name, f"NAME.{each.extension}") for name, each in FORMATS.items())


def test_the_checks_install_and_test_as_the_readme_says():
    checks, readme = ((ROOT / name).read_text(encoding="utf-8") for name in (".ci/run", "README.md"))
    for command in ("torch==2.13.0", '-e ".[dev]"', "python -m pytest -n auto"):
        assert command in readme
        assert command in checks
