"""Reading of recordings: formats, sample rates, channels, and the same samples from every kind of source."""

import io
import os
import struct
import threading
import tracemalloc
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
import soundfile

from sortformer import audio
from sortformer.audio import reading
from sortformer.audio.files import can_be_read_again
from sortformer.audio.reading import opened, up_to
from sortformer.audio.signal import mixed
from sortformer.errors import InputError
from sortformer.formats.folders import AUDIO_SUFFIXES
from tests.audio.makers import (
    FFMPEG_FORMATS,
    SOUNDFILE_FORMATS,
    chirp,
    encode,
    fading_aac,
    lag,
    live_mp3,
    made,
    piped_flac,
    write,
)

CLIPS = Path(__file__).parents[1] / "golden/clips"


@pytest.mark.parametrize("extension", SOUNDFILE_FORMATS)
def test_formats_of_soundfile_are_read(tmp_path, extension):
    wave = chirp(2, 16_000)
    path = made(tmp_path / f"clip.{extension}", wave, 16_000)
    _assert_heard(audio.read(path), wave)
    info = audio.probe(path)
    assert info.duration_s == pytest.approx(2.0, abs=0.1)
    assert not info.estimated


@pytest.mark.parametrize("extension", FFMPEG_FORMATS)
def test_formats_of_ffmpeg_are_read(tmp_path, extension):
    wave = chirp(2, 48_000, channels=2)
    path = made(tmp_path / f"clip.{extension}", wave, 48_000)
    _assert_heard(audio.read(path), audio.read(wave, 48_000))
    info = audio.probe(path)
    assert (info.sample_rate, info.channels) == (48_000, 2)
    assert info.duration_s == pytest.approx(2.0, abs=0.1)
    assert not info.estimated


@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize(
    ("suffix", "codec", "read_as"),
    [
        (".voc", "pcm_s16le", "voc/pcm_s16le"),
        (".aifc", "adpcm_ima_qt", "aiff/adpcm_ima_qt"),
        (".w64", "pcm_f32le", "w64/float"),
        (".w64", "pcm_mulaw", "w64/pcm_mulaw"),
        (".w64", "pcm_alaw", "w64/pcm_alaw"),
        (".w64", "adpcm_ms", "w64/adpcm_ms"),
        (".w64", "pcm_s24le", "w64/pcm_24"),
    ],
)
def test_what_libsndfile_misreads_is_read(tmp_path, suffix, codec, read_as, channels):
    rate = 96_000  # above 48 kHz, FFmpeg writes the extensible header of Microsoft's formats
    wave = chirp(2, rate, channels)
    path = encode(tmp_path / f"clip{suffix}", wave, rate, codec, "aiff" if suffix == ".aifc" else None)
    heard, wanted = audio.read(path), audio.read(wave, rate)
    assert audio.probe(path).codec == read_as
    assert len(heard) == pytest.approx(32_000, abs=640)  # a block of ADPCM
    error = heard[:32_000] - wanted[: len(heard)]
    assert np.square(error).mean() < 0.01 * np.square(wanted).mean()
    np.testing.assert_allclose(audio.crop(path, 0.5, 1.0), heard[8_000:24_000], atol=0.001)


def test_the_channels_of_an_svx_follow_each_other(tmp_path):
    left, right = (np.round(127 * chirp(2, 16_000) * scale).astype(np.int8) for scale in (1, 2))
    chunks = [
        (b"VHDR", struct.pack(">IIIHBBI", 32_000, 0, 0, 16_000, 1, 0, 0x10000)),
        (b"CHAN", struct.pack(">I", 6)),  # left and right
        (b"BODY", left.tobytes() + right.tobytes()),
    ]
    content = b"8SVX" + b"".join(name + struct.pack(">I", len(each)) + each for name, each in chunks)
    path = tmp_path / "clip.8svx"
    path.write_bytes(b"FORM" + struct.pack(">I", len(content)) + content)
    wanted = (left.astype(np.float32) + right) / 256
    np.testing.assert_allclose(audio.read(path), wanted, atol=1e-6)


