"""A live stream on the command line: the turns of a file, a pipe or a microphone."""

import io
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from sortformer import Diarizer, audio, checkpoint
from sortformer.errors import InputError
from sortformer.formats.json import read
from sortformer.streaming import Session, Update
from sortformer.streaming.messages import update_message
from tests.audio.makers import chirp, write
from tests.cli.conftest import Cli
from tests.cli.streams import EXPECTED, raw, turns
from tests.processes import started
from tests.streaming.tiny import hearing_model, remembering_model
from tests.tiny import tiny_model

USAGE = 2


def test_a_file_gives_its_turns_on_stdout_and_in_a_file(cli: Cli, model: Path, wav: Path, tmp_path: Path):
    outcome = cli("stream", wav, "--model", model, "-o", tmp_path / "new" / "meeting.rttm")
    assert (outcome.code, outcome.err) == (0, "")
    assert turns(outcome.out) == EXPECTED
    written = tmp_path / "new" / "meeting.rttm"
    assert written.read_text() == outcome.out
    written.write_text("of yesterday")
    assert cli("stream", wav, "--model", model, "-o", written, "--overwrite").code == 0
    assert written.read_text() == outcome.out
    assert turns(cli("diarize", wav, "--model", model, "--preset", "1s").out) == EXPECTED


@pytest.mark.parametrize("ends", ["well", "badly"])
def test_programs_are_told_all_that_is_new_in_lines_of_json(
    cli: Cli, model: Path, wav: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: str
):
    blocks = audio.blocks

    def torn(*_: object, **__: object) -> Iterator[np.ndarray]:
        yield from blocks(wav, block_s=0.1)
        if ends == "badly":
            raise InputError("the line is cut")

    monkeypatch.setattr("sortformer.audio.reading.blocks", torn)
    outcome = cli("stream", wav, "--model", model, "--preset", "0.3s", "-f", "json", "-o", tmp_path / "meeting.json")
    assert (outcome.code, outcome.errors) == ((0, []) if ends == "well" else (1, ["the line is cut"]))
    *updates, done = map(json.loads, outcome.out.splitlines())
    session = Diarizer.load(model, device="cpu").stream("0.3s", uri="meeting")
    pushed = [session.push(block) for block in blocks(wav, block_s=0.1)]
    assert updates == [update_message(session, update) for update in pushed if len(update.probs)]
    assert {name for update in updates for name in update["speaking"]} == {"speaker_0", "speaker_1"}
    assert (done["type"], done["speaking"], done["tentative"]) == ("done", [], [])
    assert [turn for each in (*updates, done) for turn in each["final"]] == done["result"]["turns"]
    assert done["result"] == json.loads((tmp_path / "meeting.json").read_text())
    assert turns(read(tmp_path / "meeting.json").to_rttm()) == EXPECTED


def test_the_result_has_the_warnings_about_its_recording(cli: Cli, model: Path, wav: Path, tmp_path: Path):
    wav.write_bytes(wav.read_bytes()[: wav.stat().st_size // 2])
    outcome = cli("stream", wav, "--model", model, "-f", "json", "-o", tmp_path / "meeting.json")
    (warning,) = json.loads(outcome.out.splitlines()[-1])["result"]["warnings"]
    assert warning.startswith("meeting.wav is damaged or truncated")
    assert outcome.err == f"warning: {wav.parent}/{warning}\n"


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("live.json", [], "is named like json, but would contain rttm: give -f json, or end its name in .rttm"),
        (
            "live.rttm",
            ["-f", "json"],
            "is named like rttm, but would contain json: give -f rttm, or end its name in .json",
        ),
        ("live.html", [], "is named like html, but would contain rttm: end its name in .rttm"),
    ],
)
def test_a_file_is_not_named_as_what_it_does_not_hold(cli: Cli, wav: Path, tmp_path: Path, name, options, message):
    outcome = cli("stream", wav, "-o", tmp_path / name, *options)
    assert outcome.code == 2
    assert message in " ".join(outcome.err.replace("│", " ").split())
    assert not (tmp_path / name).exists()


