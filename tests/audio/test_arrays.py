"""Arrays and tensors as sources."""

import io
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.io import wavfile

from sortformer import audio
from sortformer.audio.arrays import as_samples, float_pieces
from sortformer.audio.files import name_of, uri_of
from sortformer.errors import InputError
from tests.audio.makers import chirp, write


@given(seed=st.integers(0, 2**32 - 1), dtype=st.sampled_from([np.int8, np.int16, np.int32, np.uint8]))
def test_integers_span_minus_one_to_one(seed, dtype):
    limits = np.iinfo(dtype)
    middle = (limits.max + limits.min + 1) / 2
    quarter = (limits.max - middle) // 2
    samples = np.random.default_rng(seed).integers(middle - quarter, middle + quarter, 2_000).astype(dtype)
    samples[:2] = limits.min, limits.max
    wave = audio.read(samples, 16_000)
    np.testing.assert_allclose(wave, (samples - middle) / (limits.max - middle + 1), atol=1e-7)
    assert wave[0] == -1.0
    assert wave.max() <= 1.0


@pytest.mark.parametrize("subtype", ["PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE"])
@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.filterwarnings("ignore:Chunk")
def test_what_scipy_reads_of_a_wav_is_the_same_audio(tmp_path: Path, subtype: str, channels: int):
    path = write(tmp_path / "talk.wav", chirp(0.5, 16_000, channels), 16_000, subtype=subtype)
    rate, samples = wavfile.read(path)
    np.testing.assert_array_equal(audio.read(samples, rate), audio.read(path))


@pytest.mark.parametrize("subtype", ["ULAW", "ALAW", "PCM_S8", "PCM_16"])
@pytest.mark.parametrize("gain", [0.05, 1.0, 3.0])
def test_bytes_that_are_not_8_bit_samples_are_refused(subtype: str, gain: float):
    file = io.BytesIO()
    soundfile.write(file, gain * chirp(2.0, 8_000), 8_000, subtype, "LITTLE", "RAW")
    with pytest.raises(InputError, match=r"RMS of these uint8 samples is 0\.\d\d of full scale, .* decode them first"):
        audio.read(np.frombuffer(file.getvalue(), np.uint8), 8_000)


@pytest.mark.parametrize("shape", [(2, 40), (1, 64), (8, 9)])
def test_a_block_with_less_samples_than_many_channels_is_refused(shape):
    with pytest.raises(InputError, match="has fewer samples than channels"):
        as_samples(np.zeros(shape, np.float32), block=True)
    assert as_samples(np.zeros(shape[::-1], np.float32), block=True).shape == shape[::-1]
    for square_or_few in ((1, 8), (9, 9)):
        assert as_samples(np.zeros(square_or_few, np.float32), block=True).shape == square_or_few


def test_a_block_of_too_many_columns_for_channels_has_them_as_samples():
    assert as_samples(np.zeros((2, 65), np.float32), block=True).shape == (65, 2)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_float_arrays_of_any_width_are_read(dtype):
    wave = chirp(0.5, 16_000).astype(dtype)
    np.testing.assert_allclose(audio.read(wave, 16_000), wave, atol=1e-7)


def test_the_result_does_not_share_memory_with_the_array():
    wave = chirp(0.5, 16_000)
    assert not np.shares_memory(audio.read(wave, 16_000), wave)


@pytest.mark.parametrize("channels", [2, 5, 32, 64])
def test_the_short_axis_is_the_channels_whichever_comes_first(channels):
    samples = chirp(0.5, 16_000, channels)
    expected = samples.astype(np.float64).mean(axis=1)
    np.testing.assert_allclose(audio.read(samples, 16_000), expected, atol=1e-6)
    np.testing.assert_array_equal(audio.read(samples.T, 16_000), audio.read(samples, 16_000))


def test_strided_and_reversed_views_are_read_as_they_are_seen():
    samples = chirp(1, 16_000)
    np.testing.assert_array_equal(audio.read(samples[::-2], 8_000), audio.read(samples[::-2].copy(), 8_000))


@pytest.mark.parametrize("tensor", [torch.float32, torch.float64, torch.int16])
def test_tensors_are_read_through_the_array_protocol(tensor):
    wave = chirp(0.5, 16_000)
    samples = torch.from_numpy(wave * 32_767 if tensor == torch.int16 else wave).to(tensor)
    np.testing.assert_allclose(audio.read(samples[None], 16_000), wave, atol=1e-4)


def test_a_stream_takes_8_bit_samples_as_a_recording_does():
    samples = (128 + 127 * chirp(0.5, 16_000, 2)).astype(np.uint8)
    (block,) = float_pieces(as_samples(samples, block=True))
    np.testing.assert_allclose(block.mean(axis=1), audio.read(samples, 16_000), atol=1e-7)


