"""A recording over HTTP gives the same result as a Python call, and uploads leave no files behind."""

import json
import re
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from sortformer.annotation import Diarization
from sortformer.config.postprocess import PostprocessConfig
from sortformer.diarizer import Diarizer
from sortformer.formats.kinds import FORMATS
from sortformer.serve import application
from sortformer.serve.form import Options
from sortformer.warned import warn
from sortformer.words import assign_speakers
from tests.audio.makers import chirp, write
from tests.marks import MAXIMUM_MAY_BE_REACHED
from tests.processes import eventually
from tests.serve.running import Running, running
from tests.streaming.tiny import noise, tiny_model

pytestmark = MAXIMUM_MAY_BE_REACHED

DIARIZER = Diarizer(tiny_model(gain=5.0), PostprocessConfig(), "tiny")
MOST_BYTES = 2 << 20


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with running(application(DIARIZER, max_streams=1, max_upload_mb=MOST_BYTES >> 20)) as found:
        yield found


@pytest.fixture
def wav(tmp_path: Path) -> Path:
    return write(tmp_path / "my talk.wav", noise(60_000), 16_000)


@pytest.mark.parametrize("options", [{}, {"preset": "1s", "channel": 1}, {"max_speakers": 2, "exclusive": True}])
def test_an_upload_is_the_call(server: Running, wav: Path, options: dict[str, Any]):
    result = DIARIZER(wav, **options)
    assert result.turns
    for kind, text in (("rttm", result.to_rttm()), ("txt", result.to_text())):
        answer = server.post(wav.name, wav.read_bytes(), response_format=kind, **options)
        assert (answer.status_code, answer.text) == (200, text)
    answer = server.post(wav.name, wav.read_bytes(), **options)
    assert answer.json() == json.loads(result.to_json())
    told = answer.json()["warnings"]
    assert (answer.json()["uri"], json.loads(answer.headers.get("X-Warnings", "[]"))) == ("my talk", told)
    assert bool(told) == ("max_speakers" not in options)


SAID = [{"start": 0.5, "end": 1.0, "text": "Hello"}, {"start": 1.0, "end": 1.5, "text": "Ad\u00e9."}]
CTM = b"my_talk 1 0.5 0.5 Hello\nmy_talk 1 1.0 0.5 Ad\xc3\xa9.\nother 1 0 1 no\n"
TORN = (  # a character between two tokens, as whisper.cpp writes it
    b'{"transcription": [{"text": "Hello", "offsets": {"from": 500, "to": 1000}}, {"tokens": ['
    b'{"text": "Ad\xc3", "offsets": {"from": 1000}}, {"text": "\xa9.", "offsets": {"to": 1500}}]}]}'
)


@pytest.mark.parametrize("kind", ["srt", "vtt", "txt", "seglst", "json"])
@pytest.mark.parametrize(
    "words",
    [("said.json", json.dumps(SAID).encode()), ("all.ctm", CTM), ("torn.json", TORN)],
    ids=["json", "ctm", "torn"],
)
def test_words_that_are_sent_too_are_given_to_who_says_them(server: Running, wav: Path, kind: str, words: Any):
    result = DIARIZER(wav)
    answer = server.post(wav.name, wav.read_bytes(), response_format=kind, words=words)
    expected = FORMATS[kind].text(result, assign_speakers(SAID, result))
    assert answer.status_code == 200
    assert "Hello" in answer.text
    if kind == "json":
        assert answer.json() == json.loads(expected)
    else:
        assert answer.text == expected
    assert answer.headers["content-type"].startswith(FORMATS[kind].media)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"response_format": "srt"}, "srt needs words: send a transcript, too (form field 'words')"),
        ({"response_format": "rttm", "words": ("a.json", b"[]")}, "rttm cannot store words: choose one of json, "),
        ({"words": ("a.json", b"{")}, "a.json: not JSON"),
        ({"words": ("a.json", b'{"text": "Hello"}')}, "a.json: a transcript needs segments, chunks or words"),
        ({"words": ("a.json", b'[{"text": "Hello"}]')}, "a.json: a word must be (start, end, text)"),
        ({"words": ("a.srt", b"\xff\xff")}, "a.srt is not a text file in UTF-8"),
        ({"words": ("a.ctm", b"x 1 0 1 yes\ny 1 0 1 no")}, "a.ctm has no words of 'my_talk', only of ['x', 'y']"),
    ],
)
def test_what_are_no_words_is_one_sentence(server: Running, wav: Path, options: dict[str, Any], sentence: str):
    answer = server.post(wav.name, b"no sound", **options)  # refused before the recording is read
    assert answer.status_code == 400
    assert sentence in answer.json()["error"]