def test_a_stream_takes_the_post_processing_that_recordings_take(cli: Cli, model: Path, wav: Path):
    options = ("--model", model, "--preset", "1s", "--postprocess", "v2-dihard3", "--pad-off", 0.5, "--min-on", 0.1)
    assert turns(cli("stream", wav, *options).out) == turns(cli("diarize", wav, *options).out) != EXPECTED
    outcome = cli("stream", wav, "--model", model, "--onset", 2)
    assert outcome.code == USAGE
    assert "onset" in outcome.err


def test_a_model_whose_layers_remember_streams_by_their_chunks(cli: Cli, wav: Path, tmp_path: Path):
    checkpoint.save(tmp_path / "model", hearing_model(3.0, 3.0, -3.0, model=remembering_model("compressive")))
    outcome = cli("stream", wav, "--model", tmp_path / "model")
    assert (outcome.code, outcome.err) == (0, "")
    assert turns(outcome.out) == EXPECTED
    assert cli("stream", wav, "--model", tmp_path / "model", "--preset", "0.4s").out == outcome.out
    refused = cli("stream", wav, "--model", tmp_path / "model", "--preset", "1s")
    assert refused.code == USAGE
    assert "no streaming preset '1s'; known: 0.4s" in refused.err


def test_clustering_can_be_left_out_or_asked_for(cli: Cli, tmp_path: Path, wav: Path):
    alone = tiny_model(tmp_path / "alone", speaking=1)
    by_slot, by_voice = (cli("stream", wav, "--model", alone, "--clustering", distance).out for distance in (0, 0.4))
    assert turns(by_slot) == turns(by_voice) == EXPECTED[:1]
    # Once there is enough to cluster, the single voice also gets the probabilities of the silent slots.
    assert float(by_slot.split()[8]) == 0.953 < float(by_voice.split()[8])
    wrong = cli("stream", wav, "--model", alone, "--clustering", 3)
    assert wrong.code == USAGE
    assert "between 0 and 2" in " ".join(wrong.err.split())


def test_a_stream_may_be_given_its_name(cli: Cli, model: Path, wav: Path, pipe: Callable[..., None]):
    pipe(raw(wav))
    outcome = cli("stream", "-", "--uri", "call-7", "--model", model)
    assert turns(outcome.out) == EXPECTED
    assert {line.split()[1] for line in outcome.out.splitlines()} == {"call-7"}


def test_a_pipe_is_not_replaced(cli: Cli, model: Path, wav: Path, tmp_path: Path):
    os.mkfifo(tmp_path / "fifo")
    outcome = cli("stream", wav, "-o", tmp_path / "fifo", "--overwrite", "--model", model)
    assert (outcome.code, outcome.out, len(outcome.errors)) == (1, "", 1)
    assert "is a pipe or a device" in outcome.errors[0]
    assert (tmp_path / "fifo").is_fifo()


@pytest.mark.skipif(sys.platform == "darwin", reason="its file systems have no such names")
def test_a_name_that_stdout_or_nobody_can_write_ends_nothing(model: Path, wav: Path, tmp_path: Path, monkeypatch):
    broken = tmp_path / os.fsdecode(b"caf\xe9 \xc3\xa9.wav")
    broken.write_bytes(wav.read_bytes())
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    for command in (["stream", broken], ["diarize", broken, "-o", tmp_path / "out", "-f", "rttm,json,txt"]):
        running = started(*command, "--model", model, fresh=True)
        shown, said = running.communicate()
        assert running.returncode == 0, said
        assert ("caf?_\\xe9" in shown) == (command[0] == "stream")
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == [f"caf? é.{kind}" for kind in ("json", "rttm", "txt")]


@pytest.mark.parametrize("channel", ["each", "0"])
def test_a_stream_is_of_one_channel(cli: Cli, model: Path, wav: Path, channel: str):
    outcome = cli("stream", wav, "--model", model, "--channel", channel)
    assert outcome.code == 2
    assert f"the channel must be one number, 1 or more, got '{channel}'" in outcome.err


