"""Two recordings, as references and as hypotheses."""

from pathlib import Path

import pytest

from tests.evaluate.recordings import ONE, ONE_FOUND, TWO, TWO_FOUND, folder


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    return folder(tmp_path / "ref", ONE, TWO), folder(tmp_path / "hyp", ONE_FOUND, TWO_FOUND)
