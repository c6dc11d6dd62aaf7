"""The program around: what it has set in torch or numpy for itself does not change our results."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from sortformer import Diarizer, Session, VoiceStore, audio
from sortformer.audio.loudness import levelled
from sortformer.audio.offset import centred
from tests.small_models import SHAPES, small_model

WAVE = audio.crop("demos/meeting.wav", 0.0, 15.0)


@contextmanager
def of_dtype(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


SURROUNDINGS = {
    "float64": partial(of_dtype, torch.float64),
    "float16": partial(of_dtype, torch.float16),
    "another device": partial(torch.device, "meta"),
    "numpy raises": partial(np.errstate, all="raise"),
}
surroundings = pytest.mark.parametrize("around", SURROUNDINGS.values(), ids=SURROUNDINGS)


def results(diarizer: Diarizer, folder: Path) -> list[Any]:
    session = diarizer.stream("1s")
    session.enroll("Ada", WAVE[160_000:])
    session.push(WAVE[:48_000])
    session = Session.restore(diarizer.model, session.snapshot())
    session.push(WAVE[48_000:])
    VoiceStore(diarizer).add("Ada", WAVE, sample_rate=16_000).save(folder / "voices", overwrite=True)
    voices = VoiceStore(diarizer).merge(VoiceStore.load(folder / "voices", diarizer))
    return [
        diarizer.probabilities(WAVE, sample_rate=16_000).data.tobytes(),
        diarizer.embeddings(WAVE, sample_rate=16_000).data.tobytes(),
        session.finish(),
        voices.diarize(WAVE, sample_rate=16_000, lam=0.5),
    ]


@pytest.fixture(scope="module")
def diarizer() -> Diarizer:
    return Diarizer.load(device="cpu")


@pytest.fixture(scope="module")
def expected(diarizer: Diarizer, tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    return results(diarizer, tmp_path_factory.mktemp("voices"))


@surroundings
def test_results_are_the_same_whatever_the_program_has_set(around, diarizer, expected, tmp_path):
    with around():
        assert results(diarizer, tmp_path) == expected


@surroundings
def test_a_model_is_loaded_the_same_whatever_the_program_has_set(around, diarizer, expected):
    with around():
        loaded = Diarizer.load(device="cpu")
    assert [*map(str, loaded.model.state_dict().items())] == [*map(str, diarizer.model.state_dict().items())]
    assert loaded.probabilities(WAVE, sample_rate=16_000).data.tobytes() == expected[0]


@pytest.mark.parametrize("shape", SHAPES)
def test_every_architecture_computes_in_the_precision_of_its_weights_not_of_the_program(shape):
    model, wave = small_model(SHAPES[shape]), torch.from_numpy(WAVE[None, :20_000])
    with torch.no_grad():
        said = model(wave)
        with of_dtype(torch.float64):
            again = model(wave)
    assert again.probs.dtype is said.probs.dtype
    assert again.probs.equal(said.probs)


def test_audio_far_below_hearing_is_no_error_where_numpy_raises():
    softest = np.full(2_000, 1e-38, np.float32) * np.sin(np.arange(2_000), dtype=np.float32)
    with np.errstate(all="raise"):
        assert np.abs(levelled(centred(softest)[0], 1e4)).max() < 1e-40


def test_results_need_no_metadata_of_the_package_which_a_frozen_program_lacks(monkeypatch, diarizer):
    def absent(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    version = metadata.version("sortformer")
    monkeypatch.setattr(metadata, "version", absent)
    origin = diarizer(WAVE, sample_rate=16_000).origin
    assert origin is not None
    assert origin.version == version
