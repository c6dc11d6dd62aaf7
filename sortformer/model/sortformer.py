"""The whole model.

Axes, everywhere in the signal half of the package: B recordings, N samples, T frames (10 ms for features, 80 ms after
the subsampling), M mel bins, D channels, S slots (speakers in order of arrival). Masks are True where valid.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from sortformer.attention import add_losses
from sortformer.config.carrying import check_carries
from sortformer.config.model import ModelConfig
from sortformer.errors import InputError
from sortformer.features import LogMel
from sortformer.masks import length_mask
from sortformer.model.encoder import Encoder
from sortformer.model.head import Head, HeadState

__all__ = ["ModelState", "Sortformer", "SortformerOutput", "check_model"]


@dataclass(frozen=True, slots=True)
class ModelState:
    """The state of a model's layers between chunks, for B streams; rows are independent."""

    encoder: tuple[Any, ...]
    """Of each block: a ``ConformerState`` or an ``AttentionState``."""
    head: HeadState


@dataclass(frozen=True, slots=True)
class SortformerOutput:
    """The output of a forward pass; frames that are not ``valid`` are arbitrary.

    U output frames: as many as T, or more where the head upsamples.
    """

    logits: Tensor  # (B, U, S) slots in order of arrival
    estimates: tuple[Tensor, ...]  # each (B, T, S): the logits between the head's blocks, classes in any order
    emb: Tensor  # (B, T, D) the encoder's embeddings
    valid: Tensor  # (B, U)
    losses: Mapping[str, Tensor] = field(default_factory=dict)
    """Auxiliary losses, by name: scalars."""

    @property
    def probs(self) -> Tensor:
        """Speaker probabilities (B, U, S), zero where not valid."""
        return torch.sigmoid(self.logits).masked_fill(~self.valid[..., None], 0.0)


class Sortformer(nn.Module):
    """Speaker diarization by arrival order: Park et al., "Sortformer", arXiv 2409.06656, with permutation encodings."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.features = LogMel(config.features)
        self.encoder = Encoder(config.features.num_mels, config.encoder)
        self.head = Head(config.encoder.dim, config.head)

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return next(self.parameters()).device

    @property
    def dtype(self) -> torch.dtype:
        """The floating-point type of the weights."""
        return next(self.parameters()).dtype

    def forward(self, wave: Tensor, num_samples: Tensor | None = None) -> SortformerOutput:
        """Diarize waves (B, N) at 16 kHz, of which ``num_samples`` (B,) are valid (None: all).

        There must be a recording (B of 1 or more), and a feature frame in it (N of 160 or more); of a row none need be
        valid.
        """
        return self.forward_features(*self.features(wave, num_samples))

    def forward_features(self, feats: Tensor, lengths: Tensor) -> SortformerOutput:
        """Diarize log-mel features (B, T, M), B and T of 1 or more, of the given lengths (B,)."""
        emb, frames = self.encoder.subsample(feats, lengths)
        output = self.forward_frames(emb, length_mask(frames, emb.shape[1]))
        # The last 80 ms may be begun only: of their output frames those are kept that the features reach.
        step = self.config.grid.subsampling
        count = -(-feats.shape[1] // step)
        return replace(output, logits=output.logits[:, :count], valid=length_mask(-(-lengths // step), count))

    def forward_frames(self, emb: Tensor, valid: Tensor) -> SortformerOutput:
        """Diarize pre-encoded frames (B, T, D), as a stream keeps them, of which ``valid`` (B, T) count."""
        return self._run(emb, valid, None)[0]

    def start(self, rows: int = 1) -> ModelState:
        """Return the initial state of ``rows`` streams, for a model whose layers carry a state.

        Raises:
            ConfigError: if the model cannot stream by such a state (``config.carrying`` says why).
        """
        check_carries(self.config)
        emb = self.head.input.weight.new_zeros(rows, 0, self.config.encoder.dim)
        return ModelState(self.encoder.blocks.init_state(emb), self.head.init_state(emb))

    def step(self, emb: Tensor, state: ModelState) -> tuple[SortformerOutput, ModelState]:
        """Diarize a chunk of pre-encoded frames (B, T, D), T of 1 or more, after those that left the state.

        Every row has T new frames; rows may be at different places of their streams. Each chunk passes each layer once.
        """
        return self._run(emb, torch.ones(emb.shape[:2], dtype=torch.bool, device=emb.device), state)

    def _run(self, emb: Tensor, valid: Tensor, state: ModelState | None) -> tuple[SortformerOutput, ModelState]:
        encoded = self.encoder(emb, valid, None if state is None else state.encoder)
        found = self.head(encoded.out, valid, None if state is None else state.head)
        finer = valid.repeat_interleave(self.config.head.upsampling, dim=1)
        losses = add_losses(encoded.losses, found.losses)
        output = SortformerOutput(found.logits, found.estimates, encoded.out, finer, losses)
        return output, ModelState(encoded.state, found.state)


def check_model(value: Any, *, training: bool = False) -> None:
    """Refuse a value that is not a model, or one in training mode, unless it may be ``training``.

    Raises:
        InputError: naming its type, or what to do.
    """
    if not isinstance(value, Sortformer):
        raise InputError(f"a Sortformer is needed, such as diarizer.model, got {type(value).__name__}")
    if value.training and not training:
        raise InputError("the model is in training mode, where dropout is active: call model.eval() first")
