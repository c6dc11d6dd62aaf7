"""A stream over a WebSocket gives the same result as a session, for any cut and beside any other clients."""

import contextlib
import itertools
import json
import math
import re
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed

from sortformer.audio.signal import resampled
from sortformer.config.clustering import ClusteringConfig
from sortformer.config.postprocess import PostprocessConfig
from sortformer.diarizer import Diarizer
from sortformer.serve import application
from sortformer.streaming import SessionPool
from tests.marks import MAXIMUM_MAY_BE_REACHED
from tests.processes import eventually
from tests.serve.running import END, START, Running, message, news, running, sent
from tests.serve.streamed import DIARIZER, MOST, WAVES, enrolling, expected, refused, vanish
from tests.streaming.tiny import noise, tiny_model

pytestmark = MAXIMUM_MAY_BE_REACHED


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with running(application(DIARIZER, max_streams=MOST, max_upload_mb=1)) as found:
        yield found


@pytest.mark.parametrize(("preset", "cut"), [("1s", 3_200), ("0.3s", 999), ("0.3s", 1 << 20), ("10s", 6_401)])
def test_a_stream_says_what_a_session_says_whatever_the_cut(server: Running, preset: str, cut: int):
    with server.stream(preset=preset, uri="talk") as stream:
        said = sent(stream, message(WAVES[0]), cut)
    assert said == expected(WAVES[0], preset, "talk")
    assert stream.close_code == 1000
    final = [turn for each in said for turn in each["final"]]
    assert sorted(final, key=lambda turn: tuple(turn.values())) == said[-1]["result"]["turns"] != []
    assert said[-1]["result"]["uri"] == "talk"


def test_a_byte_at_a_time_is_a_stream_of_the_preset_next_to_a_second(server: Running):
    wave = WAVES[0][:16_100]
    with server.stream() as stream:
        assert sent(stream, message(wave), 1) == expected(wave, None) == expected(wave, "1s")


def test_an_option_without_a_value_is_none(server: Running):
    with server.stream(preset="", uri="") as stream:
        assert sent(stream, message(WAVES[0][:16_100]), 9_999) == expected(WAVES[0][:16_100], None)


def test_floats_are_heard_as_they_are(server: Running):
    wave = noise(40_000)
    with server.stream(encoding="f32le", preset="0.3s") as stream:
        assert sent(stream, wave.astype("<f4").tobytes(), 1_001) == expected(wave, "0.3s")


def test_another_rate_is_resampled_with_what_came_before(server: Running):
    wave = WAVES[0][:40_000]
    at_16_khz = np.concatenate([*resampled([wave.astype(np.float32)], 11_025)])
    with server.stream(rate=11_025, preset="0.3s") as stream:
        assert sent(stream, message(wave), 777) == expected(at_16_khz, "0.3s")


@pytest.mark.parametrize("preset", ["0.3s", "1s"])
def test_two_clients_at_once_get_what_they_would_get_alone(server: Running, preset: str):
    def call(wave: np.ndarray) -> list[dict[str, Any]]:
        with server.stream(preset=preset) as stream:
            return sent(stream, message(wave), 2_222)

    with ThreadPoolExecutor() as clients:
        found = list(clients.map(call, WAVES))
    for said, wave in zip(found, WAVES, strict=True):
        assert [news(each) for each in said] == [news(each) for each in expected(wave, preset)]


def test_streams_that_ask_for_the_same_make_their_steps_together(server: Running, monkeypatch: pytest.MonkeyPatch):
    pools, push = list[SessionPool](), SessionPool.push
    monkeypatch.setattr(SessionPool, "push", lambda pool, blocks: (pools.append(pool), push(pool, blocks))[1])
    with contextlib.ExitStack() as at_once:
        asked = ({"preset": "1s"}, {"uri": "talk"}, {"preset": "0.3s"})
        for stream in [at_once.enter_context(server.stream(**options)) for options in asked]:
            sent(stream, message(WAVES[0][:40_000]), 40_000)
    alike, config = pools.count(pools[0]), DIARIZER.pool("1s").config
    assert [pool.config == config for pool in pools] == [True] * alike + [False] * (len(pools) - alike)
    assert 1 < alike < len(pools)


