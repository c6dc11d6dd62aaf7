"""Progress: who waits for a recording is told how far it is, and may end the work."""

from dataclasses import replace
from pathlib import Path

import pytest

from sortformer.diarizer import Diarizer
from sortformer.errors import Cancelled


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


def test_what_progress_raises_comes_out(diarizer: Diarizer, wav: Path):
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        diarizer(wav, progress=stop)