def test_words_may_be_sent_as_text_and_be_many(server: Running, wav: Path):
    many = [*SAID, *({"start": 1.5, "end": 1.5, "text": "and so on"} for _ in range(25_000))]
    answer = httpx.post(
        f"http://{server.address}/v1/diarize",
        files={"file": (wav.name, wav.read_bytes())},
        data={"words": json.dumps(many), "response_format": "txt"},
        timeout=120,
    )
    assert (answer.status_code, "Hello Ad\u00e9." in answer.text) == (200, True)


def test_the_type_of_a_form_may_be_written_in_capitals(server: Running, wav: Path):
    sent = httpx.Request("POST", f"http://{server.address}/v1/diarize", files={"file": (wav.name, wav.read_bytes())})
    kind = sent.headers["Content-Type"].replace("multipart/form-data", "Multipart/Form-Data")
    answer = httpx.post(sent.url, content=sent.read(), headers={"Content-Type": kind}, timeout=60)
    assert answer.status_code == 200


def test_known_voices_bear_their_names(server: Running, wav: Path, tmp_path: Path):
    clip = write(tmp_path / "clip.flac", noise(30_000, seed=7), 16_000)
    people = {"Dr. Ada": clip, "Zoë": write(tmp_path / "other.wav", noise(32_000, seed=8), 16_000)}
    result = DIARIZER(wav, preset="1s", enroll=people)
    sent = [("Dr. Ada", clip.read_bytes()), ("Zoë.WAV", people["Zoë"].read_bytes())]
    answer = server.post(wav.name, wav.read_bytes(), preset="1s", enroll=sent)
    assert answer.json() == json.loads(result.to_json())
    assert set(people) & set(result.speakers)
    long = write(tmp_path / "long.wav", noise(61 * 8_000), 8_000)
    for clips, sentence in (
        ([("Ada.wav", b"no sound")], "the clip of 'Ada': Ada.wav "),
        ([("speaker_1.wav", b"")], "the name 'speaker_1' is a label of the toolkit"),
        (2 * [("Ada.wav", b"")], "the name 'Ada' is given twice"),
        ([("Ada.wav", long.read_bytes())], "the clip of 'Ada' is longer than 60 s"),
    ):
        refused = server.post(wav.name, wav.read_bytes(), enroll=clips)
        assert (refused.status_code, sentence in refused.json()["error"]) == (400, True)
    url = f"http://{server.address}/v1/diarize"
    refused = httpx.post(url, files={"file": (wav.name, b"")}, data={"enroll": "Ada"}, timeout=60)
    assert (refused.status_code, "curl -F enroll=@Ada.wav" in refused.json()["error"]) == (400, True)


def test_every_format_is_offered(server: Running):
    schema = httpx.get(f"http://{server.address}/openapi.json").json()
    form = schema["paths"]["/v1/diarize"]["post"]["requestBody"]["content"]["multipart/form-data"]["schema"]
    assert set(form["properties"]["response_format"]["enum"]) == set(FORMATS)


def test_any_format_will_do(server: Running, tmp_path: Path):
    flac = write(tmp_path / "talk.flac", chirp(2, 44_100, 2), 44_100)
    assert server.post(flac.name, flac.read_bytes(), response_format="rttm").text == DIARIZER(flac).to_rttm()


@pytest.mark.filterwarnings("error")  # they are the client's
def test_silence_has_no_turns(server: Running, tmp_path: Path):
    quiet = write(tmp_path / "quiet.wav", 0 * chirp(2, 16_000), 16_000)
    answer = server.post("quiet.wav", quiet.read_bytes())
    assert answer.json()["turns"] == []
    (sentence,) = answer.json()["warnings"]
    assert "no speech found in quiet.wav" in sentence


def test_warnings_are_told_to_who_sent_the_recording_and_to_nobody_else(server: Running, wav: Path, monkeypatch):
    heard = threading.Event()

    def hear(_: Diarizer, audio: Any, **__: Any) -> Diarization:
        warn(f"{audio.name} is 日本", stacklevel=2)
        warn(f"{audio.name} is 日本", stacklevel=1)  # as of another channel
        assert heard.wait(60)
        return Diarization((), 1.0, "talk")

    def answered() -> httpx.Response:
        with ThreadPoolExecutor() as other:
            answer = other.submit(server.post, wav.name, wav.read_bytes(), response_format="rttm")
            eventually(lambda: server.state()["recordings"] == 1)
            warn("about something else", stacklevel=2)
            heard.set()
        return answer.result()

    monkeypatch.setattr(Diarizer, "__call__", hear)
    with pytest.warns(UserWarning, match="about something else"):
        answer = answered()
    assert json.loads(answer.headers["X-Warnings"]) == ["my talk.wav is 日本"]


