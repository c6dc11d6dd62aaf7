"""Upsampling from the frames of the model to the finer frames of its output."""

import torch
from torch import Tensor, nn

__all__ = ["SubframeUpsampling"]


class SubframeUpsampling(nn.Module):
    """One convolution over three frames that computes all sub-frames of a frame at once (NVIDIA's Nemotron 3).

    Shi et al., arXiv 1609.05158, section 3.2, in one dimension. Initialised to repeat each frame.
    """

    def __init__(self, dim: int, factor: int) -> None:
        super().__init__()
        self.factor = factor
        self.conv = nn.Conv1d(dim, factor * dim, 3, padding=1)
        with torch.no_grad():
            self.conv.weight.zero_()
            self.conv.weight[:, :, 1] = torch.eye(dim).repeat(factor, 1)
            nn.init.zeros_(self.conv.bias)  # pyright: ignore[reportArgumentType]

    def forward(self, x: Tensor, valid: Tensor) -> Tensor:
        """Return (B, T * factor, D) from ``x`` (B, T, D); frames not ``valid`` (B, T) do not affect the others."""
        x = self.conv(x.masked_fill(~valid[..., None], 0.0).transpose(1, 2))
        return x.transpose(1, 2).unflatten(2, (self.factor, -1)).flatten(1, 2)
