"""A teacher that counts speakers: a network that estimates how likely nobody, one, or more speak in each frame.

The simulation has its own definition of speech, soft voices and overlap. A network trained on annotated meetings has
learned another, from rooms and noise that are not simulated.
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

_WINDOW_SAMPLES = 10 * SAMPLE_RATE  # at most; as in the training of pyannote's segmentation-3.0
_STRIDE, _POOL = 10, 3
_CONVOLUTIONS = 3  # the first of them with sinc filters
_REACH = 1.3  # frames around a frame's centre in which the network's steps count for it, with linearly falling weight
_LEAST = 1e-5
_NEVER = -1000.0  # the logarithm of probability 0; if infinite, it would have no gradient


class CountTeacher(nn.Module):
    """PyanNet (Bredin, Interspeech 2023): sinc filters, two convolutions, bidirectional LSTMs, powerset classes.

    It processes windows of 10 s, whatever their level, and is not trained.

    Args:
        weights: arrays as ``recipes/default_model/count_teacher.py`` writes them. ``sinc`` (F, 1, K) are the filters,
            ``speakers`` (C,) is the number of speakers in each class, and the others are named as in pyannote.audio.
    """

    def __init__(self, weights: Mapping[str, np.ndarray]) -> None:
        super().__init__()
        given = {name: torch.from_numpy(np.asarray(array)).float() for name, array in weights.items()}

        def held(layer: Callable[..., nn.Module], name: str) -> nn.Module:
            weight, bias = given[f"{name}.weight"], given[f"{name}.bias"]
            made = layer(*weight.shape[1::-1], *weight.shape[2:])  # inputs and outputs, and the kernel
            made.load_state_dict({"weight": weight, "bias": bias})
            return made

        # Kernel sizes of the second and third convolution, after 1 for the first, whose filters are counted apart.
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
        """Read a file written by ``recipes/default_model/count_teacher.py``.

        Raises:
            InputError: if the file cannot be read, or has other contents.
        """
        with reading("the count teacher", path) as weights:
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
        return counts.reshape(len(wave), -1, 3)[:, :frames]

    def _shares(self, steps: int, frames: int, grid: FrameGrid) -> Tensor:
        """Return the weight of each of the network's steps in each frame of a window, (frames, steps)."""
        seen, apart = self.filters.shape[2], _STRIDE
        for number in range(_CONVOLUTIONS):
            seen, apart = seen + (self._kernels[number] - 1 + _POOL - 1) * apart, apart * _POOL
        middle = ((seen - 1) / 2 + apart * torch.arange(steps)) / grid.step_samples
        shares = (_REACH - (middle - torch.arange(frames)[:, None] - 0.5).abs()).clamp(min=0)
        return shares / shares.sum(dim=1, keepdim=True)


def log_counts(logits: Tensor) -> Tensor:
    """Return log-probabilities (..., 3) that none, one, or more of independent slots (..., S) speak.

    Computed slot by slot in the log domain: 1 minus the first two would be 0, without gradient, if more are unlikely.
    """
    none = logits.new_zeros(logits.shape[:-1], dtype=torch.float32)
    one = more = torch.full_like(none, _NEVER)
    for logit in logits.float().unbind(dim=-1):
        speaks, silent = functional.logsigmoid(logit), functional.logsigmoid(-logit)
        more = torch.logaddexp(more, one + speaks)
        one, none = torch.logaddexp(one + silent, none + speaks), none + silent
    return torch.stack([none, one, more], dim=-1)


def count_loss(logits: Tensor, counts: Tensor, valid: Tensor) -> Tensor:
    """Return the KL divergence of the slots (B, T, S) from ``counts`` (B, T, 3), in nats, averaged over valid frames.

    Frames that are not ``valid`` (B, T) change neither the loss nor a gradient.
    """
    padding = ~valid[..., None]
    said = log_counts(logits.masked_fill(padding, 0.0))
    counts = counts.float().masked_fill(padding, 0.0)
    nats = (counts * (counts.clamp(min=_LEAST).log() - said)).sum(dim=-1)
    return nats.sum() / valid.sum().clamp(min=1)