def test_what_offers_the_older_array_protocol_is_read_too():
    wave = chirp(0.5, 16_000)
    older = SimpleNamespace(__array_interface__=wave.__array_interface__)
    np.testing.assert_array_equal(audio.read(older, 16_000), wave)


def test_quiet_samples_of_32_bits_are_of_32_bits_where_a_stream_brings_them():
    quiet = np.full((160, 1), 12_345, np.int32)
    assert as_samples(quiet, block=True) is quiet
    assert np.abs(audio.read(np.full(16_000, 2**16, np.int32), 16_000)).max() == 2.0**-15
    assert not audio.read(np.zeros(16_000, np.int32), 16_000).any()
    assert audio.read(np.full(16_000, 2 << 8, np.int32), 16_000).all()  # as small as the dither of 24-bit samples


@pytest.mark.parametrize(
    ("source", "rate", "message"),
    [
        (np.zeros(16_000, np.float32), None, "pass sample_rate= in Hz"),
        (np.zeros(16_000, np.float32), 0, "between 1000 and 768000"),
        (np.zeros(16_000, np.float32), 16, "between 1000 and 768000"),
        (np.zeros(16_000, np.float32), 999, "between 1000 and 768000"),
        (np.zeros(16_000, np.float32), 768_001, "between 1000 and 768000"),
        (np.zeros(16_000, np.float32), 10**400, "whole number"),
        (np.zeros(16_000, np.float32), 16_000.5, "whole number"),
        (np.zeros(16_000, np.float32), "16k", "whole number"),
        (np.zeros(16_000, np.float32), float("nan"), "whole number"),
        (np.zeros(16_000, np.int64), 16_000, "int64 has no full scale"),
        (np.zeros(16_000, np.uint16), 16_000, "uint16 has no full scale"),
        (np.zeros(16_000, np.uint32), 16_000, "uint32 has no full scale"),
        (np.zeros(16_000, np.uint64), 16_000, "uint64 has no full scale"),
        (np.zeros(16_000, np.uint8), 16_000, "in which silence is 128"),
        (np.zeros(16_000, bool), 16_000, "bool has no full scale"),
        (np.zeros(16_000, complex), 16_000, "complex128 has no full scale"),
        (np.array("hello"), 16_000, "no full scale"),
        (
            np.full(16_000, 1 - 2**15, np.int32),
            16_000,
            "these int32 samples is 32767, full scale is 2147483648: if they are 16-bit samples",
        ),
        (
            np.arange(-(2**15), 1, 5, dtype=np.int32),
            16_000,
            "these int32 samples is 32768, full scale is 2147483648: if they are 16-bit samples",
        ),
        (np.zeros(0, np.float32), 16_000, "is empty"),
        (np.zeros((0, 2), np.float32), 16_000, "is empty"),
        (np.zeros((), np.float32), 16_000, r"got \(\)"),
        (np.zeros((1, 2, 16_000), np.float32), 16_000, r"got \(1, 2, 16000\)"),
        (np.zeros((100, 100), np.float32), 16_000, "the channel axis of an audio array .* is ambiguous"),
        (np.zeros((2, 2), np.float32), 16_000, "the channel axis of an audio array .* is ambiguous"),
        (np.zeros((16_000, 65), np.float32), 16_000, "the channel axis of an audio array .* is ambiguous"),
        (np.zeros(800, np.float32), 16_000, r"only 0\.050 s"),
        (np.full(16_000, np.nan, np.float32), 16_000, r"NaN\) at 0\.000 s"),
        (np.full(16_000, 1e300), 16_000, "infinite"),
        (np.full(16_000, 20_000.0, np.float32), 16_000, "divide them by full scale"),
        (torch.zeros(16_000, requires_grad=True), 16_000, "detached float32 tensor"),
        ([0.0] * 16_000, 16_000, "lists in numpy.asarray"),
        (b"RIFF", None, "got bytes: wrap bytes in io.BytesIO"),
        (memoryview(b"RIFF"), None, "got memoryview: wrap bytes in io.BytesIO"),
        ((np.zeros(16_000), 16_000), None, "got tuple: pass the array, and its rate as sample_rate="),
        (["one.wav", Path("two.wav")], None, "got list: pass one recording at a time"),
        ({"audio": "one.wav"}, None, r"^one\.wav does not exist"),
        ({"audio": "one.wav", "channel": 0}, None, "pass channel=, counted from 1"),
        ({"samples": np.zeros(16_000)}, None, "got dict: pass the waveform, and its rate as sample_rate="),
        ({"waveform": np.full(16_000, np.nan), "sample_rate": 16_000, "uri": "monday"}, None, "monday .*NaN"),
        ({"waveform": np.zeros(16_000)}, None, "has no sample rate of its own"),
        ({"waveform": np.zeros(16_000), "sample_rate": 16_000}, 8_000, "the waveform already has a sample rate"),
        ({"waveform": np.zeros(16_000), "sample_rate": 16_000, "channel": 0}, None, "pass channel=, counted from 1"),
        (None, None, "got NoneType$"),
    ],
)
def test_a_bad_array_is_refused_in_one_sentence(source, rate, message):
    with pytest.raises(InputError, match=message):
        audio.read(source, rate)


