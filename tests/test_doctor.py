"""The doctor reports what is installed and what is missing, without failing."""

from pathlib import Path

import numpy as np
import pytest
import torch

from sortformer import checkpoint, doctor
from sortformer.config.clustering import ClusteringConfig
from sortformer.config.postprocess import PostprocessConfig
from sortformer.diarizer import Diarizer
from tests.tiny import tiny_model


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("doctor"))


def test_a_sound_installation_passes_every_check(model: Path):
    findings = {finding.name: finding for finding in doctor.examine(model, "cpu")}
    assert all(finding.good and finding.detail for finding in findings.values())
    assert f"torch {torch.__version__}" in findings["versions"].detail
    assert findings["weights"].detail.endswith(" parameters, up to 4 speakers")
    assert "5 s of audio to 63 frames" in findings["self-test"].detail


def test_it_says_how_many_speakers_are_told_apart_by_voice(model: Path, tmp_path: Path):
    network, _ = checkpoint.load(model)
    checkpoint.save(tmp_path / "voices", network, PostprocessConfig(clustering=ClusteringConfig(0.4)))
    findings = {finding.name: finding for finding in doctor.examine(tmp_path / "voices", "cpu")}
    assert "up to 8 speakers, 40 on request" in findings["weights"].detail


def test_a_package_that_is_missing_is_named_among_the_versions(model: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(doctor, "_PACKAGES", ("numpy", "no-such-package"))
    versions = next(iter(doctor.examine(model, "cpu")))
    assert versions.detail.endswith(f"numpy {np.__version__}, no-such-package not installed")
    assert versions.good  # it may be optional


def test_a_missing_model_spoils_its_checks_only(tmp_path: Path):
    bad = [finding.name for finding in doctor.examine(tmp_path / "absent", "cpu") if not finding.good]
    assert bad == ["weights", "self-test"]


def test_a_missing_device_spoils_its_checks_only(model: Path):
    bad = [finding for finding in doctor.examine(model, "cuda:99") if not finding.good]
    assert [finding.name for finding in bad] == ["device", "self-test"]
    assert all("cuda:99" in finding.detail for finding in bad)


def test_numbers_that_are_none_are_noticed(model: Path, monkeypatch: pytest.MonkeyPatch):
    broken = Diarizer.load(model, "cpu")
    with torch.no_grad():
        broken.model.head.out.bias.fill_(np.nan)
    monkeypatch.setattr(doctor.Diarizer, "load", lambda *_: broken)
    (finding,) = [finding for finding in doctor.examine(model, "cpu") if not finding.good]
    assert (finding.name, "not finite" in finding.detail) == ("self-test", True)


@pytest.mark.parametrize(
    ("error", "detail"), [(ValueError("no such codec"), "no such codec"), (RuntimeError(), "RuntimeError")]
)
def test_a_check_that_breaks_does_not_stop_the_others(model: Path, monkeypatch: pytest.MonkeyPatch, error, detail):
    def broken(_: object) -> None:
        raise error

    monkeypatch.setattr(doctor, "read", broken)
    bad = [finding for finding in doctor.examine(model, "cpu") if not finding.good]
    assert [(finding.name, finding.detail) for finding in bad] == [
        ("wav, flac, ogg, opus, mp3", detail),
        ("m4a, mp4, webm, mkv", detail),
    ]


def test_a_decoder_that_hears_nothing_is_noticed(model: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(doctor, "read", lambda _: np.zeros(16_000, np.float32))
    bad = [finding.name for finding in doctor.examine(model, "cpu") if not finding.good]
    assert bad == ["wav, flac, ogg, opus, mp3", "m4a, mp4, webm, mkv"]
