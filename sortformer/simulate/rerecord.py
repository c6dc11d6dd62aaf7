"""Channel augmentation of real recordings, as if they were played and recorded again by a worse device."""

from dataclasses import replace

import numpy as np
import torch

from sortformer.config.simulation import ChannelConfig
from sortformer.masks import length_mask
from sortformer.simulate.channel import draw_channel, stack_plans
from sortformer.simulate.conversations import Conversations
from sortformer.simulate.render import BLOCK_SAMPLES, padded_samples, render

__all__ = ["rerecord"]


def rerecord(batch: Conversations, config: ChannelConfig, rng: np.random.Generator) -> Conversations:
    """Apply a random channel to each recording: filters, noise, hum, bursts, codec and level.

    There is no room, because the recording has one, and no babble or bystander. Without a bank there are no pauses
    either: bursts of other kinds replace them. Labels and padding are unchanged.
    """
    rows, length = batch.wave.shape
    tracks = torch.zeros(rows, 2, padded_samples(length))
    tracks[:, 0, :length] = batch.wave
    occupied = np.zeros((rows, 2, tracks.shape[2] // BLOCK_SAMPLES), dtype=bool)
    occupied[:, 0] = True
    plain = replace(config, babble_probability=0.0, bystander_probability=0.0)
    plans = [draw_channel(rng, plain, 1, None) for _ in range(rows)]
    spoken = batch.activity.any(dim=2).float().mean(dim=1)
    # Without speech, disturbances are relative to the whole recording.
    speech = torch.where(spoken > 0, spoken * length, batch.num_samples)
    generators = [torch.Generator().manual_seed(int(seed)) for seed in rng.integers(2**62, size=rows)]
    wave = render(tracks, occupied, speech, stack_plans(plans), None, length, generators)
    return replace(batch, wave=wave * length_mask(batch.num_samples, length))