@pytest.mark.parametrize(("columns", "shown"), [(80, "speaker_0, speaker_1\r"), (24, "speaker_0, \r")])
def test_a_terminal_shows_who_speaks_now_in_a_line_that_is_no_longer(
    cli: Cli, model: Path, wav: Path, monkeypatch: pytest.MonkeyPatch, columns: int, shown: str
):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", str(columns))
    outcome = cli("stream", wav, "--model", model, "--preset", "0.3s")
    assert f"\r\x1b[K0:00:00.80  {shown}\x1b[K" in outcome.err
    assert outcome.err.endswith("\r\x1b[K")
    assert turns(outcome.out) == EXPECTED


@pytest.mark.parametrize(
    ("case", "lines"),
    [
        ("speech", [*['{"type": '] * 3, "warning: ", '{"type": ']),
        ("no speech", ["warning: "] * 2),
        ("no memory", ["warning: ", "error: ou"]),
    ],
)
def test_nothing_on_a_terminal_is_appended_to_who_speaks_now(
    cli: Cli, model: Path, deaf_model: Path, make: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, case, lines
):
    def full(*_: object) -> None:
        raise MemoryError

    damaged = make("long.wav", chirp(4.0, 16_000))
    damaged.write_bytes(damaged.read_bytes()[:100_000])
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "stdout", sys.stderr)
    heard = ["--model", model, "-f", "json"] if case == "speech" else ["--model", deaf_model]
    if case == "no memory":
        monkeypatch.setattr(Session, "flush", full)
    shown = cli("stream", damaged, *heard).err
    assert f"\r\x1b[K0:00:01.44  {'-' if deaf_model in heard else 'speaker_0, speaker_1'}\r" in shown
    assert [line.rpartition("\r\x1b[K")[2][:9] for line in shown.split("\n")] == [*lines, ""]


def test_what_is_new_is_written_at_once(cli: Cli, model: Path, wav: Path, monkeypatch: pytest.MonkeyPatch):
    piped, blocks = io.TextIOWrapper(buffer := io.BytesIO()), audio.blocks
    written = list[int]()

    def watched(*_: object, **__: object) -> Iterator[np.ndarray]:
        for block in blocks(wav, block_s=1.0):
            yield block
            written.append(buffer.getvalue().count(b"\n"))

    monkeypatch.setattr("sortformer.audio.reading.blocks", watched)
    monkeypatch.setattr(sys, "stdout", piped)
    assert cli("stream", wav, "--model", model, "--preset", "0.3s", "-f", "json").code == 0
    assert written == [1, 2]


def test_a_model_that_falls_behind_what_is_live_is_said_once(cli: Cli, model: Path, wav: Path, pipe, monkeypatch):
    now, push = [0.0], Session.push

    def slowly(session: Session, block: np.ndarray) -> Update:
        now[0] += 3 + len(block) / 16_000
        return push(session, block)

    monkeypatch.setattr("time.monotonic", lambda: now[0])
    monkeypatch.setattr(Session, "push", slowly)
    assert cli("stream", wav, "--model", model).err == ""
    pipe(raw(wav), piece=8_000)
    outcome = cli("stream", "-", "--model", model)
    assert turns(outcome.out) == EXPECTED
    assert outcome.err == "warning: the model is 6 s behind the audio: try a longer --preset\n"


def test_nobody_is_said(cli: Cli, deaf_model: Path, wav: Path):
    outcome = cli("stream", wav, "--model", deaf_model)
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "warning: no speech found in meeting\n")


def test_where_nobody_is_heard_it_says_how_quiet_it_was(cli: Cli, deaf_model: Path, tmp_path: Path):
    wave = chirp(2.0, 16_000)
    quiet = write(tmp_path / "quiet.wav", 0.002 * wave / np.abs(wave).max(), 16_000)
    outcome = cli("stream", quiet, "--model", deaf_model)
    assert outcome.err == "warning: no speech found in quiet: it is quiet, no sample exceeds -54 dBFS\n"