TAKEN = {
    "aac": "m4v 3g2 flv",
    "ac3": "ac3 vob mts m2ts m2t",
    "eac3": "eac3 ec3",
    "libopus": "ogv",
    "g722": "g722",
    "mp2": "mp2 mpa mpg mpeg wmv asf",
}


@pytest.mark.parametrize(
    ("codec", "extension"), [(codec, extension) for codec, several in TAKEN.items() for extension in several.split()]
)
def test_what_is_taken_from_folders_is_read(tmp_path, codec, extension):
    if codec not in av.codecs_available:
        pytest.skip(f"FFmpeg has no {codec} here")
    rate = {"g722": 16_000, "flv": 44_100}.get(extension, 48_000)
    wave = chirp(2, rate)
    heard = audio.read(encode(tmp_path / f"clip.{extension}", wave, rate, codec))
    assert f".{extension}" in AUDIO_SUFFIXES
    assert len(heard) == pytest.approx(32_000, abs=1_600)
    assert abs(lag(heard, audio.read(wave, rate))) < 1_600  # not every container stores the priming of its encoder


@pytest.mark.parametrize("extension", ["amr", "awb", "spx"])
def test_codecs_of_telephones_are_taken_from_folders(extension):
    path = CLIPS / f"talk.{extension}"
    heard, wave = audio.read(path), audio.crop("demos/meeting.wav", 12.0, 2.0)
    assert path.suffix in AUDIO_SUFFIXES
    assert len(heard) == len(wave)
    late = lag(heard, wave)
    assert 0 <= late < 320  # what their encoders look ahead
    loud, expected = (np.abs(part).reshape(100, -1).mean(axis=1) for part in (np.roll(heard, -late), wave))
    assert np.corrcoef(loud, expected)[0, 1] > 0.9


def test_what_broadcasters_keep_is_taken_from_folders(tmp_path):
    wave = chirp(2, 48_000)
    paths = [
        encode(tmp_path / "clip.mxf", wave, 48_000, "pcm_s16le", "mxf_opatom"),
        write(tmp_path / "clip.bwf", wave, 48_000, format="WAV"),
    ]
    for path in paths:
        assert path.suffix in AUDIO_SUFFIXES
        _assert_heard(audio.read(path), audio.read(wave, 48_000))


@pytest.mark.parametrize(("suffix", "subtype"), [(".gsm", "GSM610"), (".sln", "PCM_16")])
def test_telephone_recordings_whose_format_fixes_their_rate_are_taken_from_folders(tmp_path, suffix, subtype):
    wave = chirp(2, 8_000)
    path = tmp_path / f"call{suffix}"
    soundfile.write(path, wave, 8_000, subtype, format="RAW")
    assert suffix in AUDIO_SUFFIXES
    assert len(audio.read(path)) == pytest.approx(32_000, abs=1_600)
    assert abs(lag(audio.read(path), audio.read(wave, 8_000))) < 160


def test_more_than_eight_channels_are_read_by_ffmpeg_too(tmp_path):
    wave = chirp(1, 16_000, channels=32)
    path = write(tmp_path / "array.wav", wave, 16_000, subtype="FLOAT")
    content = bytearray(path.read_bytes())
    at = content.index(b"data") + 4
    content[at : at + 4] = bytes(4)  # a file without a size is read by FFmpeg
    path.write_bytes(content)
    assert audio.probe(path).codec == "wav/pcm_f32le"
    np.testing.assert_array_equal(audio.read(path), audio.read(wave, 16_000))
    np.testing.assert_array_equal(audio.read(path, channel=32), wave[:, 31])


@pytest.mark.parametrize("order", [122, 123, 124])  # Core Audio's: L R Ls Rs C LFE, L C R Ls Rs LFE, C L R Ls Rs LFE
def test_channels_are_read_in_whatever_order(tmp_path, order):
    wave = chirp(2, 16_000, channels=6)
    path = encode(tmp_path / "film.mov", wave, 16_000, "pcm_s16le")
    content = path.read_bytes()
    at = content.index(b"chan") + 8
    path.write_bytes(content[:at] + struct.pack(">HH", order, 6) + content[at + 4 :])
    assert audio.probe(path).channels == 6
    np.testing.assert_allclose(audio.read(path), audio.read(wave, 16_000), atol=1e-4)
    np.testing.assert_allclose(audio.read(path, channel=6), wave[:, 5], atol=1e-4)


