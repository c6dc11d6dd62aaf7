"""Residual connections: plain sums, or the gates of GTrXL."""

import torch
from torch import Tensor, nn

__all__ = ["GruResidual", "SumResidual", "build_residual"]


class SumResidual(nn.Module):
    """Add the branch: He et al., arXiv 1512.03385."""

    def forward(self, x: Tensor, branch: Tensor) -> Tensor:
        """Return (B, T, D) from the input ``x`` and the output of its ``branch``, both of that shape."""
        return x + branch


class GruResidual(nn.Module):
    """Merge the branch through a gated recurrent unit (GTrXL: Parisotto et al., arXiv 1910.06764, section 3.2).

    r = s(W_r y + U_r x), z = s(W_z y + U_z x - b), h = tanh(W_h y + U_h (r x)), and the result is (1 - z) x + z h, for
    the input x and its branch y. The bias b starts at 2, so that a block starts close to the identity.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.of_branch = nn.Linear(dim, 3 * dim, bias=False)
        self.of_frames = nn.Linear(dim, 2 * dim, bias=False)
        self.of_kept = nn.Linear(dim, dim, bias=False)
        self.bias = nn.Parameter(torch.full((dim,), 2.0))

    def forward(self, x: Tensor, branch: Tensor) -> Tensor:
        """Return (B, T, D) from the input ``x`` and the output of its ``branch``, both of that shape."""
        reset, update, new = self.of_branch(branch).chunk(3, dim=-1)
        kept, taken = self.of_frames(x).chunk(2, dim=-1)
        proposed = torch.tanh(new + self.of_kept(torch.sigmoid(reset + kept) * x))
        return x + torch.sigmoid(update + taken - self.bias) * (proposed - x)


def build_residual(kind: str, dim: int) -> nn.Module:
    """Return the residual connection of a ``kind`` ("sum" or "gru") for ``dim`` channels."""
    return GruResidual(dim) if kind == "gru" else SumResidual()