@pytest.mark.parametrize("samples", [0, 1, 100])
def test_a_stream_of_next_to_nothing_ends_in_good_order(server: Running, samples: int):
    with server.stream() as stream:
        (said,) = sent(stream, bytes(2 * samples), 100)
    assert (said["type"], said["final"], said["result"]["turns"]) == ("done", [], [])
    assert said["result"]["duration"] == samples / 16_000


@pytest.mark.parametrize("options", [{}, {"rate": 8_000}, {"encoding": "f32le"}])
def test_voices_that_come_before_the_recording_bear_their_names(server: Running, options: dict[str, Any]):
    def heard(wave: np.ndarray) -> tuple[bytes, np.ndarray]:
        if "encoding" in options:
            return wave.astype("<f4").tobytes(), wave
        received = np.frombuffer(message(wave), "<i2").astype(np.float32) / 32_768
        return message(wave), np.concatenate([*resampled([received], options.get("rate", 16_000))])

    people = {"Ada": heard(noise(30_000, seed=7)), "the chair": heard(noise(32_000, seed=10))}
    content, wave = heard(noise(60_000, seed=9))
    session = DIARIZER.stream("1s")
    with server.stream(preset="1s", **options) as stream:
        for name, (clip, samples) in people.items():
            session.enroll(name, samples)
            stream.send(enrolling(name))
            for start in range(0, len(clip), 9_999):
                stream.send(clip[start : start + 9_999])
        stream.send(START)
        said = sent(stream, content, 3_333)
    session.push(wave)
    session.flush()
    assert said[:2] == [{"type": "enrolled", "name": name, "warnings": []} for name in people]
    assert said[-1]["result"]["turns"] == json.loads(session.finish().to_json())["turns"]
    assert set(people) & {turn["speaker"] for turn in said[-1]["result"]["turns"]}


@pytest.mark.filterwarnings("error")  # nobody else is
def test_a_client_is_warned_of_voices_that_sound_alike():
    alike = Diarizer(tiny_model(gain=5.0), PostprocessConfig(clustering=ClusteringConfig(1.99)), "tiny")
    with running(application(alike, max_streams=1, max_upload_mb=1)) as server, server.stream(preset="1s") as stream:
        for name, seed in (("Ada", 7), ("Bob", 10)):
            stream.send(enrolling(name))
            stream.send(message(noise(30_000, seed=seed)))
        stream.send(START)
        said = sent(stream, message(noise(60_000, seed=9)), 30_000)
    first, second = said[:2]
    assert (first["warnings"], len(second["warnings"])) == ([], 1)
    assert second["warnings"][0].startswith("the clips of 'Ada' and 'Bob' sound like one voice")


def test_a_stream_may_start_without_voices(server: Running):
    with server.stream(preset="1s") as stream:
        stream.send(START)
        assert sent(stream, message(WAVES[0]), 3_200) == expected(WAVES[0], "1s")


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        (
            [enrolling("Ada"), bytes(64_000), START],
            "the clip of 'Ada' is silent|no voice was found in the clip of 'Ada'",
        ),
        ([enrolling("Ada"), START], "the clip of 'Ada': the audio array is empty"),
        ([enrolling("Ada"), bytes(64_000), END], """send {"type": "start"} after the clip of 'Ada'"""),
        ([enrolling("Ada"), *(61 * [bytes(32_000)])], "the clip of 'Ada' is longer than 60 s"),
        ([enrolling("speaker_1")], "is a label of the toolkit"),
        ([enrolling(5)], "enrolment needs a name"),
        ([bytes(3_200), enrolling("Ada")], "before its samples"),
        ([START, START], "before its samples"),
    ],
)
def test_a_voice_that_cannot_be_enrolled_ends_the_stream(server: Running, messages: list[bytes | str], words: str):
    with server.stream() as stream:
        with contextlib.suppress(ConnectionClosed):
            for each in messages:
                stream.send(each)
        sentence, code = refused(stream)
    assert re.search(words, sentence)
    assert code == 1008