def _assert_heard(wave: np.ndarray, expected: np.ndarray) -> None:
    """Assert the same audio at the same time: lossy codecs may pad the end and lose some detail."""
    assert wave.dtype == np.float32
    assert 0 <= len(wave) - len(expected) < 1_600
    assert abs(lag(wave, expected)) <= 1
    assert np.corrcoef(wave[: len(expected)], expected)[0, 1] > 0.98


@pytest.mark.parametrize("subtype", ["PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE", "ULAW"])
def test_every_width_of_sample_is_read(tmp_path, subtype):
    wave = chirp(0.5, 16_000)
    path = write(tmp_path / "clip.wav", wave, 16_000, subtype=subtype)
    np.testing.assert_allclose(audio.read(path), wave, atol=0.02)


@pytest.mark.parametrize("extension", ["ogg", "opus"])
@pytest.mark.parametrize("ended", [True, False])
def test_an_ogg_of_several_streams_behind_each_other_is_read_to_its_end(tmp_path, extension, ended):
    """As from radio stations and from ``cat``; a recorder that crashed does not end its stream."""
    wave = chirp(10, 16_000)
    part = write(tmp_path / "part.ogg", wave, 16_000, **SOUNDFILE_FORMATS[extension]).read_bytes()
    first = part if ended else part[: part.rindex(b"OggS")]
    path = tmp_path / f"chain.{extension}"
    path.write_bytes(first + part + part)
    heard = audio.read(path)
    assert (29.9 if ended else 25) * 16_000 < len(heard) < 30.1 * 16_000
    assert np.corrcoef(heard[-31_000:-1_000], wave[-31_000:-1_000])[0, 1] > 0.98
    assert audio.probe(path).duration_s is None  # no header says it


@pytest.mark.filterwarnings("ignore:.*has 2 audio tracks")
def test_tracks_side_by_side_in_an_ogg_are_no_chain(tmp_path):
    with av.open(str(tmp_path / "talk.ogg"), "w") as made:
        for track in [made.add_stream("flac", rate=16_000, layout="mono") for _ in range(2)]:
            samples = (2**15 * chirp(2, 16_000)).astype(np.int16)
            frame = av.AudioFrame.from_ndarray(samples[None], format="s16", layout="mono")
            frame.sample_rate, frame.pts, frame.time_base = 16_000, 0, Fraction(1, 16_000)
            made.mux([*track.encode(frame), *track.encode(None)])
    assert audio.probe(tmp_path / "talk.ogg").duration_s == pytest.approx(2.0, abs=0.1)
    assert len(audio.read(tmp_path / "talk.ogg")) == pytest.approx(32_000, abs=100)


@pytest.mark.parametrize("seconds", [0.2, 3.0])
def test_a_flac_from_a_pipe_is_read_to_its_end(tmp_path, seconds):
    wave = chirp(seconds, 16_000)
    path = piped_flac(tmp_path / "piped.flac", wave, 16_000)
    np.testing.assert_allclose(audio.read(path), wave, atol=1e-4)
    assert audio.probe(path).duration_s is None


@pytest.mark.parametrize("riff", [0, 784_044])
def test_a_wav_is_as_long_as_either_of_its_sizes_says(tmp_path, riff):
    """Notes of any length may follow the samples, and some programs forget to say how long the whole is."""
    path = write(tmp_path / "call.wav", chirp(12, 16_000), 16_000)
    content = path.read_bytes()
    notes = struct.pack("<4sI", b"note", 400_000) + bytes(400_000) if riff else b""
    path.write_bytes(content[:4] + struct.pack("<I", riff) + content[8:] + notes)
    assert len(audio.read(path)) == 12 * 16_000


