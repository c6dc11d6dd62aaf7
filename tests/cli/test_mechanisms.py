"""The table of mechanisms is complete, and the same as on its page."""

import sys
from pathlib import Path

import pytest

from sortformer.config.mechanisms import ABSENT, BLOCKS, CORES, MEMORIES, POSITIONS
from tests.cli.conftest import Cli


def test_every_mechanism_has_a_line_and_so_has_what_is_absent(cli: Cli):
    outcome = cli("mechanisms")
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    for known in (CORES, MEMORIES, POSITIONS, BLOCKS):
        for name, facts in known.items():
            assert [
                line for line in lines if line.startswith(f"{name} ") and facts.what in line and facts.paper in line
            ]
    for facts in CORES.values():
        assert not facts.causal or facts.streaming in next(line for line in lines if line.startswith(f"{facts.name} "))
    for name, reason in ABSENT.items():
        assert [line for line in lines if line.startswith(name) and reason in line]


def test_a_terminal_gets_tables_that_fit_it(cli: Cli, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "dumb")  # of 80 columns, and without colours
    lines = cli("mechanisms").out.splitlines()
    assert max(map(len, lines)) <= 80
    begun = {line.split(" ")[0] for line in lines}
    assert begun >= {*CORES, *MEMORIES, *POSITIONS}


def test_every_causal_core_has_a_state_or_says_why_not():
    for facts in CORES.values():
        assert bool(facts.needs_all) == (facts.causal and not facts.state)


def test_the_tables_of_the_page_are_those_of_the_command(cli: Cli):
    """If not, ``make tables`` updates them."""
    page = (Path(__file__).parents[2] / "docs" / "mechanisms.md").read_text(encoding="utf-8")
    assert page.split("\n## All mechanisms\n")[1] == cli("mechanisms", "--markdown").out
