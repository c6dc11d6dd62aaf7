"""The log of a run: lines of an earlier run that are kept, and errors."""

import json
from pathlib import Path

import pytest

from sortformer.errors import InputError
from sortformer.train.log import RunLog


def test_it_goes_on_after_a_step_and_forgets_what_came_later(tmp_path: Path):
    path, told = tmp_path / "log.jsonl", []
    path.write_text('{"step": 1}\n{"step": 2}\n{"step": 3}\n{"step": 2, "lo')
    RunLog(path, 2, told.append).write({"step": 3, "loss": float("inf")})
    assert [json.loads(line) for line in path.read_text().splitlines()] == [
        {"step": 1},
        {"step": 2},
        {"step": 3, "loss": None},
    ]
    assert told == [{"step": 3, "loss": float("inf")}]


@pytest.mark.parametrize("content", [b"garbage\n", b"[1]\n", b'{"loss": 0.5}\n', b"\xff\n", b"[" * 9_999 + b"\n"])
def test_what_is_no_log_is_refused_and_stays(tmp_path: Path, content: bytes):
    path = tmp_path / "log.jsonl"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"log\.jsonl, which is damaged: move it away"):
        RunLog(path, 2, None)
    assert path.read_bytes() == content