def test_an_mp3_in_a_wav_is_read_without_a_word_on_the_terminal(tmp_path, capfd):
    rng = np.random.default_rng(0)
    wave = (chirp(3, 22_050) + 0.05 * rng.standard_normal(3 * 22_050)).astype(np.float32)
    path = encode(tmp_path / "call.wav", wave, 22_050, "libmp3lame")
    assert len(audio.read(path)) == pytest.approx(3 * 16_000, abs=0.1 * 16_000)
    assert len(audio.crop(path, 1.0, 1.0)) == 16_000
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(("rate", "channels"), [(1_000, 1), (44_100, 2), (16_000, 32), (48_000, 6), (768_000, 1)])
def test_path_file_object_and_array_give_the_same_samples(tmp_path, rate, channels):
    wave = chirp(1.5, rate, channels)
    path = write(tmp_path / "clip.wav", wave, rate, subtype="FLOAT")
    from_path = audio.read(path)
    assert abs(len(from_path) - 24_000) <= 1
    np.testing.assert_array_equal(audio.read(str(path)), from_path)
    np.testing.assert_array_equal(audio.read(io.BytesIO(path.read_bytes())), from_path)
    np.testing.assert_array_equal(audio.read(wave, rate), from_path)
    with path.open("rb") as file:
        np.testing.assert_array_equal(audio.read(file), from_path)


def test_an_encoded_file_gives_the_same_samples_from_path_and_file_object(tmp_path):
    path = encode(tmp_path / "clip.m4a", chirp(1, 44_100), 44_100, "aac")
    np.testing.assert_array_equal(audio.read(path), audio.read(io.BytesIO(path.read_bytes())))


@pytest.mark.parametrize("extension", ["wav", "m4a"])
def test_a_file_object_is_read_from_its_beginning_and_left_open(tmp_path, extension):
    path = made(tmp_path / f"clip.{extension}", chirp(1, 16_000), 16_000)
    with path.open("rb") as file:
        file.seek(17)
        first = audio.read(file)
        np.testing.assert_array_equal(audio.read(file), first)
        assert not file.closed


class Pipe(io.RawIOBase):
    """Bytes that can be read only once, as from a pipe."""

    def __init__(self, content: bytes) -> None:
        self._content = io.BytesIO(content)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self._content.readinto(buffer)


@pytest.mark.parametrize("extension", ["wav", "m4a"])
def test_a_pipe_is_read(tmp_path, extension):
    path = made(tmp_path / f"clip.{extension}", chirp(1, 16_000), 16_000)
    np.testing.assert_array_equal(audio.read(Pipe(path.read_bytes())), audio.read(path))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are a matter of POSIX systems")
def test_a_named_pipe_is_read(tmp_path):
    path, pipe = write(tmp_path / "clip.wav", chirp(1, 16_000), 16_000), tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(path.read_bytes()))
    writer.start()
    wave = audio.read(pipe)
    writer.join()
    np.testing.assert_array_equal(wave, audio.read(path))
    for source, again in (
        (pipe, False),
        ({"audio": pipe}, False),
        (path, True),
        (tmp_path / "absent", True),
        (wave, True),
    ):
        assert can_be_read_again(source) == again


@pytest.mark.parametrize("name", ["my meeting 1.wav", "会议 réunion.wav", "-.wav", "wav"])
def test_names_with_spaces_and_any_letters_are_read(tmp_path, name):
    soundfile.write(tmp_path / name, chirp(0.5, 16_000), 16_000, format="WAV")
    assert len(audio.read(tmp_path / name)) == 8_000


def test_the_content_decides_and_not_the_extension(tmp_path):
    path = encode(tmp_path / "clip.m4a", chirp(1, 16_000), 16_000, "aac")
    renamed = path.rename(tmp_path / "clip.wav")
    assert len(audio.read(renamed)) >= 16_000


def test_one_channel_can_be_chosen(tmp_path):
    wave = chirp(1, 16_000, channels=2)
    path = write(tmp_path / "call.wav", wave, 16_000, subtype="FLOAT")
    np.testing.assert_array_equal(audio.read(path, channel=2), wave[:, 1])
    with pytest.raises(InputError, match=r"call\.wav has 2 channels: channel 3 does not exist"):
        audio.read(path, channel=3)


@pytest.mark.parametrize("block_s", [0.01, 0.37, 1.0, 100.0])
def test_blocks_are_the_recording_cut_in_equal_parts(tmp_path, block_s):
    path = write(tmp_path / "clip.flac", chirp(2.345, 44_100, channels=2), 44_100)
    parts = list(audio.blocks(path, block_s=block_s))
    np.testing.assert_array_equal(np.concatenate(parts), audio.read(path))
    assert {len(part) for part in parts[:-1]} <= {round(block_s * 16_000)}


