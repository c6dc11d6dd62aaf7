"""``diarize --words``: speakers for the words of a transcript from another program."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from sortformer.annotation import Diarization, Turn
from sortformer.cli.recordings import Recording
from sortformer.cli.results import Results
from sortformer.cli.transcripts import Transcripts
from sortformer.errors import InputError
from tests.cli.conftest import Cli

WORDS = {
    "segments": [{"words": [{"word": " Hello", "start": 0.1, "end": 0.5}, {"word": " Ada.", "start": 0.6, "end": 1}]}]
}


def transcript(path: Path) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(WORDS))
    return path


def test_subtitles_name_who_speaks(cli: Cli, model: Path, wav: Path, tmp_path: Path):
    words = transcript(tmp_path / "said.json")
    outcome = cli("diarize", wav, "--model", model, "--words", words, "-f", "srt")
    assert outcome.out == "1\n00:00:00,100 --> 00:00:01,000\nspeaker_0: Hello Ada.\n"
    outcome = cli("diarize", wav, "--model", model, "--words", words, "-f", "vtt,rttm", "-o", tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["meeting.rttm", "meeting.vtt"]
    assert "<v speaker_0>Hello Ada." in (tmp_path / "out" / "meeting.vtt").read_text()


def test_characters_that_whisper_cpp_tears_between_two_tokens_are_whole(
    cli: Cli, model: Path, wav: Path, tmp_path: Path
):
    torn = [b" \xe4\xbc", b"\x9a\xe8\xad\xb0", b"\xc3"]  # the last of them has its other half nowhere
    tokens = b",".join(b'{"text": "%s", "offsets": {"from": 100, "to": 900}}' % part for part in torn)
    words = tmp_path / "said.json"
    words.write_bytes(b'{"transcription": [{"text": " x", "tokens": [%s]}]}' % tokens)
    outcome = cli("diarize", wav, "--model", model, "--words", words, "-f", "srt")
    assert outcome.out.endswith("speaker_0: \u4f1a\u8b70?\n")
    words.write_bytes(b'[{"start": 0, "end": 1, "text": "\xe4\xbc"}]')  # another recogniser tears none
    assert "is not a text file in UTF-8" in cli("diarize", wav, "--model", model, "--words", words, "-f", "srt").err


def test_segments_have_words_where_there_are_any(cli: Cli, model: Path, wav: Path, tmp_path: Path):
    options = ("diarize", wav, "--model", model, "-f", "seglst")
    assert {each["words"] for each in json.loads(cli(*options).out)} == {""}
    cli(*options, "--words", transcript(tmp_path / "said.json"), "-f", "json,seglst", "-o", tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["meeting.json", "meeting.seglst.json"]
    assert json.loads((tmp_path / "out" / "meeting.seglst.json").read_text()) == [
        {"session_id": "meeting", "speaker": "speaker_0", "start_time": 0.1, "end_time": 1, "words": "Hello Ada."}
    ]


def test_json_and_text_have_the_words_where_they_are_given(cli: Cli, model: Path, wav: Path, tmp_path: Path):
    options = ("diarize", wav, "--model", model)
    words = ("--words", transcript(tmp_path / "said.json"))
    assert "words" not in json.loads(cli(*options, "-f", "json").out)
    assert json.loads(cli(*options, *words, "-f", "json").out)["words"] == [
        {"start": 0.1, "end": 0.5, "text": "Hello", "speaker": "speaker_0"},
        {"start": 0.6, "end": 1.0, "text": "Ada.", "speaker": "speaker_0"},
    ]
    lines = cli(*options, *words, "-f", "txt").out.splitlines()
    assert lines[-2:] == ["", "0:00:00.10 - 0:00:01.00  speaker_0: Hello Ada."]
    assert cli(*options, *words, "-f", "json,txt", "-o", tmp_path / "out").code == 0
    assert Diarization.from_json(tmp_path / "out" / "meeting.json").speakers == ("speaker_0", "speaker_1")


def test_warnings_about_words_are_in_the_json(cli: Cli, model: Path, wav: Path, tmp_path: Path):
    (tmp_path / "late.json").write_text('[{"start": 90, "end": 91, "text": "Ada"}]')
    outcome = cli("diarize", wav, "--model", model, "--words", tmp_path / "late.json", "-f", "json")
    (sentence,) = json.loads(outcome.out)["warnings"]
    assert "1 of 1 words begin after the end of meeting" in sentence
    assert outcome.err == f"warning: {sentence}\n"


@pytest.mark.parametrize("option", [(), ("--overwrite",), ("--skip-existing",)])
def test_a_transcript_is_no_result(cli: Cli, model: Path, wav: Path, tmp_path: Path, option: tuple[str, ...]):
    words = transcript(tmp_path / "said" / "meeting.json")
    for given in (words, words.parent):
        outcome = cli("diarize", wav, "--model", model, "--words", given, "-o", words.parent, "-f", "srt,json", *option)
        assert outcome.code == 1
        assert outcome.errors == [f"{words} is the transcript, not a result: give another folder with -o"]
    assert json.loads(words.read_text()) == WORDS
    assert [path.name for path in words.parent.iterdir()] == ["meeting.json"]


def test_json_of_another_program_is_not_what_a_run_has_left(cli: Cli, model: Path, wav: Path, tmp_path: Path):
    path = transcript(tmp_path / "out" / "meeting.json")
    options = ("diarize", wav, "--model", model, "-o", path.parent, "--skip-existing", "-f", "json")
    for also in ("", ",rttm"):
        outcome = cli(*options[:-1], f"json{also}")
        assert outcome.errors == [f"{path} is another program's, not a result: give another folder with -o"]
    path.unlink()
    assert cli(*options).err == "1 recording diarized\n"
    assert cli(*options).err == "0 recordings diarized, 1 skipped\n"


def test_what_is_there_needs_no_transcript_and_no_regions_again(cli: Cli, wav: Path, tmp_path: Path):
    (tmp_path / "said").mkdir()
    (tmp_path / "other.uem").write_text("other 1 0 1\n")
    (tmp_path / "meeting.srt").touch()
    options = ("--words", tmp_path / "said", "--uem", tmp_path / "other.uem", "-f", "srt", "--skip-existing")
    outcome = cli("diarize", wav, "-o", tmp_path, *options)
    assert (outcome.code, outcome.err) == (0, "0 recordings diarized, 1 skipped\n")


def test_each_recording_has_its_words_in_a_folder(
    cli: Cli, model: Path, wav: Path, make: Callable[..., Path], tmp_path: Path
):
    transcript(tmp_path / "said" / "meeting.json")
    options = ("--model", model, "--words", tmp_path / "said", "-f", "srt", "-o", tmp_path / "out")
    outcome = cli("diarize", wav, make("other.wav"), *options)
    assert outcome.code == 1
    kinds = "other.json or other.ctm or other.srt or other.vtt"
    assert outcome.errors == [f"{tmp_path / 'said'} has no {kinds}: --words needs a transcript of each recording"]
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["meeting.srt"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("said.ctm", "other 1 0.1 0.4 Hello\nother 1 0.6 0.4 Ada.\n"),
        ("said.srt", "1\n00:00:00,100 --> 00:00:01,000\nHello Ada.\n"),
        ("said.VTT", "WEBVTT\n\n00:00.100 --> 00:01.000\n<v Bob>Hello Ada.\n"),
    ],
)
def test_words_come_from_other_formats_too(cli: Cli, model: Path, wav: Path, tmp_path: Path, name: str, content: str):
    (tmp_path / name).write_text(content)
    outcome = cli("diarize", wav, "--model", model, "--words", tmp_path / name, "-f", "srt")
    assert (outcome.err, outcome.out) == ("", "1\n00:00:00,100 --> 00:00:01,000\nspeaker_0: Hello Ada.\n")


def test_a_transcript_is_found_whatever_its_kind_and_case(cli: Cli, model: Path, wav: Path, tmp_path: Path):
    said = tmp_path / "said"
    said.mkdir()
    (said / "meeting.SRT").write_text("1\n00:00:00,100 --> 00:00:01,000\nHello\n")
    options = ("diarize", wav, "--model", model, "--words", said, "-f", "srt")
    assert "Hello" in cli(*options).out
    (said / "meeting.wav.json").write_text('[{"start": 0.1, "end": 1, "text": "Ada"}]')  # as whisper.cpp names it
    assert "Hello" in cli(*options).out
    (said / "meeting.SRT").unlink()
    assert "Ada" in cli(*options).out
    transcript(said / "meeting.json")
    assert "Hello Ada." in cli(*options).out
    outcome = cli("diarize", wav, "--words", tmp_path / "absent.json", "-f", "srt")
    assert outcome.errors == [
        f"meeting: {tmp_path / 'absent.json'} does not exist: --words needs a transcript of each recording"
    ]


@pytest.mark.parametrize("name", ["Zo\u00eb.json", "Zo\u00eb.de.json"])
def test_a_transcript_is_found_however_letters_with_diacritics_are_written(
    cli: Cli, model: Path, make: Callable[..., Path], tmp_path: Path, name: str
):
    said = tmp_path / "said"
    said.mkdir()
    transcript(said / name)
    wav = make("Zoe\u0308.wav")  # decomposed, as macOS may write it
    assert "Hello Ada." in cli("diarize", wav, "--model", model, "--words", said, "-f", "srt").out


def test_a_transcript_may_name_its_language(cli: Cli, model: Path, wav: Path, tmp_path: Path):
    said = tmp_path / "said"
    said.mkdir()
    options = ("diarize", wav, "--model", model, "--words", said, "-f", "srt")
    (said / "meeting.notes.vtt").write_text("WEBVTT\n\n00:00.100 --> 00:01.000\nNotes\n")
    assert "meeting.json" in cli(*options).errors[0]
    (said / "meeting.en-US.vtt").write_text("WEBVTT\n\n00:00.100 --> 00:01.000\nHello\n")  # as yt-dlp names it
    assert "Hello" in cli(*options).out
    (said / "meeting.de.srt").write_text("1\n00:00:00,100 --> 00:00:01,000\nHallo\n")
    assert cli(*options).errors == [f"{said} has meeting.de.srt, meeting.en-US.vtt: keep only one for meeting"]
    transcript(said / "meeting.json")
    assert "Hello Ada." in cli(*options).out


def test_a_ctm_may_be_of_all_recordings(cli: Cli, model: Path, wav: Path, make: Callable[..., Path], tmp_path: Path):
    (tmp_path / "all.ctm").write_text("meeting 1 0.1 0.4 Hello\nother 1 0.6 0.4 Ada.\n")
    options = ("--model", model, "--words", tmp_path / "all.ctm", "-f", "vtt", "-o", tmp_path / "out")
    outcome = cli("diarize", wav, make("other.wav"), make("third.wav"), *options)
    assert outcome.code == 1
    hint = "rename it there, or leave the recording out"
    assert outcome.errors == [f"{tmp_path / 'all.ctm'} has no words of 'third', only of ['meeting', 'other']: {hint}"]
    assert outcome.err.index("third") < outcome.err.index("2 recordings diarized")
    assert "Hello" in (tmp_path / "out" / "meeting.vtt").read_text()
    assert "Ada." in (tmp_path / "out" / "other.vtt").read_text()
    # A file that names one recording is not used for another.
    (tmp_path / "all.ctm").write_text("meeting 1 0.1 0.4 Hello\n")
    outcome = cli("diarize", wav, make("other.wav"), *options, "--overwrite")
    assert outcome.errors == [f"{tmp_path / 'all.ctm'} has no words of 'other', only of ['meeting']: {hint}"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("Hello Ada.", "said.json: not JSON"),
        ("5", "said.json: not a transcript, but 5"),
        ('{"text": "Hello Ada."}', "said.json: a transcript needs segments, chunks or words with times"),
        ('[{"start": 5, "end": 3, "text": "Hello"}]', "said.json: the word 'Hello' needs start <= end in seconds"),
    ],
)
def test_what_is_no_transcript_is_said(cli: Cli, wav: Path, tmp_path: Path, content: str, message: str):
    (tmp_path / "said.json").write_text(content)
    # Reported before any work: the model is not even looked up.
    outcome = cli("diarize", wav, "--model", tmp_path / "absent", "--words", tmp_path / "said.json", "-f", "srt")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.count("said.json") == len(outcome.errors) == 1
    assert message in outcome.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("-f", "srt"), "-f srt needs words: give a transcript with --words"),
        (
            ("--words", "said.json"),
            "cannot store the words of --words: choose one of json, txt, html, seglst, stm, eaf, csv, srt, vtt,",
        ),
    ],
)
def test_words_and_subtitles_go_together(cli: Cli, wav: Path, options: tuple[str, ...], message: str):
    outcome = cli("diarize", wav, *options)
    assert outcome.code == 2
    assert message in " ".join(outcome.err.replace("│", " ").split())


def test_one_transcript_is_of_one_recording(cli: Cli, wav: Path, make: Callable[..., Path], tmp_path: Path):
    words = transcript(tmp_path / "said.json")
    outcome = cli("diarize", wav, make("other.wav"), "--words", words, "-f", "srt", "-o", tmp_path / "out")
    assert (outcome.code, outcome.errors) == (
        1,
        [f"{words} is the transcript of one recording: for several, give --words a folder or a CTM"],
    )
    outcome = cli("diarize", wav, make("third.wav"), "--words", tmp_path, "-f", "srt")
    assert (outcome.code, outcome.errors) == (
        1,
        ["only one recording can be written to stdout as srt: give a folder with -o"],
    )


def test_a_transcript_is_joined_once_for_all_formats(cli: Cli, model: Path, wav: Path, tmp_path: Path):
    said = tmp_path / "said.json"
    said.write_text(json.dumps([{"word": "late", "start": 90, "end": 91}]))
    options = ("--model", model, "--words", said, "-o", tmp_path / "out")
    outcome = cli("diarize", wav, *options, "-f", "srt,vtt")
    assert outcome.err.count("words begin after the end") == 1


def test_words_are_those_of_the_regions_and_of_the_window(cli: Cli, model: Path, wav: Path, tmp_path: Path):
    words, uem = transcript(tmp_path / "said.json"), tmp_path / "parts.uem"
    uem.write_text("meeting 1 0.55 1.9\n")
    options = ("--model", model, "--words", words, "-f", "srt")
    outcome = cli("diarize", wav, *options, "--uem", uem)
    assert (outcome.err, outcome.out) == ("", "1\n00:00:00,600 --> 00:00:01,000\nspeaker_0: Ada.\n")
    window = tmp_path / "windows.json"
    window.write_text(json.dumps({"audio_filepath": str(wav), "offset": 0.2, "duration": 0.5, "uniq_id": "meeting"}))
    outcome = cli("diarize", window, *options)
    hello = "1\n00:00:00,100 --> 00:00:00,500\nspeaker_0: Hello\n"
    assert (outcome.err, outcome.out) == ("", hello)
    uem.write_text("meeting 1 0 1.9\n")
    outcome = cli("diarize", window, *options, "--uem", uem)
    assert (outcome.err, outcome.out) == ("", hello)


def test_words_in_the_regions_are_of_who_speaks_also_before_these(tmp_path: Path):
    said = tmp_path / "said.json"
    said.write_text(json.dumps([{"word": "yes", "start": 0.6, "end": 1.0}]))
    results = Results(tmp_path, ("srt",), transcripts=said, regions={"talk": ((0.75, 1.9),)})
    recording = Diarization((Turn(0, 0.85, "ada"), Turn(0.85, 2, "bob")), 2, "talk")
    results.write(Recording(Path("talk.wav"), "talk"), recording, ("srt",))
    assert "ada: yes" in (tmp_path / "talk.srt").read_text()


def test_of_a_window_only_its_words_are_in_the_regions(tmp_path: Path):
    said = tmp_path / "said.json"
    said.write_text(json.dumps([{"word": text, "start": at, "end": at + 0.5} for at, text in enumerate("abcd")]))
    results = Results(tmp_path, ("srt",), transcripts=said, regions={"late": ((2.0, 9.0),)})
    recording = Diarization((Turn(1, 3, "ada"),), 3, "late")
    results.write(Recording(Path("talk.wav"), "late", 1.0, 2.0), recording, ("srt",))
    assert (tmp_path / "late.srt").read_text() == "1\n00:00:02,000 --> 00:00:02,500\nada: c\n"


def test_in_a_folder_the_transcript_of_a_file_is_not_that_of_its_windows(wav: Path, tmp_path: Path):
    (tmp_path / "said").mkdir()
    transcript(tmp_path / "said" / "meeting.wav.json")
    said = Transcripts(tmp_path / "said", several=True)
    said.check(Recording(wav, "call"))
    with pytest.raises(InputError, match=r"has no call\.json or"):
        said.check(Recording(wav, "call", 0.5, 1.0))


def test_in_a_folder_a_ctm_about_one_recording_is_about_that_of_its_name(
    cli: Cli, model: Path, wav: Path, make: Callable[..., Path], tmp_path: Path
):
    (tmp_path / "said").mkdir()
    for name in ("meeting", "other"):
        (tmp_path / "said" / f"{name}.ctm").write_text(f"call 1 0.1 0.4 {name}\n")
    options = ("--model", model, "--words", tmp_path / "said", "-f", "srt", "-o", tmp_path / "out")
    assert cli("diarize", wav, make("other.wav"), *options).code == 0
    assert ": other" in (tmp_path / "out" / "other.srt").read_text()
