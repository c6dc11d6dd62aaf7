"""A voice teacher: the encoder's frames are classified among the embeddings of all voices."""

import math
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from sortformer.errors import InputError
from sortformer.simulate import VoiceBank
from sortformer.train.arrays import reading

__all__ = ["VoiceTeacher"]


class VoiceTeacher(nn.Module):
    """Classification of each frame's voices against a table of embeddings: cross-entropy over scaled cosines.

    The table comes from a teacher and is fixed: the targets are known from the first step, and the encoder has only to
    learn to map its frames to them. (Trained towards its own row alone, without the others as negatives, it would learn
    what is most common: gender and microphones.) The table is centred, so that only the differences between voices
    count. Frames of silence are ignored; in overlap the voices share the target.
    """

    def __init__(self, input_dim: int, table: Tensor, scale: float = 16.0) -> None:
        super().__init__()
        self.scale = scale
        self.table: Tensor
        self.register_buffer("table", nn.functional.normalize(table - table.mean(0), dim=1), persistent=False)
        self.projection = nn.Linear(input_dim, table.shape[1])

    @classmethod
    def read(cls, path: str | Path, bank: VoiceBank, input_dim: int, scale: float = 16.0) -> "VoiceTeacher":
        """Read an ``.npz`` with ``embedding`` (V, E) and ``voice`` (V,), the names of voices, for the voices of a bank.

        Raises:
            InputError: if the file cannot be read, lacks a voice of the bank, or has an embedding that is not finite or
                not a vector, or if the bank has one voice only.
        """
        with reading("the voice table", path) as held:
            rows = dict(zip(held["voice"].tolist(), held["embedding"].astype(np.float32), strict=True))
        names = [voice.name for voice in bank.voices]
        absent = [name for name in names if name not in rows]
        if absent:
            raise InputError(f"the voice table {path} lacks {len(absent)} voices of the bank (first: {absent[0]})")
        table = np.stack([rows[name] for name in names])
        if table.ndim != 2 or not table.shape[1]:
            raise InputError(f"the voice table {path} needs an embedding (E,) for each voice, got {table.shape[1:]}")
        if len(table) < 2:
            raise InputError(f"a voice teacher needs two or more voices; the bank has one, {names[0]}")
        if broken := [name for name, row in zip(names, table, strict=True) if not np.isfinite(row).all()]:
            raise InputError(f"the voice table {path} has numbers that are not finite (first: {broken[0]})")
        return cls(input_dim, torch.from_numpy(table), scale)

    def forward(self, emb: Tensor, activity: Tensor, voice: Tensor, frames: int | None = None) -> Tensor:
        """Return the cross-entropy in units of ln V (1: chance level), averaged over frames with speech.

        emb (B, T, D), activity (B, T, S), voice (B, S) with -1 for none. Speech of unknown voices, as in real
        recordings, is ignored. ``frames``: number of frames with speech in the larger batch that this is a part of.
        """
        activity = activity * (voice >= 0)[:, None]
        speech = activity.any(dim=2)
        batch = torch.arange(len(voice), device=voice.device)[:, None].expand_as(speech)[speech]
        share = activity[speech] / activity[speech].sum(-1, keepdim=True)
        cosine = nn.functional.normalize(self.projection(emb[speech]), dim=-1) @ self.table.T
        nats = -(share * (self.scale * cosine).log_softmax(-1).gather(1, voice[batch].clamp(min=0))).sum(-1)
        return nats.sum() / max(1, len(nats) if frames is None else frames) / math.log(len(self.table))
