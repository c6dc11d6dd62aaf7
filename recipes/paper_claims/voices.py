"""Frames of single voices, encoded once by the frozen encoder: the material of the conversations."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from sortformer.config.train import TrainConfig
from sortformer.errors import InputError
from sortformer.grid import SAMPLE_RATE
from sortformer.model import Sortformer
from sortformer.simulate import VoiceBank

__all__ = ["SILENCE", "STEP_S", "Voices", "load"]

COARSE = 8  # frames of 80 ms in a step
STEP_S = 0.08 * COARSE
SILENCE = -1
CHANNELS = 64
PIECES = 4  # of each voice, as far apart as possible
SILENCE_S = 32
NOISE = 0.05 * 10 ** (-35 / 20)  # 35 dB below speech
_HOPS = 8 * COARSE  # of 10 ms in a step


@dataclass(frozen=True, slots=True)
class Voices:
    """Steps of speech (V, N, D) of V voices, and steps of silence (M, D), both in order of time."""

    speech: Tensor
    silence: Tensor

    def compose(self, spoken: np.ndarray, generator: np.random.Generator) -> Tensor:
        """Return embeddings (B, T, D) of the voices (B, T) that speak, by number or ``SILENCE``.

        Each voice of a row starts at a random one of its steps, continues from turn to turn, and wraps around.
        """
        at = np.zeros(spoken.shape, np.int64)
        for row, places in zip(spoken, at, strict=True):
            for voice in np.unique(row):
                places[row == voice] = generator.integers(1 << 20) + np.arange(np.count_nonzero(row == voice))
        step, who = torch.from_numpy(at), torch.from_numpy(spoken)
        heard = self.speech[who.clamp(min=0), step % self.speech.shape[1]]
        return torch.where((who == SILENCE)[..., None], self.silence[step % len(self.silence)], heard)

    def projected(self, mean: Tensor, directions: Tensor) -> "Voices":
        """Return the voices minus ``mean`` (D,), projected onto ``directions`` (D, C)."""
        return Voices((self.speech - mean) @ directions, (self.silence - mean) @ directions)


def load(
    folder: Path, model: Sortformer, recipe: TrainConfig, heard_s: float, speech_s: float
) -> tuple[Voices, Voices]:
    """Return the voices for training and for evaluation, encoded or read from the cache in the folder.

    Of each voice ``heard_s`` are encoded and ``speech_s`` of speech kept; those with less are left out. All are
    projected onto the principal directions of the means of the training voices, scaled so that the mean square of a
    channel of speech is 1.

    Raises:
        InputError: when fewer than two voices of a split speak for long enough.
    """
    train, dev = (_kept(folder, model, recipe, split, heard_s, speech_s) for split in ("train", "dev"))
    means = train.speech.mean(dim=1)
    mean = means.mean(dim=0)
    directions = torch.linalg.svd(means - mean, full_matrices=False).Vh[:CHANNELS].T
    directions = directions / ((train.speech - mean) @ directions).square().mean().sqrt()
    return train.projected(mean, directions), dev.projected(mean, directions)


def _kept(folder: Path, model: Sortformer, recipe: TrainConfig, split: str, heard_s: float, speech_s: float) -> Voices:
    path = folder / f"voices-{split}.pt"
    if not path.exists():
        speeds = recipe.data.speeds if split == "train" else (1.0,)
        bank = VoiceBank.load(recipe.data.bank or "", split, speeds, recipe.data.cache)
        piece, kept = round(heard_s / STEP_S / PIECES), round(speech_s / STEP_S)
        found = _encoded(bank, model, piece, kept, np.random.default_rng(recipe.seed))
        if len(found) < 2:
            raise InputError(
                f"fewer than two voices of '{split}' in {recipe.data.bank} speak for {speech_s:g} of {heard_s:g} s"
            )
        folder.mkdir(parents=True, exist_ok=True)
        silence = _heard(model, np.zeros((1, SILENCE_S * SAMPLE_RATE)), np.random.default_rng(recipe.seed))[0]
        torch.save((torch.stack(found), silence), path)
    return Voices(*torch.load(path, weights_only=True))


def _encoded(bank: VoiceBank, model: Sortformer, steps: int, kept: int, rng: np.random.Generator) -> list[Tensor]:
    """Return ``kept`` steps (N, D) of speech of each voice that has as many in ``PIECES`` pieces of ``steps``."""
    edges = np.searchsorted(bank.utterance_voice, np.arange(len(bank.voices) + 1))
    spans = zip(bank.utterance_start[edges[:-1]], bank.utterance_end[edges[1:] - 1], strict=True)
    hops = steps * _HOPS
    found = []
    for start, end in spans:
        if end - start >= PIECES * hops:
            heard = np.linspace(start, end - hops, PIECES).astype(int)[:, None] + np.arange(hops)
            active = bank.activity[heard].reshape(PIECES, steps, _HOPS).mean(axis=2) >= 0.5
            if active.sum() >= kept:
                wave = bank.audio.reshape(len(bank.activity), -1)[heard].reshape(PIECES, -1) / 32768
                found.append(_heard(model, wave, rng)[torch.from_numpy(active)][:kept])
    return found


@torch.inference_mode()
def _heard(model: Sortformer, wave: np.ndarray, rng: np.random.Generator) -> Tensor:
    """Return the embeddings (B, T, D), averaged in steps, of waves (B, N) with a little noise added."""
    noisy = wave + NOISE * rng.standard_normal(wave.shape)
    emb = model(torch.from_numpy(noisy.astype(np.float32))).emb
    return emb[:, : emb.shape[1] // COARSE * COARSE].unflatten(1, (-1, COARSE)).mean(dim=2)
