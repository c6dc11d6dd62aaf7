"""Headerless samples are decoded as by an independent decoder, however the bytes are cut."""

import io
from pathlib import Path

import numpy as np
import pytest
import soundfile

from sortformer.audio.encodings import ENCODINGS, encoding_named
from sortformer.audio.live import piped
from sortformer.errors import InputError
from tests.audio.makers import chirp

SUBTYPES = {"s16le": "PCM_16", "f32le": "FLOAT", "mulaw": "ULAW", "alaw": "ALAW"}


def raw(samples: np.ndarray, name: str) -> bytes:
    """Samples as libsndfile writes them."""
    file = io.BytesIO()
    soundfile.write(file, samples, 16_000, SUBTYPES[name], "LITTLE", "RAW")
    return file.getvalue()


def as_libsndfile_hears(content: bytes, name: str) -> np.ndarray:
    kind = {"channels": 1, "samplerate": 16_000, "subtype": SUBTYPES[name], "format": "RAW", "endian": "LITTLE"}
    return soundfile.read(io.BytesIO(content), dtype="float32", **kind)[0]


@pytest.mark.parametrize("name", ["mulaw", "alaw"])
def test_every_code_stands_for_what_libsndfile_says(name: str):
    codes = bytes(range(256))
    assert np.array_equal(ENCODINGS[name].decoded(codes)[0], as_libsndfile_hears(codes, name))


@pytest.mark.parametrize("name", SUBTYPES)
def test_samples_through_a_pipe_are_those_that_were_sent(name: str, tmp_path: Path):
    content = raw(chirp(0.5, 16_000), name)
    (tmp_path / "samples").write_bytes(content + b"\x00" * (ENCODINGS[name].kind.itemsize - 1))  # incomplete
    with (tmp_path / "samples").open("rb") as pipe:
        heard = np.concatenate(list(piped(pipe, 16_000, encoding=name)))
    assert np.array_equal(heard, as_libsndfile_hears(content, name))


def test_what_is_said_to_be_samples_may_look_like_anything(tmp_path: Path):
    (tmp_path / "samples").write_bytes(b"any text, of words\n" * 400)
    for name, found in ENCODINGS.items():
        with (tmp_path / "samples").open("rb") as pipe:
            assert sum(map(len, piped(pipe, 16_000, encoding=name))) == 7_600 // found.kind.itemsize


@pytest.mark.parametrize(("name", "rate"), [("s16le", 16_000), ("f32le", 16_000), ("mulaw", 8_000), ("alaw", 8_000)])
def test_without_a_rate_telephone_codes_are_at_that_of_telephones(name: str, rate: int):
    content = raw(chirp(0.5, rate), name)
    expected = np.concatenate(list(piped(io.BytesIO(content), rate, encoding=name)))
    assert len(expected) == 8_000
    np.testing.assert_array_equal(np.concatenate(list(piped(io.BytesIO(content), encoding=name))), expected)


def test_an_encoding_that_is_not_known_is_refused():
    with pytest.raises(InputError, match="there is no sample encoding 'mp3'; choose from s16le, f32le, mulaw, alaw"):
        encoding_named("mp3")
