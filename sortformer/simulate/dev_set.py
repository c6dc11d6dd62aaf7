"""Fixed sets of conversations to score on: easy (near microphones) or hard (a room, noise)."""

from dataclasses import fields, replace
from typing import Literal

import torch

from sortformer.config.simulation import ChannelConfig, SimulationConfig
from sortformer.errors import InputError
from sortformer.simulate.rooms import Rooms
from sortformer.simulate.simulator import Conversations, Simulator
from sortformer.simulate.turn_patterns import TurnPatterns
from sortformer.simulate.voice_bank import VoiceBank

__all__ = ["dev_set"]

_TRIES = 20
_PLAIN = ChannelConfig(
    equaliser_db=2.0,
    room_probability=0.0,
    near_probability=0.0,
    noise_probability=1.0,
    hum_probability=0.0,
    burst_probability=0.0,
    babble_probability=0.0,
    telephone_probability=0.0,
    low_pass_probability=0.0,
    high_pass_probability=0.0,
    mu_law_probability=0.0,
    coarse_probability=0.0,
    clip_probability=0.0,
)
_CHANNELS = {
    "near": replace(_PLAIN, near_probability=1.0, snr_db=(20.0, 40.0)),
    "rooms": replace(_PLAIN, room_probability=1.0, snr_db=(5.0, 30.0)),
}


def dev_set(
    bank: VoiceBank,
    kind: Literal["near", "rooms"],
    num_speakers: int,
    count: int,
    duration_s: float,
    seed: int,
    rooms: Rooms,
    turn_patterns: TurnPatterns | None = None,
    num_slots: int = 4,
) -> Conversations:
    """Make ``count`` conversations in each of which exactly ``num_speakers`` voices are heard.

    The same arguments give the same bits; conversation i is the same whatever ``count`` is. Use voices (the split
    ``dev``, speed 1) and rooms (another seed) that training does not see.

    Args:
        kind: "near": a microphone each, summed, 20 to 40 dB of noise; "rooms": one distant microphone, 5 to 30 dB.

    Raises:
        InputError: on another kind, or if so many speakers never fit into ``duration_s``.
    """
    if kind not in _CHANNELS:
        raise InputError(f"a dev set is of the kind 'near' or 'rooms', not {kind!r}")
    if count < 1 or not 1 <= num_speakers <= num_slots:
        raise InputError(
            f"a dev set needs count >= 1 and 1 to {num_slots} speakers, got {count} conversations of {num_speakers}"
        )
    config = SimulationConfig(
        num_slots=num_slots, speaker_weights=(0.0,) * (num_speakers - 1) + (1.0,), channel=_CHANNELS[kind]
    )
    simulator = Simulator(bank, config, turn_patterns, rooms)
    generators = [torch.Generator().manual_seed(seed * 1_000_003 + index) for index in range(count)]
    rows = [_conversation(simulator, generator, num_speakers, duration_s) for generator in generators]
    return Conversations(*(torch.cat([getattr(row, field.name) for row in rows]) for field in fields(Conversations)))


def _conversation(
    simulator: Simulator, generator: torch.Generator, num_speakers: int, duration_s: float
) -> Conversations:
    for _ in range(_TRIES):
        drawn = simulator.batch(generator, 1, duration_s)
        if int((drawn.voice >= 0).sum()) == num_speakers:
            return drawn
    raise InputError(f"{num_speakers} speakers were not heard within {duration_s} s in {_TRIES} draws; make it longer")
