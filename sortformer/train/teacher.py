"""A teacher for voices: the encoder's frames must tell, among the embeddings of all voices, whose they are."""

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
    """Find the voices of each frame in a table of embeddings: cross-entropy over scaled cosines.

    The table is a teacher's and stays as it is: where voices lie is known from the first step, and the encoder has
    only to learn to place its frames. (Drawn to its own row alone, without the others to be told from, it would learn
    what is most common: sexes and microphones.) The table is centred, so that what tells one voice from another
    counts and not what all have in common. Frames of silence are left alone; in overlap the voices share the target.
    """

    def __init__(self, input_dim: int, table: Tensor, scale: float = 16.0) -> None:
        super().__init__()
        self.scale = scale
        self.table: Tensor
        self.register_buffer("table", _centre(table), persistent=False)
        self.projection = nn.Linear(input_dim, table.shape[1])

    @classmethod
    def read(cls, path: str | Path, bank: VoiceBank, input_dim: int, scale: float = 16.0) -> "VoiceTeacher":
        """Read an ``.npz`` with ``embedding`` (V, E) and ``voice`` (V,), the names of voices, for those of a bank.

        Raises:
            InputError: if the file cannot be read, lacks a voice of the bank, or has one that is not finite or no
                embedding, or if there is one voice only.
        """
        with reading(f"the voice table {path}"), open(path, "rb") as file, np.load(file) as archive:
            held = dict(archive)
            rows = dict(zip(held["voice"].tolist(), held["embedding"].astype(np.float32), strict=True))
        names = [voice.name for voice in bank.voices]
        absent = [name for name in names if name not in rows]
        if absent:
            raise InputError(f"the voice table {path} lacks {len(absent)} voices of the bank, the first is {absent[0]}")
        table = np.stack([rows[name] for name in names])
        if table.ndim != 2 or not table.shape[1]:
            raise InputError(f"the voice table {path} has no embedding (E,) of each voice, but {table.shape[1:]}")
        if len(table) < 2:
            raise InputError(f"a teacher of voices needs two of them or more; the bank has one, {names[0]}")
        if broken := [name for name, row in zip(names, table, strict=True) if not np.isfinite(row).all()]:
            raise InputError(f"the voice table {path} has numbers that are not finite, the first of {broken[0]}")
        return cls(input_dim, torch.from_numpy(table), scale)

    def forward(self, emb: Tensor, activity: Tensor, voice: Tensor, frames: int | None = None) -> Tensor:
        """Return the cross-entropy in units of ln V (1: knows nothing), averaged over frames with speech.

        emb (B, T, D), activity (B, T, S), voice (B, S) with -1 for none. Speech of unknown voices, as in real
        recordings, is left alone. ``frames``: those with speech of the larger batch that this one is a part of.
        """
        activity = activity * (voice >= 0)[:, None]
        speech = activity.any(dim=2)
        batch = torch.arange(len(voice), device=voice.device)[:, None].expand_as(speech)[speech]
        share = activity[speech] / activity[speech].sum(-1, keepdim=True)
        cosine = nn.functional.normalize(self.projection(emb[speech]), dim=-1) @ self.table.T
        nats = -(share * (self.scale * cosine).log_softmax(-1).gather(1, voice[batch].clamp(min=0))).sum(-1)
        return nats.sum() / max(1, len(nats) if frames is None else frames) / math.log(len(self.table))


def _centre(table: Tensor) -> Tensor:
    """Take off what all voices have in common, and bring each row to unit length."""
    return nn.functional.normalize(table - table.mean(0), dim=1)