def test_a_stream_may_say_how_many_speakers_there_are_at_most(server: Running):
    with server.stream(preset="1s", max_speakers=1) as one, server.stream(preset="1s") as any_number:
        few, many = (sent(stream, message(WAVES[0]), 3_200)[-1]["result"] for stream in (one, any_number))
    session = DIARIZER.stream("1s", max_speakers=1)
    session.push(np.frombuffer(message(WAVES[0]), "<i2").astype(np.float32) / 32_768)
    session.flush()
    assert few["turns"] == json.loads(session.finish().to_json())["turns"]
    assert few["settings"]["max_speakers"] == len(few["speakers"]) == 1
    assert len(many["speakers"]) > 1


def test_a_result_says_what_its_own_client_has_asked_for(server: Running):
    for most in (9, 8):  # more than three are not told apart: both streams advance in one batch
        with server.stream(preset="1s", max_speakers=most) as stream:
            assert sent(stream, b"", 1)[-1]["result"]["settings"]["max_speakers"] == most


def test_streams_that_have_ended_leave_no_threads(server: Running):
    def pooled() -> int:
        return sum("ThreadPoolExecutor" in thread.name for thread in threading.enumerate())

    before = pooled()
    for preset, most in itertools.product(("1s", "0.3s"), (1, 2)):
        with server.stream(preset=preset, max_speakers=most) as stream:
            sent(stream, message(WAVES[0][:40_000]), 40_000)
    eventually(lambda: pooled() <= before)


@pytest.mark.filterwarnings("error")  # they are the client's
def test_silence_has_no_turns(server: Running):
    with server.stream(preset="1s") as stream:
        said = sent(stream, bytes(96_000), 3_200)
    assert said[-1]["result"]["turns"] == []
    assert said[-1]["result"]["warnings"] == ["no speech found in audio: it is silent"]
    assert not any(each["tentative"] or each["speaking"] for each in said)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"preset": "2s"}, "no streaming preset '2s'; known: 30s, 10s, 1s, 0.3s"),
        ({"encoding": 99 * "%E2%82%AC"}, "no sample encoding '€€"),  # a close's reason holds no whole number of these
        ({"encoding": "mp3"}, "there is no sample encoding 'mp3'; choose from s16le, f32le, mulaw, alaw"),
        ({"rate": "fast"}, "whole number of Hz, got 'fast'"),
        ({"rate": "0"}, "between 1000 and 768000 Hz"),
        ({"num_speakers": "2"}, "no option 'num_speakers'; known: preset, max_speakers, rate, encoding, uri"),
        ({"preset": "1s&preset=0.3s"}, "'preset' is given more than once"),
        ({"max_speakers": "two"}, "max_speakers must be a whole number, 1 or more, got 'two'"),
        ({"max_speakers": 5_000 * "9"}, "max_speakers must be a whole number, 1 or more, got '999"),
        ({"max_speakers": "0"}, "max_speakers must be a whole number, 1 or more, got 0"),
    ],
)
def test_wrong_options_are_one_sentence(server: Running, options: dict[str, str], words: str):
    with server.stream(**options) as stream:
        sentence, code = refused(stream)
    assert words in sentence
    assert code == 1008


