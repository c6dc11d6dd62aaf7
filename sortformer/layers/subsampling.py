"""Subsampling by eight, from 10 ms feature frames to the 80 ms frames of the model."""

import torch
from torch import Tensor, nn

from sortformer.masks import length_mask

__all__ = ["FACTOR", "PART_FRAMES", "DepthwiseStriding", "FrameStacking"]

FACTOR = 8
# A multiple of FACTOR. The outputs of the convolutions for more frames would exceed the caches of a processor.
PART_FRAMES = 2048


class DepthwiseStriding(nn.Module):
    """Three stride-2 convolutions, the later two depthwise separable ("dw_striding" of NVIDIA's FastConformer).

    Rekesh et al., "Fast Conformer", arXiv 2305.05084. Not causal: an output frame sees 7 feature frames on each side of
    its first one.
    """

    def __init__(self, num_mels: int, dim: int, channels: int) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, channels, 3, stride=2, padding=1)
        self.depthwise = nn.ModuleList(
            nn.Conv2d(channels, channels, 3, stride=2, padding=1, groups=channels) for _ in range(2)
        )
        self.pointwise = nn.ModuleList(nn.Conv2d(channels, channels, 1) for _ in range(2))
        self.out = nn.Linear(channels * -(-num_mels // FACTOR), dim)
        # PyTorch's default weights shrink the signal but not the biases: after five convolutions it would be lost.
        for convolution in self.modules():
            if isinstance(convolution, nn.Conv2d):
                nn.init.kaiming_normal_(convolution.weight, nonlinearity="relu")
        for name, parameter in self.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(parameter)

    def forward(self, feats: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Return (B, ceil(T / 8), D) from features (B, T, M), and the lengths (B,) likewise.

        Without gradients, long recordings are processed in parts, since the first convolution enlarges them 100 times.
        """
        frames = feats.shape[1]
        if torch.is_grad_enabled() or frames <= PART_FRAMES:
            return self._at_once(feats, lengths)
        parts = []
        for start in range(0, frames, PART_FRAMES):
            before = max(0, start - FACTOR)  # the left context of the first frame
            part, _ = self._at_once(feats[:, before : start + PART_FRAMES], (lengths - before).clamp(min=0))
            parts.append(part[:, (start - before) // FACTOR :])
        return torch.cat(parts, dim=1), -(-lengths // FACTOR)

    def _at_once(self, feats: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        x = feats.masked_fill(~length_mask(lengths, feats.shape[1])[..., None], 0.0)[:, None]
        # On the CPU, depthwise kernels run three times faster with channels last.
        x, lengths = self._halve(self.stem, x.contiguous(memory_format=torch.channels_last), lengths)
        for depthwise, pointwise in zip(self.depthwise, self.pointwise, strict=True):
            x, lengths = self._halve(nn.Sequential(depthwise, pointwise), x, lengths)
        return self.out(x.transpose(1, 2).flatten(2)), lengths

    @staticmethod
    def _halve(convolution: nn.Module, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        x = convolution(x).relu_()
        lengths = (lengths + 1) // 2
        # The next kernel must not see padding, which the biases have made non-zero.
        return x.masked_fill(~length_mask(lengths, x.shape[2])[:, None, :, None], 0.0), lengths


class FrameStacking(nn.Module):
    """Eight stacked frames through one linear layer (NVIDIA's Nemotron 3); the last group is zero-padded."""

    def __init__(self, num_mels: int, dim: int) -> None:
        super().__init__()
        self.out = nn.Linear(FACTOR * num_mels, dim, bias=False)

    def forward(self, feats: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Return (B, ceil(T / 8), D) from features (B, T, M), and the lengths (B,) likewise."""
        x = feats.masked_fill(~length_mask(lengths, feats.shape[1])[..., None], 0.0)
        x = nn.functional.pad(x, (0, 0, 0, -x.shape[1] % FACTOR))
        return self.out(x.unflatten(1, (-1, FACTOR)).flatten(2)), -(-lengths // FACTOR)
