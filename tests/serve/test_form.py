"""A form may hold all that is offered, and no more, whatever its parts are called."""

import socket
from collections.abc import Iterator

import httpx
import pytest

from sortformer.config.postprocess import PostprocessConfig
from sortformer.diarizer import Diarizer
from sortformer.serve import application
from sortformer.serve.form import MOST_FILES, REQUEST_BODY
from tests.full_disk import no_more_than
from tests.serve.running import Running, running
from tests.streaming.tiny import tiny_model

WORDS = '[{"start": 0, "end": 1, "text": "Hello"}]'


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    diarizer = Diarizer(tiny_model(), PostprocessConfig(), "tiny")
    with running(application(diarizer, max_streams=1, max_upload_mb=2)) as found:
        yield found


def test_as_many_voices_as_are_offered_are_looked_at_and_no_more(server: Running):
    form = REQUEST_BODY["content"]["multipart/form-data"]["schema"]["properties"]
    most = form["enroll"]["maxItems"]
    for count, says in ((most, "the clip of 'person 0'"), (most + 1, f"Maximum number of files is {MOST_FILES}")):
        clips = [(f"person {number}.wav", b"no sound") for number in range(count)]
        answer = server.post(words=("words.json", WORDS.encode()), enroll=clips)
        assert (answer.status_code, says in answer.json()["error"]) == (400, True)


def test_all_options_go_together_and_nobody_sends_more(server: Running):
    options = {"min_speakers": 1, "max_speakers": 2, "exclusive": True, "channel": 1, "preset": "1s"}
    answer = server.post("talk.wav", b"no sound", response_format="txt", **options)
    assert answer.json()["error"].startswith("talk.wav")
    answer = server.post("talk.wav", **{f"option {number}": number for number in range(21)})
    assert (answer.status_code, "Too many fields" in answer.json()["error"]) == (400, True)


@pytest.mark.parametrize(
    ("name", "words", "says"),
    [
        ("", WORDS, "audio is empty"),
        ("talk.wav", "{", "words: not JSON"),
        ("talk.wav", '[{"text": "Hello"}]', "words: "),
    ],
)
def test_what_has_no_name_is_called_by_what_it_is(server: Running, name: str, words: str, says: str):
    parts = ((f'name="file"; filename="{name}"', ""), ('name="words"', words))
    body = "".join(f"--x\r\nContent-Disposition: form-data; {head}\r\n\r\n{content}\r\n" for head, content in parts)
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    answer = httpx.post(f"http://{server.address}/v1/diarize", content=f"{body}--x--\r\n", headers=headers, timeout=60)
    assert (answer.status_code, answer.json()["error"].startswith(says)) == (400, True), answer.text


@pytest.mark.parametrize("end", [0, 1, 20, 100, 200])
def test_a_form_of_which_the_end_is_missing_is_not_answered_without_it(server: Running, end: int):
    parts = ('"file"; filename="talk.wav"\r\n\r\nno sound', '"max_speakers"\r\n\r\n2', '"exclusive"\r\n\r\nyes')
    body = "".join(f"--x\r\nContent-Disposition: form-data; name={part}\r\n" for part in parts) + "--x--"
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    url, whole = f"http://{server.address}/v1/diarize", body[: len(body) - end]
    answer = httpx.post(url, content=whole, headers=headers, timeout=60)
    says = "the end of the form is missing" if end else "talk.wav"
    assert (answer.status_code, answer.json()["error"].startswith(says)) == (400, True), answer.text


def test_a_content_type_that_was_written_by_hand_is_told_from_a_bad_form(server: Running):
    headers = {"Content-Type": "multipart/form-data"}
    answer = httpx.post(f"http://{server.address}/v1/diarize", files={"file": b"x"}, headers=headers, timeout=60)
    assert answer.status_code == 400
    assert "leave that header to the HTTP client" in answer.json()["error"]


@pytest.mark.parametrize("fields", [{}, {"file": "talk.wav"}])
def test_a_form_without_a_recording_is_told_how_to_send_one(server: Running, fields: dict[str, str]):
    answer = httpx.post(f"http://{server.address}/v1/diarize", files={"words": WORDS}, data=fields, timeout=60)
    assert (answer.status_code, "curl -F file=@talk.wav" in answer.json()["error"]) == (400, True)


def test_a_form_in_no_charset_is_one_sentence(server: Running):
    sent = httpx.Request("POST", f"http://{server.address}/v1/diarize", files={"file": b"no sound"})
    headers = {"Content-Type": f"{sent.headers['Content-Type']}; charset=undefined"}
    answer = httpx.post(sent.url, content=sent.read(), headers=headers, timeout=60)
    assert (answer.status_code, "with the charset that it names" in answer.json()["error"]) == (400, True)


def test_what_is_said_to_be_too_large_is_refused_before_it_comes(server: Running):
    head = "POST /v1/diarize HTTP/1.1\r\nHost: here\r\nContent-Type: multipart/form-data; boundary=x\r\n"
    host, port = server.address.split(":")
    with socket.create_connection((host, int(port)), timeout=30) as client:
        client.sendall(f"{head}Content-Length: {(2 << 20) + 1}\r\n\r\n".encode())
        assert b" 413 " in client.recv(1_000)


def test_what_cannot_be_stored_is_to_be_sent_later(server: Running):
    with no_more_than(1 << 10):
        answer = server.post("talk.wav", bytes(3 << 19))
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "10")
    assert answer.json()["error"].startswith("the server cannot store the upload (File too large): ")
    assert server.post("talk.wav", bytes(3 << 19)).status_code == 400