@pytest.mark.parametrize("extension", ["mp3", "m4a", "wav"])
def test_the_small_pieces_of_decoders_are_joined_before_they_are_mixed(tmp_path, extension, monkeypatch):
    path = made(tmp_path / f"clip.{extension}", chirp(3, 44_100, channels=2), 44_100)
    sizes = []

    def counted(pieces, *rest):
        for piece in pieces:
            sizes.append(len(piece))
            yield from mixed([piece], *rest)

    monkeypatch.setattr(reading, "mixed", counted)
    audio.read(path)
    assert min(sizes[:-1]) >= 16_000


def test_blocks_must_have_a_length():
    for block_s in (0.0, -1.0, 0.5 / 16_000, np.nan, np.inf, 1e308):
        with pytest.raises(InputError, match="block_s must be positive and finite"):
            next(audio.blocks(np.zeros(16_000, np.float32), 16_000, block_s=block_s))
    with pytest.raises(InputError, match="block_s must be a number, got None"):
        next(audio.blocks(np.zeros(16_000, np.float32), 16_000, block_s=None))  # type: ignore[arg-type]


def test_how_long_an_array_is_is_known_before_it_is_read():
    with opened(chirp(1.5, 8_000, channels=2), 8_000) as (duration_s, _):
        assert duration_s == 1.5


@pytest.mark.parametrize(("limit_s", "taken"), [(0.5, 1), (1.0, 2), (1.5, 2), (9.0, 3)])
def test_of_a_long_recording_no_more_is_taken_than_shows_that_it_is_long(limit_s: float, taken: int):
    assert len(up_to(iter([np.zeros(16_000, np.float32)] * 3), limit_s)) == taken


def test_a_recording_is_in_memory_once(tmp_path):
    path = write(tmp_path / "long.wav", np.tile(chirp(60, 44_100), 5), 44_100)
    for source, rate in ((path, None), (np.zeros(4_800_000, np.int16), 16_000)):
        tracemalloc.start()
        wave = audio.read(source, rate)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < wave.nbytes + 4_000_000


def test_an_excerpt_is_in_memory_once(tmp_path):
    path = write(tmp_path / "long.wav", np.tile(chirp(60, 16_000), 5), 16_000)
    tracemalloc.start()
    wave = audio.crop(path, 1.0, None)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < wave.nbytes + 4_000_000


def test_probe_tells_what_the_header_says(tmp_path):
    path = write(tmp_path / "clip.flac", chirp(3, 44_100, channels=2), 44_100)
    assert audio.probe(path) == audio.AudioInfo(duration_s=3.0, sample_rate=44_100, channels=2, codec="flac")
    with pytest.raises(InputError, match="probe needs a path or a binary file object, got ndarray"):
        audio.probe(chirp(3.0, 44_100))  # pyright: ignore[reportArgumentType]


def test_a_duration_that_follows_from_the_bit_rate_is_an_estimate(tmp_path):
    for path, wrong_s in ((live_mp3(tmp_path / "live.mp3"), 10), (fading_aac(tmp_path / "fading.aac"), 3)):
        found = audio.probe(path)
        assert found.estimated
        assert found.duration_s == pytest.approx(wrong_s, abs=1)
        assert len(audio.read(path)) == pytest.approx(8.1 * 16_000, abs=0.1 * 16_000)


@pytest.mark.parametrize("source", [np.zeros(16_000, np.float32), {"audio": "talk.wav"}], ids=["array", "mapping"])
def test_an_excerpt_is_of_a_file(source):
    with pytest.raises(InputError, match=r"crop needs a path or a binary file object, got (ndarray|dict): slice"):
        audio.crop(source, 0.0, 0.5)


def test_a_sample_rate_beside_a_file_is_refused(tmp_path):
    path = write(tmp_path / "clip.wav", chirp(1, 16_000), 16_000)
    with pytest.raises(InputError, match="has its own"):
        audio.read(path, sample_rate=8_000)
