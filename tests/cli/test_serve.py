"""The server as a process: one line when it listens, one sentence when it cannot, and a clean shutdown."""

import contextlib
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from websockets.sync.client import connect

from tests.cli.conftest import Cli
from tests.processes import started


@contextlib.contextmanager
def serving(model: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    process = started("serve", "--port", 0, "--model", model, *options)
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line.startswith("listening on http://")
        yield process, line.strip().removeprefix("listening on http://")
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_in_good_order(model: Path, wav: Path, number: signal.Signals):
    with serving(model) as (process, address):
        answer = httpx.post(f"http://{address}/v1/diarize", files={"file": wav.read_bytes()}, timeout=60)
        assert len(answer.json()["turns"]) == 2
        with connect(f"ws://{address}/v1/stream") as stream:
            stream.send(bytes(64_000))
            assert json.loads(stream.recv(timeout=60))["type"] == "update"
            process.send_signal(number)
            said = [json.loads(text) for text in stream]
        out, err = process.communicate(timeout=60)
    assert said[-1]["type"] == "done"
    assert said[-1]["result"]["duration"] == 2
    assert (process.returncode, out, err) == (0, "", "")


def test_a_port_that_is_taken_and_a_host_that_is_not_here_are_one_sentence(cli: Cli, model: Path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        outcome = cli("serve", "--port", port, "--model", model)
    assert (outcome.code, outcome.out, len(outcome.errors)) == (1, "", 1)
    assert f"cannot listen on 127.0.0.1, port {port} (Address already in use)" in outcome.errors[0]
    outcome = cli("serve", "--host", "nowhere.invalid", "--port", 0, "--model", model)
    assert (outcome.code, outcome.out, len(outcome.errors)) == (1, "", 1)


def test_pages_are_let_in_by_their_origins(cli: Cli, model: Path):
    page = "http://localhost:3000"
    with serving(model, "--allow-origin", "https://example.org", "--allow-origin", page) as (_, address):
        answers = [httpx.get(f"http://{address}/healthz", headers={"Origin": each}) for each in (page, "http://a.b")]
    assert [answer.status_code for answer in answers] == [200, 403]
    outcome = cli("serve", "--port", 0, "--model", model, "--allow-origin", f"{page}/talks")
    assert (outcome.code, outcome.out, len(outcome.errors)) == (1, "", 1)
    assert "is not a valid origin" in outcome.errors[0]


def test_a_request_may_be_as_large_as_is_said(model: Path):
    with serving(model, "--max-upload-mb", "1") as (_, address):
        answer = httpx.post(f"http://{address}/v1/diarize", files={"file": bytes(1 << 20)}, timeout=60)
    assert answer.status_code == 413


def test_an_address_of_ipv6_is_said_as_a_url(model: Path):
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("there is no IPv6")
    with serving(model, "--host", "::1") as (_, address):
        assert httpx.get(f"http://{address}/healthz", timeout=60).status_code == 200


def test_a_model_that_is_not_there_is_one_sentence(cli: Cli):
    outcome = cli("serve", "--port", 0, "--model", "absent")
    assert (outcome.code, outcome.out, len(outcome.errors)) == (1, "", 1)


@pytest.mark.parametrize("option", [("--port", 70_000), ("--max-streams", 0), ("--max-upload-mb", 0)])
def test_wrong_options_are_usage_errors(cli: Cli, option: tuple[str, int]):
    assert cli("serve", *option).code == 2


def test_without_its_extra_one_sentence_says_what_to_install(cli: Cli, monkeypatch: pytest.MonkeyPatch):
    for name in ("fastapi", "uvicorn"):
        monkeypatch.setitem(sys.modules, name, None)
    outcome = cli("serve")
    assert outcome.code == 1
    assert outcome.errors == [
        "a server needs fastapi, uvicorn: pip install fastapi uvicorn, or sortformer with its extra [serve]"
    ]
