"""Self-diagnosis: versions, device, decoders, weights, and an end-to-end run."""

import io
import os
import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import av
import numpy as np
import soundfile
import torch

import sortformer
from sortformer.audio import read
from sortformer.config.clustering import MOST_SPEAKERS
from sortformer.device import device_named
from sortformer.diarizer import Diarizer
from sortformer.errors import InputError
from sortformer.grid import SAMPLE_RATE

__all__ = ["Finding", "examine"]

_PACKAGES = ("numpy", "scipy", "soundfile", "soxr", "av", "safetensors", "pyannote.metrics", "matplotlib")
_TEST_S = 5.0


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check."""

    name: str
    detail: str
    good: bool = True


def examine(model: str | Path | None = None, device: str = "auto") -> Iterator[Finding]:
    """Yield the findings as they come; a check that fails does not stop the others."""
    checks: tuple[tuple[str, Callable[[], str]], ...] = (
        ("versions", _versions),
        ("machine", _machine),
        ("device", lambda: _device(device)),
        ("wav, flac, ogg, opus, mp3", _libsndfile),
        ("m4a, mp4, webm, mkv", _ffmpeg),
        ("weights", lambda: _weights(model)),
        ("self-test", lambda: _self_test(model, device)),
    )
    for name, check in checks:
        try:
            yield Finding(name, check())
        except Exception as error:  # a broken library may raise anything
            yield Finding(name, str(error) or type(error).__name__, good=False)


def _versions() -> str:
    found = [f"sortformer {sortformer.__version__}", f"Python {platform.python_version()}"]
    found.append(f"torch {torch.__version__}")  # which also shows the CUDA version of the build
    for package in _PACKAGES:
        try:
            found.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            found.append(f"{package} not installed")
    return ", ".join(found)


def _machine() -> str:
    return f"{platform.platform()}, {os.cpu_count()} processors, torch uses {torch.get_num_threads()} threads"


def _device(name: str) -> str:
    device = device_named(name)
    if device.type != "cuda":
        return str(device)
    free, total = torch.cuda.mem_get_info(device)
    return f"{device}: {torch.cuda.get_device_name(device)}, {free / 2**30:.1f} of {total / 2**30:.1f} GiB free"


def _libsndfile() -> str:
    content = io.BytesIO()
    soundfile.write(content, _murmur(1.0), SAMPLE_RATE, format="FLAC")
    _check_heard(read(content), "FLAC")
    return f"libsndfile {soundfile.__libsndfile_version__}"


def _ffmpeg() -> str:
    content = io.BytesIO()
    with av.open(content, "w", format="mp4") as container:
        stream = container.add_stream("aac", rate=SAMPLE_RATE)
        frame = av.AudioFrame.from_ndarray(_murmur(1.0)[None], format="fltp", layout="mono")
        frame.sample_rate = SAMPLE_RATE
        for packet in (*stream.encode(frame), *stream.encode(None)):
            container.mux(packet)
    _check_heard(read(content), "MP4")
    return f"PyAV {av.__version__} with libavcodec {'.'.join(map(str, av.library_versions['libavcodec']))}"


def _check_heard(wave: np.ndarray, kind: str) -> None:
    if abs(len(wave) / SAMPLE_RATE - 1.0) > 0.2 or np.abs(wave).max() < 0.01:
        raise InputError(f"a second of audio, written as {kind}, was read back as {len(wave) / SAMPLE_RATE:.2f} s")


def _weights(model: str | Path | None) -> str:
    diarizer = Diarizer.load(model, "cpu")
    millions = sum(parameter.numel() for parameter in diarizer.model.parameters()) / 1e6
    more = "" if diarizer.postprocess.clustering is None else f", {MOST_SPEAKERS} on request"
    where = "in the package" if model is None else str(model)
    return f"{where}: {millions:.1f} million parameters, up to {diarizer.speaker_limit()} speakers{more}"


def _self_test(model: str | Path | None, device: str) -> str:
    diarizer = Diarizer.load(model, device)
    started = time.perf_counter()
    found = diarizer.probabilities(_murmur(_TEST_S), sample_rate=SAMPLE_RATE)
    seconds = time.perf_counter() - started
    if not np.isfinite(found.data).all():
        raise InputError(f"the model returned probabilities that are not finite on {diarizer.device}; try --device cpu")
    return f"{_TEST_S:.0f} s of audio to {len(found.data)} frames in {seconds:.2f} s on {diarizer.device}"


def _murmur(seconds: float) -> np.ndarray:
    """Return a voice-like sound (N,): a 120 Hz buzz that is switched on and off three times a second."""
    t = np.arange(round(seconds * SAMPLE_RATE)) / SAMPLE_RATE
    buzz = sum(np.sin(2 * np.pi * 120 * harmonic * t) / harmonic for harmonic in range(1, 20))
    return (0.1 * buzz * (np.sin(2 * np.pi * 3 * t) > 0)).astype(np.float32)
