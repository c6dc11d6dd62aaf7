"""The compression functions of the Compressive Transformer, which merge groups of old frames into one each.

They map (B, n * ratio, D), of which ``valid`` (B, n * ratio) count, to (B, n, D). Frames that are not valid are
zero in convolutions and excluded elsewhere.
"""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

__all__ = [
    "Autoencoder",
    "Compression",
    "Convolution",
    "DilatedConvolution",
    "MostUsed",
    "Pooling",
    "build_compression",
]


class Compression(nn.Module, ABC):
    """A compression function f_c: Rae et al., arXiv 1911.05507, section 3.1."""

    def __init__(self, ratio: int) -> None:
        super().__init__()
        self.ratio = ratio

    @abstractmethod
    def forward(self, frames: Tensor, valid: Tensor, usage: Tensor) -> Tensor:
        """Return (B, n, D); ``usage`` (B, n * ratio) is the attention that each frame has received."""

    def places(self, at: Tensor, valid: Tensor, usage: Tensor) -> tuple[Tensor, Tensor]:
        """Return the positions (B, n) of the results, means over the valid frames of a group, and which are valid."""
        del usage
        groups, there = at.unflatten(1, (-1, self.ratio)), valid.unflatten(1, (-1, self.ratio))
        return (groups * there).sum(dim=2) / there.sum(dim=2).clamp(min=1), there.any(dim=2)


class Pooling(Compression):
    """The maximum or the mean of each group."""

    def __init__(self, ratio: int, largest: bool) -> None:
        super().__init__(ratio)
        self.largest = largest

    def forward(self, frames: Tensor, valid: Tensor, usage: Tensor) -> Tensor:
        """Return (B, n, D); zero where no frame of a group is valid."""
        del usage
        groups, there = frames.unflatten(1, (-1, self.ratio)), valid.unflatten(1, (-1, self.ratio))[..., None]
        if self.largest:
            largest = groups.masked_fill(~there, -torch.inf).amax(dim=2)
            return largest.masked_fill(~there.any(dim=2), 0.0)
        return (groups * there).sum(dim=2) / there.sum(dim=2).clamp(min=1)


class MostUsed(Compression):
    """The fraction 1 / ``ratio`` of the given frames that received the most attention, in their order.

    Ties go to earlier frames; all frames tie that are compressed in the update that appended them.
    """

    def forward(self, frames: Tensor, valid: Tensor, usage: Tensor) -> Tensor:
        kept = self._kept(valid, usage)
        return frames.gather(1, kept[..., None].expand(-1, -1, frames.shape[2]))

    def places(self, at: Tensor, valid: Tensor, usage: Tensor) -> tuple[Tensor, Tensor]:
        """Return the positions (B, n) of the kept frames, and which are valid."""
        kept = self._kept(valid, usage)
        return at.gather(1, kept), valid.gather(1, kept)

    def _kept(self, valid: Tensor, usage: Tensor) -> Tensor:
        count = usage.shape[1] // self.ratio
        ranked = usage.masked_fill(~valid, -torch.inf).argsort(dim=1, descending=True, stable=True)
        return ranked[:, :count].sort(dim=1).values


class Convolution(Compression):
    """A convolution over each group, initialised to the mean."""

    def __init__(self, dim: int, ratio: int) -> None:
        super().__init__(ratio)
        self.conv = nn.Conv1d(dim, dim, ratio, stride=ratio)
        with torch.no_grad():
            self.conv.weight.copy_(torch.eye(dim)[..., None].expand(-1, -1, ratio) / ratio)
            nn.init.zeros_(self.conv.bias)  # pyright: ignore[reportArgumentType]

    def forward(self, frames: Tensor, valid: Tensor, usage: Tensor) -> Tensor:
        del usage
        return self.conv((frames * valid[..., None]).transpose(1, 2)).transpose(1, 2)


class DilatedConvolution(Convolution):
    """Two dilated convolutions with residual connections, before the one over each group."""

    def __init__(self, dim: int, ratio: int) -> None:
        super().__init__(dim, ratio)
        self.dilated = nn.ModuleList(nn.Conv1d(dim, dim, 3, dilation=dilation, padding=dilation) for dilation in (1, 2))

    def forward(self, frames: Tensor, valid: Tensor, usage: Tensor) -> Tensor:
        for conv in self.dilated:
            heard = conv((frames * valid[..., None]).transpose(1, 2)).transpose(1, 2)
            frames = frames + heard.relu()
        return super().forward(frames, valid, usage)


class Autoencoder(Compression):
    """A convolutional encoder with a hidden layer as wide as a group; the loss "autoencoding" brings its decoder.

    The compression of the Compressive Performer, under the name that its paper uses (section 2.2).
    """

    def __init__(self, dim: int, ratio: int) -> None:
        super().__init__(ratio)
        self.widen = nn.Conv1d(dim, dim * ratio, ratio, stride=ratio)
        self.narrow = nn.Conv1d(dim * ratio, dim, 1)

    def forward(self, frames: Tensor, valid: Tensor, usage: Tensor) -> Tensor:
        del usage
        return self.narrow(self.widen((frames * valid[..., None]).transpose(1, 2)).relu()).transpose(1, 2)


def build_compression(name: str, dim: int, ratio: int) -> Compression:
    """Return the compression function with one of the names of ``CompressiveMemory.compression``."""
    match name:
        case "max" | "mean":
            return Pooling(ratio, largest=name == "max")
        case "most_used":
            return MostUsed(ratio)
        case "conv":
            return Convolution(dim, ratio)
        case "dilated_conv":
            return DilatedConvolution(dim, ratio)
        case "autoencoder":
            return Autoencoder(dim, ratio)
        case _:
            raise ValueError(f"unknown compression '{name}'")
