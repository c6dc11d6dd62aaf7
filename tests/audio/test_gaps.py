"""Containers that say when each part of the sound was heard: where nobody was recorded, there is silence."""

import warnings
from pathlib import Path

import numpy as np
import pytest

from sortformer import audio
from tests.audio.makers import FFMPEG_FORMATS, chirp, delay, encode, lag

RATE = 48_000
EXTENSIONS = ("mp4", "webm", "mkv")
BEGINNING_S = -1.0  # before the lead that encoders put there


def made(folder: Path, extension: str, after_s: float, by_s: float, **options: str) -> tuple[np.ndarray, Path]:
    """What a file of 4 s holds, and the file with everything from a time on that much later."""
    plain = encode(folder / f"plain.{extension}", chirp(4, RATE), RATE, FFMPEG_FORMATS[extension])
    return audio.read(plain), delay(plain, folder / f"late.{extension}", after_s, by_s, **options)


@pytest.mark.parametrize("extension", EXTENSIONS)
@pytest.mark.parametrize("after_s", [BEGINNING_S, 2.0])
@pytest.mark.parametrize("by_s", [0.5, 10.0])
def test_what_follows_a_gap_keeps_its_time(tmp_path: Path, extension: str, after_s: float, by_s: float):
    whole, path = made(tmp_path, extension, after_s, by_s)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        heard = audio.read(path)
    gap, at, near = round(by_s * 16_000), max(0, round(after_s * 16_000)), 1_600
    assert len(heard) == pytest.approx(len(whole) + gap, abs=near)
    np.testing.assert_allclose(heard[: max(0, at - near)], whole[: max(0, at - near)], atol=1e-3)
    assert not heard[at + near : at + gap - near].any()
    assert abs(lag(heard[at + gap :], whole[at:])) <= 400  # 25 ms: the lead of an encoder may be cut off or not
    assert audio.probe(path).duration_s == pytest.approx(len(heard) / 16_000, abs=0.1)
    np.testing.assert_allclose(audio.crop(path, by_s, 2.0), heard[gap : gap + 2 * 16_000], atol=1e-4)


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_times_that_no_recording_has_are_not_followed(tmp_path: Path, extension: str):
    whole, path = made(tmp_path, extension, 2.0, 10_000.0)
    with pytest.warns(audio.AudioWarning, match="its header promises"):
        assert len(audio.read(path)) == pytest.approx(len(whole), abs=1_600)


def test_a_broadcast_that_was_joined_late_begins_where_it_was_joined(tmp_path: Path):
    whole, path = made(tmp_path, "webm", BEGINNING_S, 600.0, live="1")  # without a duration
    assert len(audio.read(path)) == pytest.approx(len(whole), abs=1_600)


def test_a_gap_in_a_recording_that_does_not_know_its_end_is_silence(tmp_path: Path):
    whole, path = made(tmp_path, "webm", 2.0, 10.0, live="1")
    assert audio.probe(path).duration_s is None
    assert len(audio.read(path)) == pytest.approx(len(whole) + 10 * 16_000, abs=1_600)
