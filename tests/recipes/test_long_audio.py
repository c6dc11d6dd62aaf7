"""The long-audio recipe in miniature: cells, a stopped one, the table's slopes, the plot."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from sortformer.config.mechanisms import CORES, MEMORIES

RECIPE = Path(__file__).parents[2] / "recipes" / "long_audio"


def run(*arguments: object) -> str:
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_cells_are_measured_once_and_drawn(tmp_path):
    found = tmp_path / "found.jsonl"
    names = ("combiner_axial", "xl, streamed")
    table = run(RECIPE / "long_audio.py", found, "--mechanisms", *names, "--minutes", 0.2)
    cells = [json.loads(line) for line in found.read_text().splitlines()]
    assert [cell["mechanism"] for cell in cells] == list(names)
    assert all(cell["seconds"] >= 0 and cell["mib"] >= 0 for cell in cells)
    assert all(f"| {name} |" in table for name in names)
    assert run(RECIPE / "long_audio.py", found, "--mechanisms", *names, "--minutes", 0.2) == table
    assert len(found.read_text().splitlines()) == 2
    run(RECIPE / "plot.py", found, tmp_path / "found.svg")
    assert (tmp_path / "found.svg").stat().st_size > 1000


def test_what_takes_too_long_is_stopped_and_shown(tmp_path):
    found = tmp_path / "found.jsonl"
    table = run(RECIPE / "long_audio.py", found, "--mechanisms", "full", "--minutes", 30, 31, "--limit", 1)
    (cell,) = (json.loads(line) for line in found.read_text().splitlines())
    assert cell == {"mechanism": "full", "minutes": 30.0, "stopped": "at 1 s"}
    assert "at 1 s" in table


def of_the_page() -> dict[str, tuple[list[dict], str]]:
    """Return for each mechanism of RESULTS.md its cells and its entry on full attention."""
    found = {}
    for block in (RECIPE / "RESULTS.md").read_text(encoding="utf-8").split("\n\n"):
        if not block.startswith("| mechanism |"):
            continue
        head, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines())
        for row in rows:
            shown = {name.removesuffix(" min"): cell for name, cell in zip(head, row, strict=True) if cell}
            cells = [
                {"minutes": float(name)} | ({} if "/" not in cell else {"seconds": float(cell.split("/")[0])})
                for name, cell in shown.items()
                if name.isdigit()
            ]
            found[shown["mechanism"]] = cells, shown.get("faster than full from", "")
    return found


def test_the_page_says_of_every_mechanism_where_it_overtakes_full_attention(monkeypatch):
    monkeypatch.syspath_prepend(str(RECIPE))
    from cells import MECHANISMS, STREAMED
    from long_audio import overtakes

    page = of_the_page()
    assert set(page) == {*MECHANISMS, *STREAMED}
    for name, (cells, said) in page.items():
        assert said == ("" if name == "full" else overtakes(cells, page["full"][0])), name


def test_every_core_and_every_memory_is_measured(monkeypatch):
    monkeypatch.syspath_prepend(str(RECIPE))
    from cells import MECHANISMS

    measured = [cell(100) for cell in MECHANISMS.values()]
    assert {each.core.kind for each in measured} == set(CORES)
    assert {each.memory.kind for each in measured} == set(MEMORIES)


def test_only_what_stays_ahead_has_overtaken(monkeypatch):
    monkeypatch.syspath_prepend(str(RECIPE))
    from long_audio import overtakes

    def cells(*seconds: float | None) -> list[dict]:
        return [
            {"minutes": minutes} | ({"stopped": ""} if s is None else {"seconds": s})
            for minutes, s in zip((1, 3, 10), seconds, strict=False)
        ]

    assert overtakes(cells(1, 2, 3), cells(2, 3, 4)) == "1 min"
    assert overtakes(cells(1, 5, 3), cells(2, 3, 4)) == "10 min"
    assert overtakes(cells(1, 2, 4), cells(2, 3, 4)) == "not by 10 min"
    assert overtakes(cells(3, 4), cells(2, None)) == "3 min"
    assert overtakes(cells(3, None), cells(2, None)) == "not by 1 min"


@pytest.mark.parametrize("power", [1.0, 2.0])
def test_the_slope_is_the_power(power, monkeypatch):
    monkeypatch.syspath_prepend(str(RECIPE))
    from long_audio import slope

    cells = [{"minutes": m, "seconds": 0.1 * m**power} for m in (10, 30, 60)]
    assert slope(
        [{"minutes": 1, "seconds": 50.0}, *cells, {"minutes": 180, "stopped": ""}], "seconds"
    ) == pytest.approx(power)
    assert slope(cells[:2], "seconds") is None
