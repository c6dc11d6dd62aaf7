"""Files with several audio tracks, of which one is read."""

import re
from pathlib import Path

import av
import numpy as np
import pytest

from sortformer import audio
from tests.audio.makers import chirp, encode

RATE = 16_000
FIRST, SECOND = chirp(2, RATE), 0.1 * chirp(2, RATE)


def tracks(path: Path, default: int | None) -> Path:
    """Write a file with two tracks, one of which may be the default one."""
    with av.open(str(path), "w") as made:
        for number in range(2):
            track = made.add_stream("flac", rate=RATE)
            track.layout = "mono"
            track.disposition = av.stream.Disposition(number == default)
        for track, wave in zip(made.streams.audio, (FIRST, SECOND), strict=True):
            frame = av.AudioFrame.from_ndarray((wave * 32_767).astype(np.int16)[None], "s16", "mono")
            frame.sample_rate, frame.pts = RATE, 0
            made.mux([*track.encode(frame), *track.encode(None)])
    return path


@pytest.mark.parametrize(("default", "expected"), [(0, FIRST), (1, SECOND), (None, FIRST)])
def test_the_default_track_is_read_and_the_others_are_told_of(
    tmp_path: Path, default: int | None, expected: np.ndarray
):
    path, number = tracks(tmp_path / "talk.mkv", default), 1 + (default or 0)
    with pytest.warns(UserWarning, match=f"{re.escape(str(path))} has 2 audio tracks: using number {number}, which"):
        np.testing.assert_allclose(audio.read(path), expected, atol=1e-4)
    assert (audio.probe(path).track, audio.probe(path).tracks) == (number, 2)


def test_an_excerpt_tells_of_the_other_tracks(tmp_path: Path):
    path = tracks(tmp_path / "talk.mkv", 1)
    with pytest.warns(UserWarning, match=f"{re.escape(str(path))} has 2 audio tracks: using number 2, which"):
        np.testing.assert_allclose(audio.crop(path, 0.5, 1.0), SECOND[8_000:24_000], atol=1e-4)


def test_a_single_track_is_read_without_a_word(tmp_path: Path):
    path = encode(tmp_path / "talk.mka", FIRST, RATE, "flac")
    audio.read(path)
    assert audio.probe(path).tracks == 1
