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
        x = self.input(emb)
        estimates: list[Tensor] = []
        for index, block in enumerate(self.blocks):
            if index in self.estimate_layers:
                estimate = self.estimates[len(estimates)](x)
                if self.encodings:
                    x = x + self.encodings[len(estimates)](estimate, valid)
                estimates.append(estimate)
            x = block(x, valid)
        if self.upsampling is not None:
            x = self.upsampling(x, valid)
        x = self.hidden(self.dropout(torch.relu(x)))
        return self.out(self.dropout(torch.relu(x))), tuple(estimates)
