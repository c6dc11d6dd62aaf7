"""User errors: each is one sentence on stderr, with the right exit code."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from sortformer.annotation import Diarization
from sortformer.diarizer import Diarizer
from tests.audio.makers import chirp
from tests.cli.conftest import Cli

USAGE = 2


def one_error(cli: Cli, source: Path, model: Path, *words: str) -> None:
    outcome = cli("diarize", source, "--model", model)
    assert outcome.code == 1
    assert outcome.out == ""
    assert len(outcome.errors) == 1
    for word in (str(source), *words):
        assert word in outcome.errors[0]


def test_missing_file(cli: Cli, model: Path, tmp_path: Path):
    one_error(cli, tmp_path / "absent.wav", model, "does not exist")


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"", "empty"),
        (b"This is no recording, it is a letter.\n" * 50, "cannot be read as audio"),
        (np.random.default_rng(0).bytes(20_000), "cannot be read as audio"),
    ],
    ids=["empty", "text", "random bytes"],
)
def test_what_is_no_audio(cli: Cli, model: Path, tmp_path: Path, content: bytes, word: str):
    path = tmp_path / "meeting.wav"
    path.write_bytes(content)
    one_error(cli, path, model, word)


def test_header_without_samples(cli: Cli, model: Path, make: Callable[..., Path]):
    one_error(cli, make("meeting.wav", np.zeros(0, np.float32)), model)


def test_a_twentieth_of_a_second(cli: Cli, model: Path, make: Callable[..., Path]):
    one_error(cli, make("meeting.wav", chirp(0.05, 16_000)), model, "0.05", "at least")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_samples_that_are_no_numbers(cli: Cli, model: Path, make: Callable[..., Path], value: float):
    samples = chirp(1.0, 16_000)
    samples[8_000] = value
    one_error(cli, make("meeting.wav", samples, subtype="FLOAT"), model, "0.500 s")


def test_a_truncated_file_gives_what_there_is_and_a_warning(cli: Cli, model: Path, wav: Path):
    content = wav.read_bytes()
    wav.write_bytes(content[: len(content) // 2])
    outcome = cli("diarize", wav, "--model", model)
    assert outcome.code == 0
    assert outcome.out.startswith("SPEAKER meeting 1 0.000 ")
    warnings = [line for line in outcome.err.splitlines() if line.startswith("warning: ")]
    assert len(warnings) == 1
    assert "1.0 s of the 2.0 s" in warnings[0]
    document = json.loads(cli("diarize", wav, "--model", model, "-f", "json").out)
    assert document["warnings"] == [warnings[0].removeprefix("warning: ").replace(str(wav), wav.name)]


def test_silence_is_no_speech_and_says_so(cli: Cli, model: Path, make: Callable[..., Path]):
    silent = make("meeting.wav", np.zeros(16_000, np.float32))
    outcome = cli("diarize", silent, "--model", model)
    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err == f"warning: no speech found in {silent}: it is silent\n"


def test_a_recording_in_which_nobody_speaks_is_not_silent_success(cli: Cli, deaf_model: Path, wav: Path):
    outcome = cli("diarize", wav, "--model", deaf_model)
    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err == f"warning: no speech found in {wav}\n"


@pytest.mark.parametrize(("rate", "channels"), [(8_000, 1), (44_100, 2), (16_000, 32)])
def test_other_rates_and_channel_counts_are_no_trouble(
    cli: Cli, model: Path, make: Callable[..., Path], rate: int, channels: int
):
    outcome = cli("diarize", make("meeting.wav", chirp(1.0, rate, channels), rate), "--model", model)
    assert (outcome.code, outcome.err) == (0, "")
    assert [line.split()[7] for line in outcome.out.splitlines()] == ["speaker_0", "speaker_1"]


def test_a_channel_that_is_not_there(cli: Cli, model: Path, wav: Path):
    assert cli("diarize", wav, "--model", model, "--channel", 1).code == 0
    outcome = cli("diarize", wav, "--model", model, "--channel", 2)
    assert (outcome.code, outcome.errors) == (1, [f"{wav} has 1 channel: channel 2 does not exist"])


def test_channels_that_cancel_say_how_to_take_one(cli: Cli, model: Path, make: Callable[..., Path]):
    wave = chirp(1.0, 16_000)
    balanced = make("balanced.wav", np.stack([wave, -wave], axis=1))
    assert "use one of them, such as the first (--channel 1; in Python, channel=1)" in (
        cli("diarize", balanced, "--model", model).err
    )
    assert cli("diarize", balanced, "--model", model, "--channel", 1).err == ""


def test_a_directory_without_audio(cli: Cli, model: Path, tmp_path: Path):
    (tmp_path / "notes.txt").write_text("nothing to hear")
    one_error(cli, tmp_path, model, "no audio files", "suffixes")
    outcome = cli("diarize", f"{tmp_path}/", "--model", model)  # as shells complete it
    assert outcome.errors[0].startswith(f"the folder {tmp_path} has no audio files")


def test_a_directory_with_audio_only_further_down(cli: Cli, model: Path, make: Callable[..., Path], tmp_path: Path):
    make("day/meeting.wav")
    one_error(cli, tmp_path, model, "no audio files", "subfolders are not searched")


@pytest.mark.parametrize("place", ["", "results"])
def test_an_unwritable_output_is_known_before_the_work(cli: Cli, model: Path, wav: Path, place: str):
    outcome = cli("diarize", wav, "--model", model / "absent", "-o", wav / place)
    assert outcome.code == 1
    assert outcome.errors == [f"{wav} is a file, but a folder is needed there: choose another name"]


def test_white_space_becomes_an_underline_in_rttm_and_that_is_said(cli: Cli, model: Path, make: Callable[..., Path]):
    outcome = cli("diarize", make("my  long meeting.wav"), "--model", model)
    assert outcome.code == 0
    assert outcome.out.startswith("SPEAKER my_long_meeting 1 0.000 1.000 ")
    assert "'my  long meeting' is written as 'my_long_meeting' in RTTM" in outcome.err


def test_a_clip_that_cannot_be_used_is_one_error_before_the_work(cli: Cli, model: Path, make: Callable[..., Path]):
    recordings = make("a.wav"), make("b.wav")
    outcome = cli("diarize", *recordings, "--model", model, "--enroll", "ada=nope.wav")
    assert (outcome.code, outcome.err) == (1, "error: the clip of 'ada': nope.wav does not exist: check the path\n")


def test_unicode_names_stay(cli: Cli, model: Path, make: Callable[..., Path], tmp_path: Path):
    outcome = cli("diarize", make("Besprechung_Köln_会議.wav"), "--model", model, "-o", tmp_path / "out")
    assert outcome.code == 0
    written = (tmp_path / "out" / "Besprechung_Köln_会議.rttm").read_text(encoding="utf-8")
    assert written.startswith("SPEAKER Besprechung_Köln_会議 1 ")


@pytest.mark.parametrize("other", ["b/meeting.wav", "a/meeting.flac"])
def test_two_files_of_one_name_are_errors_and_the_others_are_done(
    cli: Cli, model: Path, make: Callable[..., Path], tmp_path: Path, other: str
):
    first, second, third = make("a/meeting.wav"), make(other), make("talk.wav")
    outcome = cli("diarize", first, second, third, "--model", model, "-o", tmp_path / "out")
    assert (outcome.code, outcome.out) == (1, "")
    for error, (one, two) in zip(outcome.errors, [(first, second), (second, first)], strict=True):
        assert error.startswith(f"{one} and {two} are both named 'meeting', and so would be their results: ")
        assert "'uniq_id' in a manifest" in error
    assert outcome.err.splitlines()[-1] == f"1 recording diarized, 2 failed: {first}, {second}"
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["talk.rttm"]


@pytest.mark.parametrize("ignored", [True, False])
def test_names_that_differ_in_case_are_one_where_the_folder_ignores_it(
    cli: Cli, model: Path, make: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ignored: bool
):
    """As on Windows and macOS: the second result would replace the first, or be taken for it."""
    first, second = make("a/Talk.wav"), make("b/talk.wav")
    with monkeypatch.context() as patch:
        if ignored:
            patch.setattr(Path, "exists", _is_there_in_any_case)
        outcome = cli("diarize", first, second, "--model", model, "-o", tmp_path / "out", "--overwrite")
    assert outcome.code == int(ignored)
    said = ", one file name in this folder, and so would be their results: "
    assert [said in error for error in outcome.errors] == ([True, True] if ignored else [])
    assert len(list((tmp_path / "out").iterdir())) == (0 if ignored else 2)


def _is_there_in_any_case(path: Path) -> bool:
    beside = path.parent.iterdir() if path.parent.is_dir() else ()
    return path.name.lower() in [each.name.lower() for each in beside] or path.is_dir()


@pytest.mark.parametrize("form", ["arguments", "folder", "manifest"])
@pytest.mark.parametrize(
    ("target", "said"),
    [("loop.wav", "cannot be opened: Too many levels of symbolic links"), ("/nowhere.wav", "does not exist")],
)
def test_a_link_that_leads_nowhere_is_an_error_and_the_others_are_done(
    cli: Cli, model: Path, make: Callable[..., Path], tmp_path: Path, form: str, target: str, said: str
):
    good = make("in/good.wav")
    loop = good.with_name("loop.wav")
    loop.symlink_to(target)
    rows = [{"audio_filepath": str(each)} for each in (good, loop)]
    (tmp_path / "m.jsonl").write_text("\n".join(map(json.dumps, rows)))
    given = {"arguments": [good, loop], "folder": [good.parent], "manifest": [tmp_path / "m.jsonl"]}[form]
    outcome = cli("diarize", *given, "--model", model, "-o", tmp_path / "out")
    assert (outcome.code, len(outcome.errors)) == (1, 1)
    assert outcome.errors[0].startswith(f"{loop} {said}")
    assert outcome.err.splitlines()[-1] == "1 recording diarized, 1 failed: loop"
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["good.rttm"]


def test_two_files_of_one_name_are_nothing_to_tune_on(cli: Cli, make: Callable[..., Path], tmp_path: Path):
    first, second = make("a/meeting.wav"), make("b/meeting.wav")
    outcome = cli("tune", first, second, "--reference", tmp_path, "-o", tmp_path / "tuned")
    assert (outcome.code, len(outcome.errors)) == (1, 1)
    assert f"{first} and {second} are both named 'meeting'" in outcome.errors[0]


def test_an_empty_manifest_is_an_error(cli: Cli, tmp_path: Path):
    (tmp_path / "calls.jsonl").touch()
    outcome = cli("diarize", tmp_path / "calls.jsonl")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.errors[0].endswith("calls.jsonl has no recordings")


def test_two_files_of_one_name_have_ids_in_a_manifest(cli: Cli, model: Path, make: Callable[..., Path], tmp_path: Path):
    lines = [{"audio_filepath": str(make(f"{day}/meeting.wav")), "uniq_id": f"{day}-meeting"} for day in "ab"]
    (tmp_path / "calls.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert cli("diarize", tmp_path / "calls.jsonl", "--model", model, "-o", tmp_path / "out").code == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["a-meeting.rttm", "b-meeting.rttm"]


def test_two_of_one_name_in_a_manifest_do_not_stop_the_others(
    cli: Cli, model: Path, make: Callable[..., Path], tmp_path: Path
):
    paths = [make(name) for name in ("a/meeting.wav", "b/meeting.wav", "call.wav")]
    lines = [json.dumps({"audio_filepath": str(path)}) for path in [*paths, paths[-1]]]
    (tmp_path / "calls.jsonl").write_text("\n".join(lines))
    outcome = cli("diarize", tmp_path / "calls.jsonl", "--model", model, "-o", tmp_path / "out")
    assert outcome.code == 1
    assert sum("are both named 'meeting'" in line for line in outcome.errors) == 2
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["call.rttm"]  # a line that is there twice is one


def test_names_that_differ_only_in_white_space_are_one_name_in_rttm(cli: Cli, model: Path, make: Callable[..., Path]):
    outcome = cli("diarize", make("a b.wav"), make("a_b.wav"), "--model", model)
    assert (outcome.code, outcome.out, len(outcome.errors)) == (1, "", 2)


@pytest.mark.parametrize("damage", ["cut", "noise", "absent"])
def test_corrupt_weights(cli: Cli, model: Path, wav: Path, tmp_path: Path, damage: str):
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "config.json").write_bytes((model / "config.json").read_bytes())
    content = (model / "model.safetensors").read_bytes()
    if damage == "cut":
        (broken / "model.safetensors").write_bytes(content[: len(content) // 2])
    if damage == "noise":
        (broken / "model.safetensors").write_bytes(np.random.default_rng(0).bytes(len(content)))
    outcome = cli("diarize", wav, "--model", broken)
    assert (outcome.code, outcome.out) == (1, "")
    assert len(outcome.errors) == 1
    assert "model.safetensors" in outcome.errors[0]


def test_a_model_that_is_not_there(cli: Cli, wav: Path, tmp_path: Path):
    outcome = cli("diarize", wav, "--model", tmp_path / "absent")
    assert outcome.code == 1
    assert str(tmp_path / "absent") in outcome.errors[0]


@pytest.mark.parametrize("device", ["cuda:99", "mps:99"])
def test_a_device_that_is_not_here(cli: Cli, model: Path, wav: Path, device: str):
    outcome = cli("diarize", wav, "--model", model, "--device", device)
    assert (outcome.code, outcome.out) == (1, "")
    assert len(outcome.errors) == 1
    assert repr(device) in outcome.errors[0]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--num-speakers", 5], "at most 4 speakers"),
        (["--num-speakers", 0], "1 or more"),
        (["--num-speakers", 2, "--max-speakers", 3], "not both"),
        (["--min-speakers", 3, "--max-speakers", 2], "above"),
        (["--onset", 1.5], "between 0 and 1"),
        (["--clustering", 3], "between 0 and 2"),
        (["--postprocess", "v3"], "no post-processing 'v3'; known: none, v1-callhome"),
        (["--min-on", -1], "min_on_s"),
        (["--min-off", 1e17], "min_off_s must be between 0 and 1e+09 seconds"),
        (["--preset", "psychic"], "known: 30s"),
        (["--device", "banana"], "there is no device 'banana'; choose auto, cpu, cuda or mps"),
        (["--device", "meta"], "choose auto, cpu, cuda or mps"),
        (["--channel", 0], "the channel must be a number, 1 or more, or each, got '0'"),
        (["--channel", "left"], "the channel must be a number, 1 or more, or each, got 'left'"),
        (["-o", ""], "the value after '-o' is empty: is a shell variable unset?"),
        (["--out="], "the value after '--out=' is empty"),
        (["-o", "-"], "-o takes a file or a folder, not -"),
        (["-f", "ctm"], "there is no format 'ctm'; choose from rttm, json, txt, html, seglst, stm, "),
        (["-f", "rttm,json"], "-o"),
        (["--skip-existing"], "-o"),
        (["--shard", "0/2"], "--shard must be I/N with I from 1 to N, such as 1/4, got '0/2'"),
        (["--shard", "3/2"], "got '3/2'"),
        (["--shard", "2"], "got '2'"),
        (["--uri", "../x"], "the id '../x' is used as a file name"),
        (["--uri", ""], "the value after '--uri' is empty"),
        (["--uri", " "], "the name of a recording must not be blank"),
        (["--uri", ".."], "the id '..' is used as a file name, so it must not be only dots"),
        (["--overwrite"], "replaces results in a folder: give one with -o"),
        (["-o", "out", "--skip-existing", "--overwrite"], "not both"),
        (["--no-such-option"], "--no-such-option"),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, list) else "",
)
def test_wrong_options_are_usage_errors(
    cli: Cli, model: Path, wav: Path, monkeypatch: pytest.MonkeyPatch, options: list, words: str
):
    monkeypatch.chdir(wav.parent)
    outcome = cli("diarize", wav, "--model", model, *options)
    assert (outcome.code, outcome.out) == (USAGE, "")
    assert words in " ".join(outcome.err.split())


@pytest.mark.parametrize("command", ["stream", "tune", "train", "manifest voices"])
@pytest.mark.parametrize("option", [["-o", "-"], ["-o-"], ["--out", "-"], ["--out=-"]])
def test_no_file_is_called_as_stdout_is(cli: Cli, wav: Path, monkeypatch: pytest.MonkeyPatch, command: str, option):
    monkeypatch.chdir(wav.parent)
    outcome = cli(*command.split(), wav, *option)
    assert outcome.code == USAGE
    assert "-o takes a file or a folder, not -" in " ".join(outcome.err.split())
    assert [path.name for path in wav.parent.iterdir()] == [wav.name]


def test_a_good_file_after_bad_ones_is_done_all_the_same(cli: Cli, model: Path, wav: Path, tmp_path: Path):
    (tmp_path / "empty.wav").touch()
    outcome = cli("diarize", tmp_path / "absent.wav", tmp_path / "empty.wav", wav, "--model", model)
    assert outcome.code == 1
    assert len(outcome.errors) == 2
    assert outcome.out.count("SPEAKER meeting ") == 2
    assert outcome.err.splitlines()[-1] == "1 recording diarized, 2 failed: absent, empty"


def too_much() -> None:
    torch.empty(2**62, dtype=torch.uint8)


def too_much_of_a_device() -> None:
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 30.00 GiB.")


def too_much_of_numpy() -> None:
    np.empty(2**62, dtype=np.uint8)


def too_much_of_a_library() -> None:
    raise RuntimeError("std::bad_alloc")


@pytest.mark.parametrize("allocate", [too_much, too_much_of_a_device, too_much_of_numpy, too_much_of_a_library])
def test_a_recording_too_long_for_the_memory_costs_no_other(
    cli: Cli,
    model: Path,
    wav: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    allocate: Callable[[], None],
):
    long = tmp_path / "long.wav"
    long.write_bytes(wav.read_bytes())
    diarize = Diarizer.__call__

    def short_of_memory(self: Diarizer, audio: Path, **options: Any) -> Diarization:
        if audio == long:
            allocate()
        return diarize(self, audio, **options)

    monkeypatch.setattr(Diarizer, "__call__", short_of_memory)
    outcome = cli("diarize", long, wav, "--model", model, "-o", tmp_path / "out")
    assert outcome.code == 1
    assert outcome.errors[0].startswith("long: out of memory: free some, process less at once")
    assert "report" not in outcome.err
    assert outcome.err.splitlines()[-1] == "1 recording diarized, 1 failed: long"
    assert (tmp_path / "out" / f"{wav.stem}.rttm").exists()


def test_an_error_that_nobody_foresaw_is_a_sentence_too(cli: Cli, wav: Path, monkeypatch: pytest.MonkeyPatch):
    def broken(*_: object) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr("sortformer.diarizer.Diarizer.load", broken)
    outcome = cli("diarize", wav)
    assert outcome.code == 1
    assert "ZeroDivisionError: division by zero" in outcome.errors[0]
    assert "SORTFORMER_TRACEBACK=1" in outcome.errors[0]
