"""The script that uses the true number of simultaneous speakers: it leaves neither miss nor false alarm."""

import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sortformer.annotation import Turn
from sortformer.config.clustering import ClusteringConfig
from sortformer.config.postprocess import PostprocessConfig
from sortformer.grid import FrameGrid
from sortformer.metrics.der import der
from sortformer.offline import Whole

DURATION_S = 16.0
TRUTH = (Turn(0.0, 6.4, "a"), Turn(5.6, 12.0, "b"), Turn(13.6, 16.0, "a"))


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    folder = Path(__file__).resolve().parents[2] / "recipes/benchmark"
    monkeypatch.syspath_prepend(str(folder))
    return runpy.run_path(str(folder / "counts_known.py"))


def heard(frames: int = 200) -> Whole:
    """Two distinct voices, and a head with nearly uninformative output."""
    rng = np.random.default_rng(0)
    emb = np.where(np.arange(frames)[:, None] < 75, [1.0, 0.0], [0.0, 1.0])
    emb[170:] = [1.0, 0.0]
    return Whole(rng.uniform(0.2, 0.8, (frames, 2)).astype(np.float32), emb.astype(np.float32), 1)


@pytest.mark.parametrize("clustering", [None, ClusteringConfig(threshold=0.4)])
def test_what_is_told_is_neither_missed_nor_heard_too_much(script, clustering):
    settings = PostprocessConfig(onset=0.9, offset=0.9, min_on_s=1.0, clustering=clustering)
    diarizer = SimpleNamespace(postprocess=settings, model=SimpleNamespace(config=SimpleNamespace(grid=FrameGrid())))
    errors = {}
    for told in script["TOLD"]:
        found = script["found_turns"](diarizer, heard(), TRUTH, told, DURATION_S)
        errors[told] = der(TRUTH, found, [(0.0, DURATION_S)])
    overlap = 0.8
    if clustering is not None:  # uninformative slots share each frame, and none of them is above 1/2
        assert errors["all"].miss == pytest.approx(0.0, abs=0.02)
        assert errors["all"].false_alarm == pytest.approx(0.0, abs=0.02)
        assert errors["one"].miss == pytest.approx(overlap, abs=0.02)
        assert errors["one"].confusion == pytest.approx(0.0, abs=0.4)
    assert errors["one"].false_alarm == pytest.approx(0.0, abs=0.02)
    assert errors["nothing"].miss > errors["all"].miss
