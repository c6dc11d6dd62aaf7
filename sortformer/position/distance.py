"""Positions that weight pairs of frames by their absolute distance: ALiBi and DA-Transformer."""

import torch
from torch import Tensor, nn

from sortformer.position.protocol import Places, Position

__all__ = ["AlibiPosition", "DistanceAwarePosition"]


class AlibiPosition(Position):
    """Subtract a penalty proportional to the distance: Press et al., arXiv 2108.12409, section 3.

    Head h of H (from 1) has the slope 2^(-8 h / H), but the last of several heads has slope 0: so one head can attend
    to a speaker who returns after minutes (after five, the last of the paper's slopes for four heads subtracts 15).
    """

    def __init__(self, heads: int, head_dim: int) -> None:
        super().__init__()
        self.slopes: Tensor
        # Scores are divided by sqrt(d) after the bias is added; the paper's bias is not divided.
        slopes = 2.0 ** (-8.0 * torch.arange(1, heads + 1, dtype=torch.float32) / heads) * head_dim**0.5
        if heads > 1:
            slopes[-1] = 0.0
        self.register_buffer("slopes", slopes, persistent=False)

    def bias(self, query: Tensor, places: Places, codes: Tensor | None = None) -> Tensor:
        """Return ``-slope_h |i - j| sqrt(d)``."""
        del codes
        return (-self.slopes[:, None, None] * places.distance.abs()[:, None]).to(query.dtype)


class DistanceAwarePosition(Position):
    """Multiply rectified scores by a learned function of the distance: Wu et al., arXiv 2010.06925, section 3.2.

    The factor is (1 + e^b) / (1 + e^(b - a |i - j|)), with a and b learned for each head: 1 at distance 0, and at every
    distance while a is zero, its initial value.
    """

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.slope = nn.Parameter(torch.zeros(heads))
        self.saturation = nn.Parameter(torch.zeros(heads))

    def factor(self, places: Places) -> Tensor:
        """Return the factors (B or 1, H, T, S)."""
        slope, saturation = self.slope[:, None, None], self.saturation[:, None, None]
        factor = (1 + saturation.exp()) * torch.sigmoid(slope * places.distance.abs()[:, None] - saturation)
        return factor.to(slope.dtype)  # positions of compressed frames are float64
