"""The SortFormer head: Transformer blocks, estimates between them, and the speaker logits at their end."""

import torch
from torch import Tensor, nn

from sortformer.config.model import HeadConfig
from sortformer.layers import SubframeUpsampling, TransformerBlock
from sortformer.model.permutation import PermutationEncoding

__all__ = ["Head"]


class Head(nn.Module):
    """From encoder embeddings to one logit per frame and slot, slots in order of arrival."""

    def __init__(self, input_dim: int, config: HeadConfig) -> None:
        super().__init__()
        self.estimate_layers = config.estimate_layers
        self.input = nn.Linear(input_dim, config.dim)
        self.blocks = nn.ModuleList(
            TransformerBlock(
                config.dim,
                config.heads,
                config.ff_dim,
                norm=config.norm,
                activation=config.activation,
                attention=attention,
                depth=depth,
                dropout=config.dropout,
                residual=config.residual,
            )
            for depth, attention in enumerate(config.layer_attention)
        )
        self.estimates = nn.ModuleList(nn.Linear(config.dim, config.num_slots) for _ in config.estimate_layers)
        self.encodings = nn.ModuleList(
            PermutationEncoding(config) for _ in config.estimate_layers if config.permutation != "none"
        )
        self.upsampling = SubframeUpsampling(config.dim, config.upsampling) if config.upsampling > 1 else None
        self.dropout = nn.Dropout(config.dropout)
        self.hidden = nn.Linear(config.dim, config.dim)
        self.out = nn.Linear(config.dim, config.num_slots)

    def forward(self, emb: Tensor, valid: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Return the logits (B, T * upsampling, S) and the estimates' logits, each (B, T, S), by ``estimate_layers``.

        ``emb`` (B, T, D) are the encoder's embeddings, ``valid`` (B, T) the frames that count.
        """
        x = self.stretch(0, self.input(emb), valid)
        estimates: list[Tensor] = []
        for index in range(len(self.estimates)):
            estimate, x = self.estimate(index, x, valid)
            estimates.append(estimate)
            x = self.stretch(index + 1, x, valid)
        return self.output(x, valid), tuple(estimates)

    def stretch(self, index: int, x: Tensor, valid: Tensor) -> Tensor:
        """Run the blocks before the first estimate (0), or those behind the ``index``-th up to the next."""
        borders = (0, *self.estimate_layers, len(self.blocks))
        for block in self.blocks[borders[index] : borders[index + 1]]:
            x = block(x, valid)
        return x

    def estimate(self, index: int, x: Tensor, valid: Tensor) -> tuple[Tensor, Tensor]:
        """Return an estimate's logits (B, T, S), and ``x`` (B, T, D) with their permutation encoding."""
        logits = self.estimates[index](x)
        return logits, x + self.encodings[index](logits, valid) if self.encodings else x

    def output(self, x: Tensor, valid: Tensor) -> Tensor:
        """Return the logits (B, T * upsampling, S) of the last block's output."""
        if self.upsampling is not None:
            x = self.upsampling(x, valid)
        x = self.hidden(self.dropout(torch.relu(x)))
        return self.out(self.dropout(torch.relu(x)))