@pytest.mark.parametrize("content", [bytes(640), bytearray(640), memoryview(bytes(640))])
def test_bytes_in_place_of_samples_are_told_how_to_be_some(content):
    with pytest.raises(InputError, match=r"pass numpy\.frombuffer\(data, 'int16'\), for example"):
        as_samples(content, block=True)
    assert len(as_samples(np.zeros(320, np.int16).data, block=True)) == 320


@pytest.mark.parametrize("rate", [1_000, 768_000, 16_000.0, np.int16(16_000), np.float32(16_000)])
def test_a_rate_is_any_whole_number_of_hertz_that_sound_has(rate):
    assert len(audio.read(chirp(0.5, int(rate)), rate)) == 8_000


@pytest.mark.parametrize("channel", [0, -1, 1.0, True, "1"])
def test_channels_are_counted_from_one(channel):
    with pytest.raises(InputError, match="channel must be a whole number, 1 or more"):
        audio.read(chirp(0.5, 16_000), 16_000, channel)


@pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy])
def test_a_waveform_with_its_rate_is_what_pyannote_takes(kind):
    samples = chirp(0.5, 8_000, 2).T
    wave = audio.read({"waveform": kind(samples), "sample_rate": 8_000})
    np.testing.assert_array_equal(wave, audio.read(samples, 8_000))


def test_the_audio_of_a_dataset_is_taken_by_the_name_of_its_file():
    row = {"path": "clips/one.mp3", "array": chirp(0.5, 8_000), "sampling_rate": 8_000}
    np.testing.assert_array_equal(audio.read(row), audio.read(row["array"], 8_000))
    assert uri_of(row) == "one"
    assert uri_of(row | {"path": None}) == "audio"
    assert uri_of(row | {"path": "u\N{COMBINING DIAERESIS}.mp3"}) == "\N{LATIN SMALL LETTER U WITH DIAERESIS}"


def test_the_audio_of_a_dataset_may_be_a_decoder():
    samples = SimpleNamespace(data=torch.from_numpy(chirp(0.5, 8_000, 2).T), sample_rate=8_000)
    decoder = SimpleNamespace(get_all_samples=lambda: samples)
    np.testing.assert_array_equal(audio.read(decoder), audio.read(samples.data, 8_000))
    with pytest.raises(InputError, match="the waveform already has a sample rate"):
        audio.read(decoder, 16_000)


def test_a_file_in_a_mapping_is_read_as_the_file(tmp_path: Path):
    path = write(tmp_path / "one.wav", chirp(0.5, 16_000), 16_000)
    np.testing.assert_array_equal(audio.read({"audio": path, "uri": "monday"}), audio.read(path))
    with path.open("rb") as file:
        np.testing.assert_array_equal(audio.read({"audio": file, "path": "absent.wav"}), audio.read(path))
    with pytest.raises(InputError, match="has its own"):
        audio.read({"audio": path}, 16_000)


def test_a_row_of_a_dataset_that_is_not_decoded_is_its_bytes_or_its_file(tmp_path: Path):
    path = write(tmp_path / "one.wav", chirp(0.5, 16_000), 16_000)
    for row in ({"bytes": path.read_bytes(), "path": "clips/two.wav"}, {"bytes": None, "path": str(path)}):
        np.testing.assert_array_equal(audio.read(row), audio.read(path))
    assert uri_of({"bytes": path.read_bytes(), "path": "clips/two.wav"}) == "two"


def test_a_mapping_is_named_after_the_file_that_is_read(tmp_path: Path):
    path = write(tmp_path / "one.wav", chirp(0.5, 16_000), 16_000)
    row = {"audio": None, "path": str(path)}
    np.testing.assert_array_equal(audio.read(row), audio.read(path))
    assert uri_of(row) == "one"
    assert name_of(row) == str(path)


def test_silence_is_not_an_error():
    assert not audio.read(np.zeros(1_600, np.float32), 16_000).any()


def test_between_pieces_numpy_complains_as_it_did_before():
    before = np.geterr()
    pieces = float_pieces(np.full((100_000, 1), 1e300))
    assert np.isinf(next(pieces)).all()
    assert np.geterr() == before
