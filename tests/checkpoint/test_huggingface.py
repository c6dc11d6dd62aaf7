"""Models by id, from a hub inside the test: downloaded once, then read from the cache without waiting."""

import errno
import json
import socket
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from huggingface_hub import constants, file_download, utils

from sortformer import checkpoint
from sortformer.checkpoint.loading import read
from sortformer.errors import InputError
from tests.checkpoint.goldens import GOLDEN

COMMIT = "0123456789abcdef0123456789abcdef01234567"
NEMOTRON = {path.name: path for path in (GOLDEN / "tiny_nemotron3").iterdir()}
V1 = {"README.md": GOLDEN / "README.md", "tiny_v1.nemo": GOLDEN / "tiny_v1.nemo"}


@dataclass
class Hub:
    """Repositories by id, and the requests received."""

    repositories: dict[str, dict[str, Path]]
    gated: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)
    tokens: set[str | None] = field(default_factory=set)
    fails: bool = False
    refuses: bool = False

    def answer(self, path: str) -> tuple[int, dict[str, str], bytes]:
        self.asked.append(path)
        if self.refuses:
            return 401, {}, b""
        if self.fails:
            return 500, {}, b""
        api = path.startswith("/api/models/")
        parts = path.removeprefix("/api/models").strip("/").split("/")
        name, rest = "/".join(parts[:2]), parts[2:]
        if name in self.gated:
            return 403, {"X-Error-Code": "GatedRepo"}, b"{}"
        if name not in self.repositories:
            return 404, {"X-Error-Code": "RepoNotFound"}, b"{}"
        if len(rest) > 1 and rest[1] not in ("main", COMMIT):
            return 404, {"X-Error-Code": "RevisionNotFound"}, b"{}"
        files = self.repositories[name]
        if api:
            siblings = [{"rfilename": file} for file in files]
            return 200, {}, json.dumps({"id": name, "modelId": name, "sha": COMMIT, "siblings": siblings}).encode()
        return 200, {"ETag": f'"{rest[2]}"', "X-Repo-Commit": COMMIT}, files[rest[2]].read_bytes()


