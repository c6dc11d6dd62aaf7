"""Measure early exit: blocks of the head that are run, the loss, and whether a calibration holds on new recordings.

python recipes/benchmark/early_exit.py BANK_FOLDER CACHE_FOLDER RECORDING...

Conversations of 30 s of the bank's dev voices, 1 to 4 of them, near and in rooms: half to calibrate on, half to test.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import torch

from sortformer import Diarizer
from sortformer.calibrate import calibrate_exit
from sortformer.estimates import Estimates
from sortformer.metrics.der import der
from sortformer.metrics.protocol import FULL
from sortformer.model.early_exit import leave_early
from sortformer.postprocess import turns
from sortformer.simulate import Rooms, VoiceBank
from sortformer.simulate.dev_set import dev_set


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bank", type=Path)
    parser.add_argument("cache", type=Path)
    parser.add_argument("recordings", type=Path, nargs="+")
    parser.add_argument("--model", type=Path)
    parser.add_argument("--count", type=int, default=25, help="conversations of each kind and number of speakers")
    arguments = parser.parse_args()
    diarizer = Diarizer.load(arguments.model, "cpu")

    found = conversations(diarizer, arguments.bank, arguments.cache, arguments.count)
    halves = [dict(list(found.items())[start::2]) for start in (0, 1)]
    print(f"{len(halves[0])} conversations to calibrate, {len(halves[1])} to test; loss: DER against the whole model")
    print("tolerance  confidence   blocks: calibrated  tested   loss: calibrated  tested")
    for tolerance in (0.05, 0.1, 0.2, 0.3):
        chosen = calibrate_exit(halves[0], diarizer.postprocess, tolerance=tolerance)
        blocks, losses = zip(*(leave(diarizer, each, chosen.confidence) for each in halves[1].values()), strict=True)
        print(
            f"{tolerance:9.2f}  {chosen.confidence or 'never':>10}  {chosen.layers:18.2f}  {np.mean(blocks):6.2f}"
            f"  {chosen.loss:16.3f}  {np.mean(losses):6.3f}"
        )

    print("\nrecording: confidence of each estimate and DER against the whole model's output, by layer")
    for path in arguments.recordings:
        estimates = diarizer.estimates(path)
        sure = [
            f"{layer.layer}: {layer.confidence:.2f}, {loss(diarizer, estimates, layer.ordered):.3f}"
            for layer in estimates.layers[1:]
        ]
        print(f"{path.stem:>12}  {'   '.join(sure)}")

    print("\nseconds, the whole head and an exit at the second estimate, one thread")
    torch.set_num_threads(1)
    for minutes in (0.5, 3, 10):
        whole, early = seconds(diarizer, round(6000 * minutes))
        print(f"{minutes:4.1f} min  {whole:6.2f}  {early:6.2f}")


def conversations(diarizer: Diarizer, bank_folder: Path, cache: Path, count: int) -> dict[str, Estimates]:
    bank = VoiceBank.load(bank_folder, "dev", (1.0,), cache)
    rooms = Rooms.make(50, seed=1, cache=cache)
    found = {}
    for kind, most in (("near", 3), ("rooms", 4)):
        for speakers in range(1, most + 1):
            for index, wave in enumerate(dev_set(bank, kind, speakers, count, 30.0, 11, rooms).wave):
                found[f"{kind}-{speakers}-{index}"] = diarizer.estimates(wave, sample_rate=16_000)
    return found


def leave(diarizer: Diarizer, estimates: Estimates, confidence: float | None) -> tuple[int, float]:
    """Return the number of blocks run for a recording, and its loss."""
    for layer in estimates.layers[1:]:
        if confidence is not None and layer.confidence is not None and layer.confidence >= confidence:
            return layer.layer, min(1.0, loss(diarizer, estimates, layer.ordered))
    return estimates.output.layers or 0, 0.0


def loss(diarizer: Diarizer, estimates: Estimates, probs: np.ndarray) -> float:
    """Return the DER of the turns from ``probs`` against the turns from the whole model's output."""
    whole = estimates.output
    said, meant = (
        turns(each, diarizer.postprocess, whole.step_s, duration=whole.duration).turns for each in (probs, whole.data)
    )
    return der(meant, said, ((0.0, whole.duration),), FULL).rate


def seconds(diarizer: Diarizer, frames: int) -> tuple[float, float]:
    feats, lengths = torch.zeros(1, frames, diarizer.model.config.features.num_mels), torch.tensor([frames])
    took = []
    for _ in range(3):
        begun = time.perf_counter()
        with torch.inference_mode():
            diarizer.model.forward_features(feats, lengths)
        between = time.perf_counter()
        leave_early(diarizer.model, feats, lengths, 1e-6)
        took.append((between - begun, time.perf_counter() - between))
    return min(whole for whole, _ in took), min(early for _, early in took)


if __name__ == "__main__":
    main()