@pytest.mark.parametrize(
    ("rubbish", "words"),
    [
        (np.full(40_000, math.nan, "<f4").tobytes(), "is not a number (NaN) at 0.000 s"),
        (np.full(40_000, 1e9, "<f4").tobytes(), "float samples range from -1 to 1"),
        ("hello", 'the text {"type": "end"}'),
        ("[" * 100_000, 'the text {"type": "end"}'),
    ],
)
def test_rubbish_ends_the_stream_that_it_came_by_and_no_other(server: Running, rubbish: bytes | str, words: str):
    content = message(WAVES[1])
    with server.stream(preset="1s", uri="good") as good:
        good.send(content[:50_000])
        with server.stream(preset="1s", encoding="f32le") as bad:
            bad.send(rubbish)
            sentence, code = refused(bad)
        said = sent(good, content[50_000:], 3_200)
    assert words in sentence
    assert code == 1008
    assert said == expected(WAVES[1], "1s", "good")


@pytest.mark.parametrize("options", [{}, {"encoding": "s16le"}])
@pytest.mark.parametrize("cut", [1, 3, 10_000])
def test_a_recording_is_not_taken_for_samples(server: Running, cut: int, options: dict[str, str]):
    content = b"RIFF" + bytes(40) + message(WAVES[1])
    with server.stream(**options) as stream:
        stream.send(content[:cut])
        if cut < 4:
            stream.send(content[cut:])
        sentence, code = refused(stream)
    assert "the first bytes are the header of a recording, not samples" in sentence
    assert code == 1008


def test_whoever_watches_may_ask_for_the_head_alone(server: Running):
    assert httpx.head(f"http://{server.address}/healthz", timeout=60).status_code == 200


def test_a_message_that_is_too_large_is_refused(server: Running):
    with server.stream() as stream:
        stream.send(bytes((1 << 20) + 1))
        with pytest.raises(ConnectionClosed) as closed:
            stream.recv(timeout=60)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1009


def test_there_are_so_many_streams_and_one_that_vanishes_leaves_its_place(
    server: Running, caplog: pytest.LogCaptureFixture
):
    with contextlib.ExitStack() as opened:
        streams = [opened.enter_context(server.stream()) for _ in range(MOST)]
        assert server.state()["streams"] == MOST
        with server.stream() as late:
            assert refused(late) == (f"all {MOST} streams are in use: try again later", 1013)
        streams[0].send(message(WAVES[0]))
        vanish(streams[0])
        eventually(lambda: server.state()["streams"] == MOST - 1)
        with server.stream() as other:
            other.send(END)
            assert json.loads(other.recv(timeout=60))["type"] == "done"
    eventually(lambda: server.state()["streams"] == 0)
    assert not caplog.records


def test_who_sends_ahead_waits_and_what_waits_is_bounded(server: Running, monkeypatch: pytest.MonkeyPatch):
    go_on, push, count = threading.Event(), SessionPool.push, 0
    monkeypatch.setattr(SessionPool, "push", lambda *blocks: (go_on.wait(60), push(*blocks))[1])
    with server.stream() as stream:

        def send() -> None:
            nonlocal count
            with contextlib.suppress(ConnectionClosed):
                for _ in range(200):
                    stream.send(bytes(1 << 20))
                    count += 1

        sending = threading.Thread(target=send)
        sending.start()
        eventually(lambda: count > 0)
        before = -1
        while before != count:
            before = count
            time.sleep(1)
        assert count < 50
        assert server.state()["streams"] == 1  # all else goes on
        vanish(stream)
        go_on.set()
        sending.join()
    eventually(lambda: server.state()["streams"] == 0)


def test_what_is_not_foreseen_is_told_without_the_server_s_affairs(
    server: Running, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    def broken(*_: object) -> None:
        raise RuntimeError("/secret/place")

    monkeypatch.setattr(SessionPool, "push", broken)
    with server.stream() as stream:
        stream.send(message(WAVES[0]))
        sentence, code = refused(stream)
    assert code == 1011
    assert "secret" not in sentence
    eventually(lambda: "/secret/place" in caplog.text)  # which only who runs it can read
    assert server.state()["streams"] == 0