@pytest.mark.parametrize("name", sorted(Options.model_fields))
def test_a_file_in_place_of_an_option_is_one_sentence(server: Running, wav: Path, name: str):
    files = {"file": (wav.name, wav.read_bytes()), name: ("no.txt", b"2")}
    answer = httpx.post(f"http://{server.address}/v1/diarize", files=files, timeout=60)
    assert answer.status_code == 400
    assert re.fullmatch(rf"{name} cannot be .*: it must be .*", answer.json()["error"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"num_speaker": 2}, "no option 'num_speaker'; known: file, words, enroll, num_speakers, "),
        ({"num_speakers": "two"}, "num_speakers cannot be 'two': it must be a whole number"),
        ({"num_speakers": 0}, "num_speakers must be a whole number, 1 or more"),
        ({"num_speakers": 2, "max_speakers": 3}, "num_speakers"),
        ({"response_format": "xml"}, "response_format cannot be 'xml'"),
        ({"preset": "2s"}, "no streaming preset '2s'; known: 30s, 10s, 1s, 0.3s"),
        ({"channel": 3}, "my talk.wav has 1 channel"),
        ({"channel": "left"}, "channel cannot be 'left': it must be a whole number or 'each'"),
    ],
)
def test_wrong_options_are_one_sentence(server: Running, wav: Path, options: dict[str, Any], words: str):
    answer = server.post(wav.name, wav.read_bytes(), **options)
    assert answer.status_code == 400
    assert list(answer.json()) == ["error"]
    assert words in answer.json()["error"]


def test_of_wrong_options_the_first_is_told_alone(server: Running, wav: Path):
    answer = server.post(wav.name, b"", num_speakers="two", exclusive="perhaps")
    assert answer.json()["error"] == "num_speakers cannot be 'two': it must be a whole number"


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"", "talk.wav is empty"), (b"no sound " * 500_000, "the limit of 2 MiB"), (b"no sound " * 200_000, "talk.wav")],
)
def test_what_is_no_sound_is_one_sentence_about_the_name_that_was_given(server: Running, content: bytes, words: str):
    answer = server.post("talk.wav", content)
    assert answer.status_code == (413 if "limit" in words else 400)
    assert words in answer.json()["error"]
    assert tempfile.gettempdir() not in answer.text


def test_an_upload_that_does_not_say_its_length_is_counted(server: Running):
    def body() -> Iterator[bytes]:
        yield b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n'
        for _ in range(100):
            yield bytes(1 << 16)

    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    answer = httpx.post(f"http://{server.address}/v1/diarize", content=body(), headers=headers, timeout=60)
    assert (answer.status_code, list(answer.json())) == (413, ["error"])


AS_CURL = {"Content-Type": "application/x-www-form-urlencoded"}  # sends --data-binary


@pytest.mark.parametrize(
    "sent",
    [{"data": {"file": "talk"}}, {"json": {}}, {"content": b"x"}, {}, {"content": b"a&" * 99, "headers": AS_CURL}],
)
def test_a_request_without_a_file_is_told_how(server: Running, sent: dict[str, Any]):
    answer = httpx.post(f"http://{server.address}/v1/diarize", timeout=60, **sent)
    assert answer.status_code == 400
    assert "curl -F file=@talk.wav" in answer.json()["error"]


@pytest.mark.parametrize(
    ("form", "query", "words"),
    [
        ({"num_speakers": ["1", "2"]}, "", "'num_speakers' is given more than once"),
        ({"file": "talk"}, "", "'file' is given more than once"),
        ({}, "?num_speakers=2", "must be form fields"),
    ],
)
def test_no_option_is_passed_over(server: Running, wav: Path, form: dict[str, Any], query: str, words: str):
    url = f"http://{server.address}/v1/diarize{query}"
    answer = httpx.post(url, files={"file": (wav.name, wav.read_bytes())}, data=form, timeout=60)
    assert answer.status_code == 400
    assert words in answer.json()["error"]


def test_the_server_describes_itself(server: Running):
    assert server.state() == {
        "status": "ok",
        "version": "0.1.0",
        "model": "tiny",
        "presets": list(DIARIZER.presets),
        "streams": 0,
        "recordings": 0,
    }
    described = application(DIARIZER, max_streams=1, max_upload_mb=1).openapi()
    assert "null" not in json.dumps(described)  # a form cannot express it either
    assert set(described["components"]["schemas"]["Health"]["properties"]) == set(server.state())
    post = described["paths"]["/v1/diarize"]["post"]
    body = post["requestBody"]["content"]["multipart/form-data"]["schema"]
    assert {"file", "words", "enroll", "num_speakers", "response_format"} < set(body["properties"])
    assert set(post["responses"]["200"]["content"]) == {each.media for each in FORMATS.values()}
    assert set(post["responses"]) == {"200", "400", "403", "408", "413", "500", "503"}
