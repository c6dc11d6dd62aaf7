"""Files that were cut or damaged give what is left and a warning; those that are whole, none."""

import contextlib
import io
import struct
import warnings

import numpy as np
import pytest

from sortformer import SortformerWarning, audio
from sortformer.errors import InputError
from tests.audio.makers import SOUNDFILE_FORMATS, Breaking, chirp, encode, live_mp3, made, write

NOISE = np.random.default_rng(7).integers(0, 256, 20_000, np.uint8).tobytes()


@pytest.mark.parametrize("extension", [*SOUNDFILE_FORMATS, "webm", "mkv"])
def test_a_file_that_was_cut_gives_what_is_left_and_a_warning(tmp_path, extension):
    path = made(tmp_path / f"cut.{extension}", chirp(5, 48_000), 48_000)
    whole = audio.read(path)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) * 7 // 10])
    with pytest.warns(
        audio.AudioWarning, match=rf"cut\.{extension} is damaged or truncated.*: using \d\.\d s"
    ) as caught:
        part = audio.read(path)
    assert len(caught) == 1
    assert 1.0 < len(part) / 16_000 < 4.9
    np.testing.assert_allclose(part[:15_000], whole[:15_000], atol=1e-3)


@pytest.mark.parametrize("kind", ["AIFF", "AU", "CAF", "NIST", "RF64", "SVX", "W64", "WAV", "WAVEX"])
def test_a_header_that_promises_more_than_there_is_is_quoted(tmp_path, kind):
    path = write(tmp_path / "cut.wav", chirp(4, 16_000), 16_000, format=kind, subtype="PCM_16")
    content = path.read_bytes()
    path.write_bytes(content[: len(content) * 3 // 4])
    with pytest.warns(audio.AudioWarning, match=r"using [23]\.\d s of the 4\.0 s that its header states"):
        audio.read(path)


def test_floats_in_a_w64_that_are_missing_are_missed(tmp_path):
    wave = chirp(4, 96_000)
    path = encode(tmp_path / "cut.w64", wave, 96_000, "pcm_f32le")
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.warns(audio.AudioWarning, match=r"using 2\.0 s of the 4\.0 s that its header states"):
        part = audio.read(path)
    np.testing.assert_allclose(part[:31_000], audio.read(wave, 96_000)[:31_000], atol=1e-3)


@pytest.mark.parametrize(("kind", "at"), [("RF64", 20), ("W64", 16)])
def test_the_length_of_what_is_cut_may_need_more_than_32_bits(tmp_path, kind, at):
    path = write(tmp_path / "cut.wav", chirp(4, 16_000), 16_000, format=kind, subtype="PCM_16")
    content = bytearray(path.read_bytes())
    content[at : at + 8] = struct.pack("<Q", 1000 * len(content))
    path.write_bytes(content)
    with pytest.warns(audio.AudioWarning, match=r"using 4\.0 s of the 400\d\.\d s that its header states"):
        audio.read(path)


@pytest.mark.parametrize(("name", "options"), [("cut.mp4", {"movflags": "faststart"}), ("cut.flv", {})])
def test_a_video_that_was_cut_gives_what_is_left_and_a_warning(tmp_path, name, options):
    path = encode(tmp_path / name, chirp(5, 44_100), 44_100, "aac", **options)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) * 7 // 10])
    with pytest.warns(audio.AudioWarning, match=r"using [23]\.\d s of the 5\.\d s that its header states"):
        assert 2 * 16_000 < len(audio.read(path)) < 4.9 * 16_000


def test_an_mp4_without_its_index_is_refused(tmp_path):
    path = encode(tmp_path / "cut.mp4", chirp(5, 16_000), 16_000, "aac")
    path.write_bytes(path.read_bytes()[:20_000])
    with pytest.raises(InputError, match="its index is missing"):
        audio.read(path)


def test_what_follows_a_damaged_part_keeps_its_time(tmp_path):
    path = encode(tmp_path / "scratched.m4a", chirp(5, 16_000), 16_000, "aac")
    whole = audio.read(path)
    content = bytearray(path.read_bytes())
    samples_at = content.index(b"mdat") + 4
    size = struct.unpack(">I", content[samples_at - 8 : samples_at - 4])[0]
    scratch = slice(samples_at + size // 3, samples_at + size // 3 + size // 10)
    content[scratch] = b"\xff" * (scratch.stop - scratch.start)
    path.write_bytes(content)
    with pytest.warns(audio.AudioWarning, match=r"scratched\.m4a is damaged .*of its packets could not be decoded"):
        part = audio.read(path)
    assert len(part) == pytest.approx(len(whole), abs=3_200)
    np.testing.assert_allclose(part[-20_000:-2_000], whole[len(whole) - 20_000 : len(whole) - 2_000], atol=0.05)


@pytest.mark.parametrize("extension", SOUNDFILE_FORMATS)
def test_a_whole_file_gives_no_warning(tmp_path, extension):
    audio.read(made(tmp_path / f"whole.{extension}", chirp(3, 48_000), 48_000))


@pytest.mark.parametrize(
    ("kind", "written"),
    [
        *(("WAV", {40: struct.pack("<I", size)}) for size in (0, 0x7FFFFFFF, 0xFFFFFFFF)),
        # The sizes of the file and of its samples, and their count, are written at the end.
        *(("RF64", {0: tag, 20: bytes(24)}) for tag in (b"RF64", b"BW64")),
        ("W64", {16: b"\xff" * 8, 120: b"\xff" * 8}),
        ("AU", {8: b"\xff" * 4}),
    ],
)
def test_what_came_through_a_pipe_or_was_not_finished_has_no_true_size_and_is_whole_all_the_same(
    tmp_path, kind, written
):
    path = write(tmp_path / "piped.wav", chirp(2, 16_000), 16_000, format=kind, subtype="PCM_16")
    content = bytearray(path.read_bytes())
    for at, field in written.items():
        content[at : at + len(field)] = field
    path.write_bytes(content)
    assert len(audio.read(path)) == 32_000


def test_an_mp3_whose_length_is_only_guessed_gives_no_warning(tmp_path):
    path = live_mp3(tmp_path / "live.mp3")
    assert len(audio.read(path)) > 8 * 16_000


def test_a_tag_before_an_mp3_does_not_hide_its_length(tmp_path):
    path = write(tmp_path / "tagged.mp3", chirp(5, 16_000), 16_000)
    picture = bytes(300)
    tag = b"ID3\x03\0\0" + bytes([0, 0, len(picture) >> 7, len(picture) & 127]) + picture
    content = tag + path.read_bytes()
    path.write_bytes(content[: len(content) * 6 // 10])
    with pytest.warns(audio.AudioWarning, match=r"of the 5\.0 s that its header states"):
        audio.read(path)


def test_a_header_that_counts_only_part_of_the_samples_is_said(tmp_path):
    """As after a crash of the writer."""
    path = write(tmp_path / "long.wav", chirp(30, 8_000), 8_000)
    content = bytearray(path.read_bytes())
    content[4:8], content[40:44] = struct.pack("<I", 80_036), struct.pack("<I", 80_000)
    path.write_bytes(content)
    with pytest.warns(audio.AudioWarning, match=r"\(its header covers only part of it, .*\): using 5\.0 s"):
        assert len(audio.read(path)) == 80_000


def test_a_count_that_wraps_after_4_gb_is_said(tmp_path):
    path = write(tmp_path / "days.wav", chirp(30, 8_000), 8_000)
    with path.open("r+b") as file:
        file.truncate(44 + 480_000 + (1 << 32))  # zeros that take no room on the disk
    with pytest.warns(audio.AudioWarning, match=r"\(its header covers only part of it, .*\): using 30\.0 s"):
        assert len(audio.read(path)) == 480_000


@pytest.mark.parametrize("extra", [1, 2, 3])
def test_a_ragged_end_is_left_out(tmp_path, extra):
    path = write(tmp_path / "ragged.wav", chirp(1, 16_000, channels=2), 16_000)
    path.write_bytes(path.read_bytes()[:-extra])
    assert len(audio.read(path)) == 15_999


def test_what_follows_the_samples_is_left_out(tmp_path):
    path = write(tmp_path / "tail.wav", chirp(1, 16_000), 16_000)
    path.write_bytes(path.read_bytes() + NOISE)
    assert len(audio.read(path)) == 16_000


@pytest.mark.parametrize("extension", ["wav", "flac", "mp3"])
def test_a_disk_that_fails_gives_what_is_before_and_a_warning(tmp_path, capfd, extension):
    path = made(tmp_path / f"talk.{extension}", chirp(30, 16_000), 16_000)
    with pytest.warns(audio.AudioWarning, match=r"damaged or truncated \(Input/output error\): using"):
        audio.read(Breaking(path.read_bytes(), OSError(5, "Input/output error")))
    assert capfd.readouterr() == ("", "")


def test_a_disk_that_fails_at_once_is_named_with_the_file():
    class Failing(io.BytesIO):
        name = "talk.wav"

        def read(self, count=-1):
            if count:
                raise OSError(5, "Input/output error")
            return b""

    with pytest.raises(InputError, match=r"^talk\.wav cannot be read: Input/output error$"):
        audio.read(Failing(b"RIFF"))


def test_a_chunk_that_ends_beyond_any_file_is_refused_without_a_word_on_the_terminal(tmp_path, capfd):
    path = tmp_path / "talk.caf"
    description = struct.pack(">4sQd4s5I", b"desc", 32, 16_000, b"lpcm", 0, 2, 1, 1, 16)
    path.write_bytes(b"caff\0\1\0\0" + description + struct.pack(">4sQ", b"free", 2**62) + bytes(64))
    with pytest.raises(InputError, match="cannot be read as audio"):
        audio.read(path)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("extension", ["wav", "flac", "opus", "mp3", "m4a", "webm"])
def test_no_damaged_byte_gives_another_error_or_a_word_on_the_terminal(tmp_path, capfd, extension):
    rate = 16_000 if extension in SOUNDFILE_FORMATS else 48_000
    path = made(tmp_path / f"clip.{extension}", chirp(0.5, rate), rate)
    content, rng = path.read_bytes(), np.random.default_rng(3)
    for _ in range(60):
        damaged = bytearray(content)
        places = rng.integers(0, min(len(content), int(rng.choice([64, 1_000, len(content)]))), 3)
        for place in places:
            damaged[place] = rng.integers(256)
        with warnings.catch_warnings(action="ignore", category=SortformerWarning), contextlib.suppress(InputError):
            assert np.isfinite(audio.read(io.BytesIO(damaged))).all()
    assert capfd.readouterr() == ("", "")