@pytest.fixture
def hub(tmp_path, monkeypatch) -> Iterator[Hub]:
    hub = Hub({"acme/nemotron": NEMOTRON, "acme/v1": V1, "acme/empty": {"README.md": GOLDEN / "README.md"}})

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            hub.tokens.add(self.headers["Authorization"])
            status, headers, content = hub.answer(self.path.partition("?")[0])
            self.send_response(status)
            for key, value in (headers | {"Content-Length": str(len(content))}).items():
                self.send_header(key, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(content)

        do_HEAD = do_GET

        def log_message(self, *_: object) -> None:
            """Keep the test's output clean."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    point_to(monkeypatch, f"http://127.0.0.1:{server.server_port}", tmp_path / "cache")
    yield hub
    server.shutdown()
    server.server_close()
    thread.join()


def point_to(monkeypatch: pytest.MonkeyPatch, endpoint: str, cache: Path) -> None:
    """Redirect huggingface-hub to ``endpoint``, without proxy, and with a separate cache."""
    monkeypatch.setattr(constants, "ENDPOINT", endpoint)
    template = endpoint + "/{repo_id}/resolve/{revision}/{filename}"
    for where in (constants, file_download):  # versions before 1.0 have a copy in the second
        monkeypatch.setattr(where, "HUGGINGFACE_CO_URL_TEMPLATE", template, raising=where is constants)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
    go_offline(monkeypatch, False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def go_offline(monkeypatch: pytest.MonkeyPatch, offline: bool) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", offline)
    getattr(utils, "reset_sessions", bool)()  # before 1.0 a session keeps what held when it began


@pytest.mark.parametrize("name", ["acme/nemotron", "acme/v1", f"acme/v1@{COMMIT}", "acme/v1@main"])
def test_a_model_is_fetched_once_and_then_needs_no_hub(hub, name):
    model, _ = checkpoint.load(name)
    assert model.config.labelling == "nemo"
    assert not any("README" in path for path in hub.asked)
    hub.fails = True
    again, _ = checkpoint.load(name)
    assert again.config == model.config


def test_a_program_without_a_console_can_fetch_one(hub, monkeypatch):
    hidden = utils.are_progress_bars_disabled()
    checkpoint.load("acme/v1")
    assert utils.are_progress_bars_disabled() == hidden, "with a console, progress is shown"
    monkeypatch.setattr(sys, "stderr", None)
    try:
        checkpoint.load("acme/nemotron")
    finally:
        utils.enable_progress_bars()
    assert any(path.endswith("model.safetensors") for path in hub.asked)


def test_all_is_asked_of_the_revision_that_is_named(hub):
    checkpoint.load(f"acme/v1@{COMMIT}")
    asked = {path.partition(COMMIT)[0] for path in hub.asked if "/acme/" in path}
    assert asked == {"/api/models/acme/v1/revision/", "/acme/v1/resolve/"}


def test_of_several_archives_the_one_that_lies_in_no_folder_is_the_model(hub):
    hub.repositories["acme/older"] = V1 | {"older/v0.nemo": GOLDEN / "absent"}
    model, _ = checkpoint.load("acme/older")
    assert model.config.features.normalize == "per_feature"
    hub.repositories["acme/two"] = V1 | {"v0.nemo": GOLDEN / "absent"}
    with pytest.raises(InputError, match=r"nor one \.nemo file"):
        checkpoint.load("acme/two")


def with_foreign_form(folder: Path, files: dict[str, Path]) -> dict[str, Path]:
    """Return the files of a repository that also has its model for another library, which is not downloaded."""
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "sortformer", "architectures": ["Sortformer"]}')
    return {"model.safetensors": folder / "absent"} | files | {"config.json": folder / "config.json"}


def test_an_archive_goes_before_the_form_of_another_library(hub, tmp_path):
    hub.repositories["acme/both"] = with_foreign_form(tmp_path / "both", V1)
    model, _ = checkpoint.load("acme/both")
    assert model.config.features.normalize == "per_feature"
    assert not any("safetensors" in path for path in hub.asked)
    hub.fails = True
    again, _ = checkpoint.load("acme/both")
    assert again.config == model.config


def test_a_model_of_another_library_is_said_to_be_one(hub, tmp_path):
    files = with_foreign_form(tmp_path / "other", {}) | {"model.safetensors": GOLDEN / "README.md"}
    hub.repositories["acme/other"] = files
    with pytest.raises(InputError, match=", but 'sortformer'"):
        checkpoint.load("acme/other")


def test_a_form_that_is_read_here_goes_before_an_archive(hub):
    hub.repositories["acme/both"] = NEMOTRON | V1
    model, _ = checkpoint.load("acme/both")
    assert model.config.encoder.kind == "transformer"
    assert not any(path.endswith(".nemo") for path in hub.asked)


def test_what_another_library_has_cached_is_not_the_model(hub, tmp_path):
    from huggingface_hub import hf_hub_download

    hub.repositories["acme/both"] = with_foreign_form(tmp_path / "both", V1)
    hf_hub_download("acme/both", "config.json")
    hub.fails = True
    with pytest.raises(InputError, match=r"not in the Hugging Face cache, and it cannot be downloaded \("):
        checkpoint.load("acme/both")


def test_half_a_model_in_the_cache_is_none(hub):
    from huggingface_hub import hf_hub_download

    hf_hub_download("acme/nemotron", "config.json")
    hub.fails = True
    with pytest.raises(InputError, match=r"not in the Hugging Face cache, and it cannot be downloaded \("):
        checkpoint.load("acme/nemotron")
    hub.fails = False
    checkpoint.load("acme/nemotron")


def test_a_token_that_is_refused_and_a_full_disk_are_told(hub, monkeypatch):
    hub.refuses = True
    with pytest.raises(InputError, match=r"\(.*401.*\): is HF_TOKEN right\?$"):
        checkpoint.load("acme/nemotron")
    hub.refuses = False

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("huggingface_hub.hf_hub_download", full)
    with pytest.raises(InputError, match=r"\(No space left on device \(free some space, or choose another path\)\)$"):
        checkpoint.load("acme/nemotron")


def test_a_licence_goes_by_the_name_on_the_hub(hub):
    hub.repositories["acme/Nemotron-3-Diarization"] = NEMOTRON
    assert read("acme/Nemotron-3-Diarization").licence == "OpenMDW-1.1"
    assert read("acme/nemotron").licence is None


def test_offline_mode_asks_nobody(hub, monkeypatch):
    checkpoint.load("acme/nemotron")
    hub.asked.clear()
    go_offline(monkeypatch, True)
    checkpoint.load("acme/nemotron")
    with pytest.raises(InputError, match=r"offline mode is on \(HF_HUB_OFFLINE\)"):
        checkpoint.load("acme/v1")
    assert not hub.asked


def test_a_token_is_sent(hub, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    checkpoint.load("acme/nemotron")
    assert hub.tokens == {"Bearer hf_secret"}


def test_refusals_are_one_sentence_each(hub):
    hub.gated.add("acme/gated")
    for name, says in (
        ("acme/nobody", "there is no model 'acme/nobody'"),
        ("acme/gated", "is gated: accept its terms at "),
        ("acme/v1@v9", "has no revision 'v9'"),
        ("acme/a--b", "nor a valid Hugging Face id"),
        ("acme/empty", "neither config.json and model.safetensors nor one .nemo file"),
    ):
        with pytest.raises(InputError) as caught:
            checkpoint.load(name)
        assert says in str(caught.value)
        assert "\n" not in str(caught.value)


def test_without_network_it_says_so_at_once(tmp_path, monkeypatch):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        point_to(monkeypatch, f"http://127.0.0.1:{closed.getsockname()[1]}", tmp_path)
        waits: list[float] = []
        monkeypatch.setattr("time.sleep", waits.append)
        with pytest.raises(InputError, match="it cannot be downloaded") as caught:
            checkpoint.load("acme/nemotron")
    assert not waits  # huggingface-hub's own retries take 24 s
    assert "\n" not in str(caught.value)


def test_a_hub_that_does_not_answer_is_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_ETAG_TIMEOUT", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        point_to(monkeypatch, f"http://127.0.0.1:{silent.getsockname()[1]}", tmp_path)
        with pytest.raises(InputError, match="it cannot be downloaded"):
            checkpoint.load("acme/nemotron")
