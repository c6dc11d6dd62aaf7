"""Add a second subsampling for 8 kHz recordings to a model, distilled from its output on the full band.

    python narrowband.py RECIPE MODEL OUT

MODEL processes the conversations of RECIPE as they are; with the new subsampling, all else being frozen, it processes
them as if recorded at 8 kHz, and learns to give the same embeddings and probabilities (parallel data, Li et al.,
arXiv 1708.05466), in addition to the labels and the distances of voices. Nothing changes for full-band recordings.
"""

import argparse
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from sortformer import checkpoint
from sortformer.config.train import TrainConfig
from sortformer.data import Sources, batches
from sortformer.layers import DepthwiseStriding
from sortformer.losses import hybrid_loss
from sortformer.model import Sortformer
from sortformer.simulate.render import mu_law, recorded_between
from sortformer.train.schedule import learning_rate
from sortformer.train.voice_pairs import voice_pairs

CHANNELS = 96  # or as many as the first subsampling has, if more
FROM_HZ, TO_HZ = (100.0, 400.0), (3100.0, 3980.0)
CALLS, MU_LAW = 0.6, 0.5  # shares of the conversations with a lower cutoff of FROM_HZ, and in 8-bit mu-law
LEVEL_DB = 3.0  # standard deviation of the gain of half of them: streams do not know their level at first
EMBEDDINGS, PROBABILITIES = 4.0, 0.5  # weights of the teacher's losses; those of labels and voices are 1
SHOWN = 50


def widened(model: Sortformer) -> Sortformer:
    """Return the model with a second subsampling: a copy of the first, blind above 4 kHz, and new channels."""
    old = model.encoder.pre_encode
    assert isinstance(old, DepthwiseStriding)
    count = old.stem.out_channels
    channels = max(CHANNELS, count)
    config = replace(model.config, encoder=replace(model.config.encoder, narrowband_channels=channels))
    result = Sortformer(config).eval()
    result.load_state_dict(model.state_dict(), strict=False)
    new = result.encoder.narrowband
    assert new is not None
    with torch.no_grad():
        for ours, theirs in zip([new.stem, *new.depthwise], [old.stem, *old.depthwise], strict=True):
            ours.weight[:count], ours.bias[:count] = theirs.weight, theirs.bias
        for ours, theirs in zip(new.pointwise, old.pointwise, strict=True):
            ours.weight[:count] = 0  # from the new channels
            ours.weight[:count, :count], ours.bias[:count] = theirs.weight, theirs.bias
        bins = new.out.in_features // channels
        columns = new.out.weight.zero_().view(-1, channels, bins)
        columns[:, :count] = old.out.weight.view(len(columns), count, -1)[:, :, :bins]
        new.out.bias.copy_(old.out.bias)
    return result.requires_grad_(False)


def called(wave: Tensor, rng: np.random.Generator) -> Tensor:
    """Return a wave (N,) as if recorded at 8 kHz."""
    if rng.random() < MU_LAW:
        wave = mu_law(wave / max(1e-6, 2 * float(wave.abs().max())))
    first_hz = float(rng.uniform(*FROM_HZ)) if rng.random() < CALLS else 0.0
    return recorded_between(wave, first_hz, float(rng.uniform(*TO_HZ)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipe", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    config = TrainConfig.read(arguments.recipe)
    torch.manual_seed(config.seed)
    torch.set_flush_denormal(True)
    torch.set_num_threads(1)  # the other core simulates the conversations
    rng = np.random.default_rng(config.seed)
    teacher, postprocess = checkpoint.load(arguments.model)
    if teacher.encoder.narrowband is not None:
        parser.error(f"{arguments.model} has a second subsampling already: give the model that it was made from")
    model = widened(teacher.requires_grad_(False))
    narrow = model.encoder.narrowband
    assert narrow is not None
    narrow.requires_grad_(True)
    optimizer = torch.optim.AdamW(
        narrow.parameters(), weight_decay=config.optimizer.weight_decay, betas=config.optimizer.betas
    )
    sums = np.zeros(4)
    for step, (batch,) in enumerate(batches(Sources.load(config.data), config, model.config, 0)):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(config.optimizer, step, config.steps)
        rows = len(batch.wave)
        decibels = rng.normal(0, LEVEL_DB, rows) * (rng.random(rows) < 0.5)
        with torch.no_grad():
            wanted = teacher.forward_features(*teacher.features(batch.alike_loud().wave, batch.num_samples))
            calls = replace(batch, wave=torch.stack([called(wave, rng) for wave in batch.wave])).alike_loud()
            wave = calls.wave * torch.from_numpy(10 ** (decibels / 20)).float()[:, None]
            feats, lengths = model.features(wave, batch.num_samples)
        emb, _ = model.encoder.subsample(feats, lengths, torch.ones(rows, dtype=torch.bool))
        output = model.forward_frames(emb, wanted.valid)
        spoken = (batch.activity.any(dim=2) & output.valid).float()
        away = 1 - nn.functional.cosine_similarity(output.emb, wanted.emb, dim=2)
        losses = (
            EMBEDDINGS * (spoken * away).sum() / spoken.sum().clamp(min=1),
            PROBABILITIES * nn.functional.binary_cross_entropy_with_logits(output.logits, wanted.probs),
            hybrid_loss(output.logits, batch.activity, output.valid, config.loss.sort_weight),
            voice_pairs(output.emb, batch.activity, output.valid, config.loss.voice_pairs_threshold),
        )
        optimizer.zero_grad()
        torch.stack(losses).sum().backward()
        norm = nn.utils.clip_grad_norm_(narrow.parameters(), config.optimizer.clip_norm)
        if math.isfinite(norm):
            optimizer.step()
        sums += [float(loss.detach()) for loss in losses]
        if (step + 1) % SHOWN == 0:
            print(step + 1, "embeddings, probabilities, labels, voices:", *np.round(sums / SHOWN, 3), flush=True)
            sums[:] = 0
            checkpoint.save(arguments.out, model, postprocess)
    checkpoint.save(arguments.out, model, postprocess)


if __name__ == "__main__":
    main()