def test_enrolled_voices_keep_their_names(cli: Cli, model: Path, wav: Path, make: Callable[..., Path]):
    clip = make("clip.wav", chirp(1.5, 8_000), 8_000)
    for arguments in (("stream", wav), ("diarize", wav)):
        outcome = cli(*arguments, "--model", model, "--enroll", f"the chair={clip}")
        assert outcome.code == 0
        assert turns(outcome.out) == [(0.0, 1.99, "speaker_0"), (0.0, 1.99, "the_chair")]
        assert outcome.err.count("note: 'the chair' is written as 'the_chair' in RTTM") == 1
        assert cli(*arguments, "-f", "json", "--model", model, "--enroll", f"the chair={clip}").err == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["{wav}", "--rate", 8_000], "files have their own"),
        (["-", "--rate", 10], "between 1000 and 768000 Hz"),
        (["-", "--rate", 10**400], "a whole number of Hz"),
        (["-", "--pace"], "live audio already comes in real time"),
        (["--channel", 1], "a microphone is recorded in one channel anyway"),
        (["{wav}", "--microphone", "USB"], "leave the source out"),
        (["{wav}", "--channel", 0], "--channel"),
        (["{wav}", "--overwrite"], "give one with -o"),
        (["{wav}", "-f", "srt"], "cannot be written as 'srt'; choose from rttm, json"),
        (["{fifo}", "--pace"], "live audio already comes in real time"),
        (["{wav}", "--preset", "psychic"], "known: 30s"),
        (["{wav}", "--max-speakers", 0], "1 or more"),
        (["{wav}", "--enroll", "chair"], "like chair=chair.wav"),
        (["{wav}", "--enroll", "speaker_1=a.wav"], "'speaker_1' is a label of the toolkit"),
        (["{wav}", "--enroll", "=a.wav"], "is empty"),
        (["{wav}", "--enroll", "a=a.wav", "--enroll", "a=b.wav"], "twice"),
    ],
)
def test_wrong_options_are_usage_errors(
    cli: Cli, model: Path, wav: Path, pipe: Callable[..., None], tmp_path: Path, arguments: list, words: str
):
    pipe(b"")
    os.mkfifo(fifo := tmp_path / "fifo")
    outcome = cli("stream", *(str(each).format(wav=wav, fifo=fifo) for each in arguments), "--model", model)
    assert (outcome.code, outcome.out) == (USAGE, "")
    assert words in " ".join(outcome.err.split())


@pytest.mark.parametrize(
    ("out", "words"), [("meeting.wav/live.rttm", "meeting.wav is a file"), ("folder", "folder is a folder")]
)
def test_an_unwritable_output_is_known_before_the_stream(cli: Cli, wav: Path, tmp_path: Path, out: str, words: str):
    (tmp_path / "folder").mkdir()
    outcome = cli("stream", wav, "--model", "absent", "-o", tmp_path / out, "--overwrite")
    assert (outcome.code, outcome.out, len(outcome.errors)) == (1, "", 1)
    assert words in outcome.errors[0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["absent.wav"], "does not exist"),
        (["-", "--rate", 8_000], "a recording has its own rate, so leave it out"),
        (["{wav}", "-o", "{short}"], "short.wav exists already; use --overwrite"),
        (["{wav}", "-o", "{wav}", "--overwrite"], "is the input, not a result: give another name with -o"),
        (["{wav}", "--enroll", "chair=absent.wav"], "the clip of 'chair': absent.wav does not exist"),
        (["{wav}", "--enroll", "chair={short}"], "clip of 'chair' lasts 0.50 s"),
    ],
)
def test_what_cannot_be_used_is_one_sentence(
    cli: Cli, model: Path, wav: Path, make: Callable[..., Path], pipe: Callable[..., None], arguments: list, words: str
):
    short = make("short.wav", chirp(0.5, 16_000))
    pipe(wav.read_bytes())
    outcome = cli("stream", *(str(each).format(wav=wav, short=short) for each in arguments), "--model", model)
    assert (outcome.code, outcome.out, len(outcome.errors)) == (1, "", 1)
    assert words in outcome.errors[0]
