"""The benchmark of live streams in miniature: each measurement in a separate process."""

import re
import subprocess
import sys
from pathlib import Path

from tests.tiny import tiny_model

SCRIPT = Path(__file__).resolve().parents[2] / "recipes/benchmark/streaming.py"


def test_streams_a_file_and_an_endless_stream_are_measured(tmp_path: Path):
    short = ("--preset", "10s", "--streams", 2, "--seconds", 20, "--file-minutes", 1, "--hours", 0.17)
    command = [sys.executable, SCRIPT, *short, "--model", tiny_model(tmp_path / "model")]
    said = subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True).stdout
    assert re.search(r"^\| 10s \| 2 \| [\d.]+ s \| [\d.]+ s \| \d+ ms \| \d+ \|$", said, re.MULTILINE)
    assert re.search(r"^1 min from a file: [\d.]+ s, [\d.]+ % of real time, peak \d+ MiB$", said, re.MULTILINE)
    assert re.search(r"^\| 10 \| [\d.]+ s \| \d+ MiB \|$", said, re.MULTILINE)
