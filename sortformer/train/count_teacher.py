"""A teacher that counts: a network that hears each conversation, and says how likely nobody, one, or more speak.

What a simulation calls speech, and what a soft voice or two at once sound like in it, is the simulation's idea. A
network that was trained on annotated meetings has another, and has heard rooms and noise that nobody simulates.
"""

import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from sortformer.grid import SAMPLE_RATE, FrameGrid
from sortformer.train.arrays import reading

__all__ = ["CountTeacher", "count_loss", "log_counts"]

_WINDOW_SAMPLES = 10 * SAMPLE_RATE  # at most; pyannote's segmentation-3.0 was trained on as much
_STRIDE, _POOL = 10, 3
_CONVOLUTIONS = 3  # the first of them with sinc filters
_REACH = 1.3  # frames from the middle of one, within which the network is asked about it, the nearer the more
_LEAST = 1e-5
_NEVER = -1000.0  # the logarithm of what cannot be; infinite, it would have no gradient


class CountTeacher(nn.Module):
    """PyanNet (Bredin, Interspeech 2023): sinc filters, two convolutions, LSTMs both ways, a class for each set.

    It hears 10 s at a time, however loud, and learns nothing.

    Args:
        weights: arrays as ``recipes/default_model/count_teacher.py`` writes them. ``sinc`` (F, 1, K) are the filters,
            ``speakers`` (C,) says how many speak in each class, and the others have their names in pyannote.audio.
    """

    def __init__(self, weights: Mapping[str, np.ndarray]) -> None:
        super().__init__()
        given = {name: torch.from_numpy(np.asarray(array)).float() for name, array in weights.items()}

        def held(layer: Callable[..., nn.Module], name: str) -> nn.Module:
            weight, bias = given[f"{name}.weight"], given[f"{name}.bias"]
            made = layer(*weight.shape[1::-1], *weight.shape[2:])  # inputs and outputs, and the kernel
            made.load_state_dict({"weight": weight, "bias": bias})
            return made

        # What the second and third convolution see of the one before; the first is all there is to its filters.
        self._kernels = [1, *(given[f"sincnet.conv1d.{number}.weight"].shape[2] for number in range(1, _CONVOLUTIONS))]
        self.filters: Tensor
        self.register_buffer("filters", given["sinc"])
        self.convolutions = nn.ModuleList(
            held(nn.Conv1d, f"sincnet.conv1d.{number}") for number in range(1, _CONVOLUTIONS)
        )
        norms = ["sincnet.wav_norm1d", *(f"sincnet.norm1d.{number}" for number in range(_CONVOLUTIONS))]
        self.norms = nn.ModuleList(held(partial(nn.InstanceNorm1d, affine=True), name) for name in norms)
        lstm = {name.removeprefix("lstm."): value for name, value in given.items() if name.startswith("lstm.")}
        layers = sum(name.startswith("weight_ih_") and not name.endswith("_reverse") for name in lstm)
        inputs, hidden = lstm["weight_ih_l0"].shape[1], lstm["weight_hh_l0"].shape[1]
        self.lstm = nn.LSTM(inputs, hidden, layers, batch_first=True, bidirectional=True)
        self.lstm.load_state_dict(lstm)
        linear = sorted(name.removesuffix(".weight") for name in given if re.fullmatch(r"linear\.\d+\.weight", name))
        self.linear = nn.ModuleList(held(nn.Linear, name) for name in linear)
        self.classifier = held(nn.Linear, "classifier")
        self.counts: Tensor
        self.register_buffer("counts", functional.one_hot(given["speakers"].long().clamp(0, 2), 3).float())
        self.eval().requires_grad_(False)

    @classmethod
    def read(cls, path: str | Path) -> "CountTeacher":
        """Read what ``recipes/default_model/count_teacher.py`` writes.

        Raises:
            InputError: if the file cannot be read, or holds something else.
        """
        with reading(f"the network that counts in {path}"):
            with open(path, "rb") as file, np.load(file) as archive:
                weights = dict(archive)
            for name, array in weights.items():
                if array.dtype.kind not in "fiu" or not np.isfinite(array).all():
                    raise ValueError(f"'{name}' has values that are not finite numbers")
            return cls(weights)

    @torch.no_grad()
    def forward(self, wave: Tensor, frames: int, grid: FrameGrid) -> Tensor:
        """Return (B, ``frames``, 3) probabilities that nobody, one, or more speak, in recordings (B, N) at 16 kHz.

        The frames are those of a model with that ``grid``.
        """
        in_window = _WINDOW_SAMPLES // grid.step_samples
        samples = in_window * grid.step_samples
        x = functional.pad(wave, (0, -wave.shape[1] % samples)).reshape(-1, 1, samples)
        x = functional.conv1d(self.norms[0](x), self.filters, stride=_STRIDE).abs()
        for convolution, norm in zip([nn.Identity(), *self.convolutions], list(self.norms)[1:], strict=True):
            x = functional.leaky_relu(norm(functional.max_pool1d(convolution(x), _POOL)))
        x = self.lstm(x.mT)[0]
        for layer in self.linear:
            x = functional.leaky_relu(layer(x))
        counts = self.classifier(x).softmax(dim=2) @ self.counts
        counts = self._shares(counts.shape[1], in_window, grid).to(counts) @ counts
        counts = counts.reshape(len(wave), -1, 3)
        beyond = max(0, frames - counts.shape[1])  # where a part of a frame is left
        return functional.pad(counts.mT, (0, beyond), mode="replicate").mT[:, :frames]

    def _shares(self, steps: int, frames: int, grid: FrameGrid) -> Tensor:
        """Return how much each of the network's steps counts in each frame of a window, (frames, steps)."""
        seen, apart = self.filters.shape[2], _STRIDE
        for number in range(_CONVOLUTIONS):
            seen, apart = seen + (self._kernels[number] - 1 + _POOL - 1) * apart, apart * _POOL
        middle = ((seen - 1) / 2 + apart * torch.arange(steps)) / grid.step_samples
        shares = (_REACH - (middle - torch.arange(frames)[:, None] - 0.5).abs()).clamp(min=0)
        return shares / shares.sum(dim=1, keepdim=True)


def log_counts(logits: Tensor) -> Tensor:
    """Return logarithms (..., 3) of how likely nobody, one, or more of independent slots (..., S) speak.

    Slot by slot, in logarithms: 1 less the others would be nothing, without a gradient, where more are unlikely.
    """
    none = logits.new_zeros(logits.shape[:-1], dtype=torch.float32)
    one = more = torch.full_like(none, _NEVER)
    for logit in logits.float().unbind(dim=-1):
        speaks, silent = functional.logsigmoid(logit), functional.logsigmoid(-logit)
        more = torch.logaddexp(more, one + speaks)
        one, none = torch.logaddexp(one + silent, none + speaks), none + silent
    return torch.stack([none, one, more], dim=-1)


def count_loss(logits: Tensor, counts: Tensor, valid: Tensor) -> Tensor:
    """Return how far the slots (B, T, S) are from ``counts`` (B, T, 3): a divergence in nats, its mean over frames.

    What stands in frames that are not ``valid`` (B, T) changes neither it nor a gradient.
    """
    padding = ~valid[..., None]
    said = log_counts(logits.masked_fill(padding, 0.0))
    counts = counts.float().masked_fill(padding, 0.0)
    nats = (counts * (counts.clamp(min=_LEAST).log() - said)).sum(dim=-1)
    return nats.sum() / valid.sum().clamp(min=1)
