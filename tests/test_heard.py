"""Progress: the callback learns how far the recording is, and may cancel."""

import math
import weakref
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sortformer.diarizer import Diarizer
from sortformer.errors import Cancelled
from sortformer.heard import Heard


def test_progress_goes_forward_through_the_stages(diarizer: Diarizer, wav: Path):
    seen: list[tuple[str, float, float | None]] = []
    diarizer(wav, progress=lambda *report: seen.append(report))
    assert list(dict.fromkeys(stage for stage, _, _ in seen)) == ["read", "model", "turns"]
    assert seen[0] == ("read", 2.0, 2.0)
    assert [done for stage, done, _ in seen if stage == "model"] == [1, 2]
    assert seen[-1] == ("turns", 1, 1)


def test_who_leaves_early_says_how_far_it_is_as_well(diarizer: Diarizer, wav: Path):
    seen: list[tuple[str, float, float | None]] = []
    replace(diarizer, exit_confidence=1.0)(wav, progress=lambda *report: seen.append(report))
    assert [done for stage, done, _ in seen if stage == "model"] == [1, 2]


@pytest.mark.parametrize("stage", ["read", "model", "turns"])
def test_progress_may_cancel_at_any_stage(diarizer: Diarizer, wav: Path, stage: str):
    with pytest.raises(Cancelled, match=stage):
        diarizer(wav, progress=lambda at, *_: at != stage)


def test_a_false_of_numpy_cancels_and_a_zero_does_not(diarizer: Diarizer, wav: Path):
    with pytest.raises(Cancelled, match="read"):
        diarizer(wav, progress=lambda _stage, done, _total: np.float64(done) < 0)
    assert diarizer(wav, progress=lambda *_: 0) == diarizer(wav)  # pyright: ignore[reportArgumentType]


def test_what_progress_raises_comes_out(diarizer: Diarizer, wav: Path):
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        diarizer(wav, progress=stop)


def test_what_is_known_of_a_recording_is_of_all_that_was_read():
    wave = np.zeros(25 * 8_000, np.float32)
    wave[0] = -0.5
    heard = Heard(np.repeat(wave, 2), 16_000)
    assert (heard.seconds, heard.total_s) == (0, None)
    assert [len(block) for block in heard.blocks()] == [160_000, 160_000, 80_000]
    assert (heard.peak, heard.seconds, heard.total_s) == (0.5, 25, 25)


def test_what_works_on_blocks_as_they_come_is_told_after_each():
    seen: list[tuple[str, float, float | None]] = []
    heard = Heard(np.zeros(240_000, np.float32), 16_000, progress=lambda *report: seen.append(report))
    list(heard.worked_through(heard.blocks()))
    assert seen == [("model", 10, 15), ("read", 10, 15), ("model", 15, 15), ("read", 15, 15)]


@pytest.mark.parametrize(("limit_s", "seconds"), [(5.0, 10), (10.0, 20), (25.0, 25), (math.inf, 25)])
def test_what_is_read_ahead_ends_with_the_first_block_beyond_the_limit(limit_s: float, seconds: float):
    wave = np.arange(400_000, dtype=np.float32) / 400_000
    heard = Heard(wave, 16_000)
    blocks = heard.read_ahead(limit_s)
    assert heard.seconds == seconds
    np.testing.assert_array_equal(np.concatenate(list(blocks)), wave)
    assert heard.seconds == 25


def test_what_is_read_ahead_is_given_up_block_by_block_and_may_be_left():
    heard = Heard(np.zeros(400_000, np.float32), 16_000)
    blocks = heard.read_ahead(math.inf)
    block = next(blocks)
    given = weakref.ref(block)
    del block
    assert len(next(blocks)) == 160_000
    assert given() is None
    heard.progress = lambda *_: False
    with pytest.raises(Cancelled):
        next(blocks)
