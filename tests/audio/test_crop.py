"""Crops of a recording: the samples that the whole file has there, for any format."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from sortformer import audio
from sortformer.errors import InputError
from tests.audio.makers import SOUNDFILE_FORMATS, chirp, encode, piped_flac, write

SECONDS = 3.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("crops")


@pytest.mark.parametrize(
    ("rate", "channels"), [(16_000, 1), (16_000, 3), (8_000, 1), (44_100, 2), (48_000, 1), (11_025, 1)]
)
@settings(max_examples=12)
@given(start_s=st.floats(0, SECONDS), duration_s=st.floats(0.01, 2 * SECONDS))
def test_it_is_a_slice_of_the_whole(folder: Path, rate: int, channels: int, start_s: float, duration_s: float):
    path = folder / f"{rate}-{channels}.wav"
    if not path.exists():
        write(path, chirp(SECONDS, rate, channels), rate, subtype="FLOAT")
    first, last = round(start_s * 16_000), round((start_s + duration_s) * 16_000)
    expected, found = audio.read(path)[first:last], audio.crop(path, start_s, duration_s)
    if rate == 16_000:
        np.testing.assert_array_equal(found, expected)
    else:
        assert len(found) == len(expected)
        np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize("rate", [16_000, 44_100])
@pytest.mark.parametrize("channel", [None, 2])
def test_one_channel_of_it_and_all_that_follows(folder: Path, rate: int, channel: int | None):
    path = write(folder / f"{rate}-rest.wav", chirp(SECONDS, rate, 3), rate, subtype="FLOAT")
    expected, found = audio.read(path, channel=channel)[17_600:], audio.crop(path, 1.1, None, channel)
    assert len(found) == len(expected)
    np.testing.assert_allclose(found, expected, atol=1e-4)
    with pytest.raises(InputError, match="channel"):
        audio.crop(path, 1.1, None, 4)


def test_a_damaged_file_is_said_to_be_so(tmp_path: Path):
    path = write(tmp_path / "whole.flac", chirp(4, 16_000), 16_000, **SOUNDFILE_FORMATS["flac"])
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 3 // 4])
    with pytest.warns(
        audio.AudioWarning, match=r"whole\.flac is damaged after 2\.\d s .*: using the audio before that"
    ):
        found = audio.crop(path, 1.0, 3.0)
    assert 1.0 < len(found) / 16_000 < 2.1


def test_what_comes_after_it_is_not_looked_at(tmp_path: Path):
    wave = chirp(4, 16_000)
    path = write(tmp_path / "cut.flac", wave, 16_000)
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 3 // 4])
    wave[48_000:] = np.nan
    assert len(audio.crop(path, 1.0, 1.0)) == 16_000
    assert len(audio.crop(write(tmp_path / "broken.wav", wave, 16_000, subtype="FLOAT"), 1.0, 2.0)) == 32_000


@pytest.mark.parametrize("extension", ["flac", "ogg"])
def test_compressed_files_are_entered_in_the_middle(tmp_path: Path, extension: str):
    path = write(tmp_path / f"clip.{extension}", chirp(2, 16_000), 16_000, **SOUNDFILE_FORMATS[extension])
    np.testing.assert_allclose(audio.crop(path, 1.1, 0.5), audio.read(path)[17_600:25_600], atol=1e-4)


@pytest.mark.parametrize(("subtype", "rate"), [("VORBIS", 8_000), ("VORBIS", 16_000), ("OPUS", 16_000)])
def test_the_end_of_an_ogg_is_the_end_of_it(tmp_path: Path, subtype: str, rate: int):
    """After a direct seek there, libsndfile returns samples that are some milliseconds off, as many as requested."""
    for seconds in (11.3, 13.6, 17.1):
        noise = 0.1 * np.random.default_rng(3).standard_normal(round(seconds * rate))
        path = write(tmp_path / f"{seconds}.ogg", noise, rate, subtype=subtype)
        whole = audio.read(path)
        for before in np.linspace(0.15, 1.9, 8):
            found = audio.crop(path, seconds - before, 0.1)
            first = round((seconds - before) * 16_000)
            np.testing.assert_allclose(found, whole[first : first + 1_600], atol=1e-4)


def test_other_formats_are_decoded_up_to_it(tmp_path: Path):
    path = encode(tmp_path / "clip.m4a", chirp(2, 16_000), 16_000, "aac")
    np.testing.assert_array_equal(audio.crop(path, 1.1, 0.5), audio.read(path)[17_600:25_600])


@pytest.mark.parametrize("subtype", ["GSM610", "G721_32", "NMS_ADPCM_32"])
def test_what_has_no_way_to_its_middle_is_decoded_up_to_it(tmp_path: Path, subtype: str):
    path = write(tmp_path / "call.wav", chirp(3, 8_000), 8_000, subtype=subtype)
    whole = audio.read(path)
    np.testing.assert_allclose(audio.crop(path, 1.1, 0.5), whole[17_600:25_600], atol=1e-4)
    np.testing.assert_allclose(audio.crop(path, 0.0, None), whole, atol=1e-4)


def test_a_flac_that_does_not_count_its_samples_is_no_exception(tmp_path: Path):
    path = piped_flac(tmp_path / "piped.flac", chirp(2, 16_000), 16_000)
    np.testing.assert_array_equal(audio.crop(path, 1.1, 0.5), audio.read(path)[17_600:25_600])


def test_channels_that_cancel_each_other_out_there_are_said(tmp_path: Path):
    wave = chirp(3, 16_000)
    path = write(tmp_path / "balanced.wav", np.stack([wave, -wave], axis=1), 16_000)
    with pytest.warns(audio.AudioWarning, match=r"balanced\.wav cancel each other out"):
        audio.crop(path, 1.0, 1.0)
    audio.crop(path, 1.0, 1.0, channel=1)


@pytest.mark.parametrize("rate", [16_000, 44_100])
def test_a_bad_sample_is_named_by_its_time_in_the_file(tmp_path: Path, rate: int):
    wave = chirp(4, rate)
    wave[3 * rate] = np.nan
    path = tmp_path / "broken.wav"
    soundfile.write(path, wave, rate, subtype="FLOAT")
    with pytest.raises(InputError, match=r"NaN\) at 3\.000 s"):
        audio.crop(path, 2.0, 1.5)


def test_past_the_end_there_is_nothing_and_no_file_is_one_sentence(tmp_path: Path):
    path = write(tmp_path / "clip.wav", chirp(1, 16_000), 16_000)
    assert len(audio.crop(path, 5.0, 1.0)) == len(audio.crop(path, 1e306, 1e306)) == 0
    assert len(audio.crop(path, 0.5, 1e306)) == 8_000
    with pytest.raises(InputError, match="does not exist: check the path"):
        audio.crop(tmp_path / "absent.wav", 0.0, 1.0)


@pytest.mark.parametrize("times", [(-1.0, 2.0), (0.0, -1.0), (float("nan"), 1.0), (0.0, float("inf"))])
def test_what_is_no_stretch_is_refused(tmp_path: Path, times: tuple[float, float]):
    path = write(tmp_path / "clip.wav", chirp(1, 16_000), 16_000)
    with pytest.raises(InputError, match="an excerpt needs a start and a duration"):
        audio.crop(path, *times)


@pytest.mark.parametrize(("times", "which"), [((None, 1.0), "start"), ((0.0, "1:00"), "duration")])
def test_a_time_that_is_no_number_is_refused_by_its_name(tmp_path: Path, times: Any, which: str):
    path = write(tmp_path / "clip.wav", chirp(1, 16_000), 16_000)
    with pytest.raises(InputError, match=f"the {which} of an excerpt must be a number, got"):
        audio.crop(path, *times)
