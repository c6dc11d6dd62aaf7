"""The README does what it says: its Python runs, its commands run, and its tests are those that the project runs."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
EMBEDDED = ROOT / "sortformer" / "weights" / "model.safetensors"

with_weights = pytest.mark.skipif(not EMBEDDED.exists(), reason="the package has no weights yet")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def commands() -> list[str]:
    """The commands that need no installation and train nothing, in order."""
    lines = [line.split("  #")[0].strip() for block in blocks("bash") for line in block.splitlines()]
    return [line for line in lines if line.startswith("sortformer") and "train" not in line and "runs/" not in line]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with the demos, as a reader has it before them."""
    shutil.copytree(ROOT / "demos", tmp_path / "demos")
    return tmp_path


@with_weights
def test_the_python_runs(checkout: Path):
    program = "".join(blocks("python"))  # each goes on where the last one ended
    done = subprocess.run([sys.executable, "-c", program], cwd=checkout, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "speaker_0" in done.stdout


@with_weights
def test_the_commands_run(checkout: Path):
    assert len(commands()) >= 6
    for line in commands():
        here = line.replace("sortformer", f'"{sys.executable}" -m sortformer', 1)
        done = subprocess.run(here, shell=True, cwd=checkout, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (line, done.stderr)
        assert done.stdout or " -o " in line, line
    assert {path.suffix for path in (checkout / "results").iterdir()} == {".rttm", ".json", ".txt"}


def test_the_checks_install_and_test_as_the_readme_says():
    checks = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    for command in ("torch==2.13.0", '-e ".[dev]"', "python -m pytest"):
        assert command in README
        assert command in checks
