"""Type checkers of users read the package's annotations (PEP 561)."""

import subprocess
import sys
from importlib.resources import files

import pytest


def test_the_package_says_that_it_is_typed():
    assert (files("sortformer") / "py.typed").is_file()


def test_a_type_checker_finds_a_misspelt_name(tmp_path):
    pytest.importorskip("pyright", reason="pyright is absent")
    program = tmp_path / "program.py"
    program.write_text("from sortformer import Diarizer\nfrom sortformer import Diarizr\n")
    check = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, str(program)]
    run = subprocess.run(check, capture_output=True, text=True, encoding="utf-8")
    # pyright explains on stderr why it could not start, and prints nothing then
    assert '"Diarizr" is unknown import symbol' in run.stdout, run.stderr
    assert "1 error," in run.stdout
