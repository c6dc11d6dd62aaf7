"""A teacher for voices: the encoder's frames are pulled towards embeddings of whoever speaks in them."""

from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import torch
from torch import Tensor, nn

from sortformer.errors import InputError
from sortformer.simulate import VoiceBank

__all__ = ["VoiceTeacher"]


class VoiceTeacher(nn.Module):
    """Compare a projection of each frame with the mean embedding of its active voices, by cosine.

    The table is centred, so that what tells one voice from another counts and not what all have in common. Frames of
    silence are left alone; in overlap the target is the sum of the voices.
    """

    def __init__(self, input_dim: int, table: Tensor) -> None:
        super().__init__()
        self.table: Tensor
        self.register_buffer("table", _centre(table), persistent=False)
        self.projection = nn.Linear(input_dim, table.shape[1])

    @classmethod
    def read(cls, path: str | Path, bank: VoiceBank, input_dim: int) -> "VoiceTeacher":
        """Read an ``.npz`` with ``embedding`` (V, E) and ``voice`` (V,) of "speaker@speed", for the voices of a bank.

        Raises:
            InputError: if the file cannot be read or lacks a voice of the bank.
        """
        try:
            with np.load(path, allow_pickle=False) as archive:
                rows = dict(zip(archive["voice"].tolist(), archive["embedding"].astype(np.float32), strict=True))
        # An array instead of an archive has no `with` (TypeError), an empty file no data (EOFError).
        except (OSError, ValueError, KeyError, TypeError, EOFError, BadZipFile) as error:
            raise InputError(f"cannot read the voice table {path}: {error}") from error
        names = [f"{voice.speaker}@{voice.speed:g}" for voice in bank.voices]
        absent = [name for name in names if name not in rows]
        if absent:
            raise InputError(f"the voice table {path} lacks {len(absent)} voices of the bank, the first is {absent[0]}")
        return cls(input_dim, torch.from_numpy(np.stack([rows[name] for name in names])))

    def forward(self, emb: Tensor, activity: Tensor, voice: Tensor) -> Tensor:
        """Return 1 - cosine, averaged over frames with speech; emb (B, T, D), activity (B, T, S), voice (B, S)."""
        target = activity @ (self.table[voice.clamp(min=0)] * (voice >= 0)[..., None])
        speech = activity.any(dim=2)
        cosine = nn.functional.cosine_similarity(self.projection(emb), target, dim=-1)
        return ((1 - cosine) * speech).sum() / speech.sum().clamp(min=1)


def _centre(table: Tensor) -> Tensor:
    """Take off what all voices have in common, and bring each row to unit length."""
    return nn.functional.normalize(table - table.mean(0), dim=1)
