"""Files joined end to end, whose channels and rate may change in the middle, are read to their end."""

import io
import itertools
from collections.abc import Iterator
from pathlib import Path

import av
import numpy as np
import pytest

from sortformer import audio
from sortformer.audio.ffmpeg import FfmpegDecoder
from tests.audio.makers import chirp, encode, made

CODECS = {"aac": "aac", "mp3": "libmp3lame"}


def joined(folder: Path, extension: str, *parts: tuple[float, int, int]) -> Path:
    """Write a file of parts of so many seconds, channels, and samples per second."""
    path = folder / f"joined.{extension}"
    content = b""
    for seconds, channels, rate in parts:
        kind = "adts" if extension == "aac" else None
        content += encode(path, chirp(seconds, rate, channels), rate, CODECS[extension], kind).read_bytes()
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("parts", [[(2, 1, 16_000), (3, 2, 16_000)], [(2, 2, 16_000), (3, 1, 32_000)]])
def test_a_part_with_other_channels_or_another_rate_is_read(tmp_path, parts):
    path = joined(tmp_path, "aac", *parts)
    heard = audio.read(path)
    alone = [audio.read(joined(tmp_path, "aac", each)) for each in parts]
    assert len(heard) == pytest.approx(sum(map(len, alone)), abs=1_000)
    wanted = alone[1][len(alone[1]) // 2 :]  # after what the codec remembers of the first part
    np.testing.assert_allclose(heard[-len(wanted) : -2_000], wanted[:-2_000], atol=0.02)


def test_each_channel_of_the_first_part_goes_on_with_the_mean_of_the_others(tmp_path):
    path = joined(tmp_path, "aac", (2, 2, 16_000), (3, 1, 16_000))
    left, right = (audio.read(path, channel=each) for each in (1, 2))
    first, second = slice(2 * 16_000), slice(3 * 16_000, None)  # not the joint, which each release decodes differently
    assert len(left[second]) > 16_000
    assert np.abs(left[first]).max() < np.abs(right[first]).max()
    np.testing.assert_array_equal(left[second], right[second])


def test_the_length_of_joined_mp3s_is_not_promised(tmp_path):
    """The count in the first frame is that of the first part, and FFmpeg estimates a length from its bit rate."""
    path = joined(tmp_path, "mp3", (2, 1, 16_000), (3, 2, 16_000))
    with pytest.warns(audio.AudioWarning, match=r"1 of its packets could not be decoded\): using 5\.\d s$"):
        assert len(audio.read(path)) == pytest.approx(5 * 16_000, abs=5_000)


def test_a_chain_that_ffmpeg_cannot_follow_says_what_to_do(tmp_path):
    parts = [made(tmp_path / "part.ogg", chirp(2, 16_000, channels), 16_000).read_bytes() for channels in (1, 2)]
    with pytest.warns(audio.AudioWarning, match=r"give each part as a file of its own\)\): using 2\.0 s"):
        audio.read(io.BytesIO(b"".join(parts)))


def test_what_ffmpeg_cannot_follow_elsewhere_is_not_called_a_part(tmp_path, monkeypatch: pytest.MonkeyPatch):
    def packets(self: FfmpegDecoder) -> Iterator[av.Packet]:
        yield from itertools.islice(demuxed(self), 40)
        raise av.error.PatchWelcomeError(0, "Not yet implemented in FFmpeg, patches welcome")

    demuxed = FfmpegDecoder._packets
    monkeypatch.setattr(FfmpegDecoder, "_packets", packets)
    with pytest.warns(audio.AudioWarning, match=r"the rest cannot be decoded \(Not yet implemented in FFmpeg"):
        audio.read(made(tmp_path / "talk.m4a", chirp(3, 16_000), 16_000))
