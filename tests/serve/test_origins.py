"""Pages in browsers may use the server if they are of the same origin, or allowed."""

from collections.abc import Iterator

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from sortformer.config.postprocess import PostprocessConfig
from sortformer.diarizer import Diarizer
from sortformer.errors import InputError
from sortformer.serve import application
from tests.serve.running import Running, message, running, sent
from tests.streaming.tiny import noise, tiny_model

pytestmark = pytest.mark.filterwarnings("ignore:.*nobody is found to speak")  # as they are

DIARIZER = Diarizer(tiny_model(), PostprocessConfig(), "tiny")
FRIEND = "http://localhost:3000"
FOREIGN = ["https://example.org", "http://127.0.0.1:1", "http://localhost:3000.example.org", "null", "a b"]


def served(*allowed: str) -> Iterator[Running]:
    with running(application(DIARIZER, max_streams=1, max_upload_mb=1, allowed_origins=allowed)) as found:
        yield found


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    yield from served(FRIEND)


@pytest.fixture(scope="module")
def open_to_all() -> Iterator[Running]:
    yield from served("*")


def asked(server: Running, origin: str | None, host: str | None = None) -> httpx.Response:
    headers = {name: value for name, value in (("Origin", origin), ("Host", host)) if value is not None}
    return httpx.post(f"http://{server.address}/v1/diarize", data={"no": "file"}, headers=headers, timeout=60)


def streamed(server: Running, origin: str | None) -> str:
    """Return how a page's stream ends."""
    address = f"ws://{server.address}/v1/stream?preset=1s"
    with connect(address, origin=origin, ping_interval=None, open_timeout=60) as stream:  # pyright: ignore[reportArgumentType]
        return sent(stream, message(noise(20_000)), 9_999)[-1]["type"]


@pytest.mark.parametrize("origin", FOREIGN)
def test_pages_of_others_are_told_how_they_would_be_let_in(
    server: Running, origin: str, caplog: pytest.LogCaptureFixture
):
    answer = asked(server, origin)
    assert answer.status_code == 403
    assert answer.json()["error"] == f"pages of {origin} may not use this server: --allow-origin {origin} allows them"
    with pytest.raises(InvalidStatus) as refused:
        streamed(server, origin)
    assert refused.value.response.status_code == 403
    assert server.state()["streams"] == 0
    assert not caplog.records  # visitors must not fill the log


def test_its_own_those_let_in_and_what_is_no_page_are_answered(server: Running):
    for origin in (None, f"http://{server.address}", FRIEND):
        assert streamed(server, origin) == "done"
        assert asked(server, origin).status_code == 400  # the file is missing
    # Behind a proxy that terminates https.
    assert asked(server, "https://talks.example.org", host="talks.example.org").status_code == 400


def test_only_pages_that_are_let_in_may_read_the_answer(server: Running):
    let_in = asked(server, FRIEND).headers
    assert let_in["access-control-allow-origin"] == FRIEND
    assert let_in["access-control-expose-headers"] == "X-Warnings, Retry-After"
    assert "access-control-allow-origin" not in asked(server, f"http://{server.address}").headers
    before = {"Origin": FRIEND, "Access-Control-Request-Method": "POST"}
    assert httpx.options(f"http://{server.address}/v1/diarize", headers=before, timeout=60).status_code == 200


def test_pages_that_are_let_in_may_send_what_a_proxy_or_their_library_wants(server: Running):
    wanted = "authorization, x-requested-with"
    before = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": wanted}
    url = f"http://{server.address}/v1/diarize"
    let_in, foreign = (httpx.options(url, headers=before | {"Origin": page}, timeout=60) for page in (FRIEND, "null"))
    assert (let_in.status_code, let_in.headers["access-control-allow-headers"]) == (200, wanted)
    assert foreign.status_code == 403


def test_pages_that_are_let_in_may_read_of_an_unforeseen_error_too(server: Running, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sortformer.serve.recordings.Recordings.here", None)  # which nobody can count
    let_in, foreign, other = (asked(server, origin) for origin in (FRIEND, FOREIGN[0], None))
    assert (let_in.status_code, let_in.headers["access-control-allow-origin"]) == (500, FRIEND)
    assert (foreign.status_code, other.status_code) == (403, 500)
    assert "access-control-allow-origin" not in {**foreign.headers, **other.headers}


@pytest.mark.parametrize("origin", FOREIGN[:-1])
def test_a_star_lets_all_in(open_to_all: Running, origin: str):
    assert streamed(open_to_all, origin) == "done"
    assert asked(open_to_all, origin).headers["access-control-allow-origin"] == "*"


def test_pages_that_were_opened_from_the_disk_may_be_let_in():
    for server in served("null"):
        assert streamed(server, "null") == "done"


@pytest.mark.parametrize(
    "origin",
    [
        "",
        "localhost:3000",
        "http://localhost:3000/",
        "http://localhost:3000?talk",
        "http://ada@localhost:3000",
        "http://Example.org",
        "http://",
        "*.org",
    ],
)
def test_what_no_browser_says_is_refused(origin: str):
    with pytest.raises(InputError, match="is not a valid origin"):
        application(DIARIZER, max_streams=1, max_upload_mb=1, allowed_origins=[origin])
