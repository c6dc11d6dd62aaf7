"""Fixed dev sets: conversations (near microphones, telephone, rooms, similar voices), and sounds without speech."""

from dataclasses import replace
from typing import Literal

import torch

from sortformer.annotation import Turn
from sortformer.config.simulation import CastingConfig, SimulationConfig
from sortformer.errors import InputError
from sortformer.grid import FrameGrid
from sortformer.seeds import seed_of
from sortformer.simulate.channel import CLEAN
from sortformer.simulate.conversations import Conversations
from sortformer.simulate.rooms import Rooms
from sortformer.simulate.simulator import Simulator
from sortformer.simulate.speech_activity import active_runs
from sortformer.simulate.voice_bank import VoiceBank

__all__ = ["DevKind", "dev_set", "dev_simulator", "turns_of"]

DevKind = Literal["near", "alike", "rooms", "calls", "sounds"]

_TRIES = 20
_PLAIN = replace(CLEAN, equaliser_db=2.0, noise_probability=1.0)
_CHANNELS = {
    "near": replace(_PLAIN, near_probability=1.0, snr_db=(20.0, 40.0)),
    "rooms": replace(_PLAIN, room_probability=1.0, snr_db=(5.0, 30.0)),
    "alike": replace(_PLAIN, near_probability=1.0, snr_db=(20.0, 40.0), one_microphone_probability=1.0),
    "calls": replace(_PLAIN, near_probability=1.0, snr_db=(15.0, 40.0), narrowband_probability=1.0),
    "sounds": replace(
        _PLAIN,
        snr_db=(20.0, 40.0),
        burst_probability=1.0,
        burst_hz=(0.3, 1.0),
        burst_snr_db=(-5.0, 5.0),
        pause_share=0.8,
        music_share=0.2,
    ),
}
_CASTS = {"alike": CastingConfig(same_corpus_probability=1.0, same_gender_probability=0.0)}


def dev_set(
    bank: VoiceBank,
    kind: DevKind,
    num_speakers: int,
    count: int,
    duration_s: float,
    seed: int,
    rooms: Rooms,
    num_slots: int = 4,
) -> Conversations:
    """Make ``count`` conversations with exactly ``num_speakers`` speakers each.

    The same arguments give the same bits, and conversation i does not depend on ``count``. Use voices (the split
    ``dev``, speed 1) and rooms (another seed) that are not used in training.

    Args:
        kind: "near": a close microphone each, summed, at an SNR of 20 to 40 dB; "alike": the same, but all voices are
            of one corpus (if it has enough) and all microphones alike; "rooms": one distant microphone, 5 to 30 dB;
            "calls": near, but recorded at 8 kHz, 15 to 40 dB; "sounds": no speech (``num_speakers`` is 0), but sounds
            from the pauses of the voices' recordings, such as breath, at about the level of speech, and music.

    Raises:
        InputError: on an unknown kind or a wrong number of speakers, or if so many never fit into ``duration_s``.
    """
    if count < 1:
        raise InputError(f"a dev set needs one conversation or more, got {count}")
    simulator = dev_simulator(bank, kind, num_speakers, rooms, num_slots)
    generators = [torch.Generator().manual_seed(seed_of(seed, index)) for index in range(count)]
    rows = [_conversation(simulator, generator, num_speakers, duration_s) for generator in generators]
    return Conversations.joined(rows)


def dev_simulator(
    bank: VoiceBank, kind: DevKind, num_speakers: int, rooms: Rooms | None = None, num_slots: int = 4
) -> Simulator:
    """Return the simulator of a dev set; arguments as for ``dev_set``.

    Raises:
        InputError: on an unknown kind, or a number of speakers that it does not support.
    """
    if kind not in _CHANNELS:
        raise InputError(f"the kind of a dev set must be 'near', 'alike', 'rooms', 'calls' or 'sounds', got {kind!r}")
    fewest, most = (0, 0) if kind == "sounds" else (1, num_slots)
    if not fewest <= num_speakers <= most:
        raise InputError(f"a dev set of the kind {kind!r} needs {fewest} to {most} speakers, got {num_speakers}")
    config = SimulationConfig(
        num_slots=num_slots,
        speaker_weights=(0.0,) * (num_speakers - 1) + (1.0,),
        speechless_probability=float(kind == "sounds"),
        casting=_CASTS.get(kind, CastingConfig()),
        channel=_CHANNELS[kind],
    )
    return Simulator(bank, config, rooms=rooms)


def turns_of(activity: torch.Tensor) -> tuple[Turn, ...]:
    """Return the reference of a conversation: the runs of each column of its activity (T, S), a speaker, as turns."""
    seconds = FrameGrid().seconds
    return tuple(
        Turn(seconds(start), seconds(end), f"speaker_{slot}")
        for slot, column in enumerate(activity.numpy().T)
        for start, end in zip(*active_runs(column), strict=True)
    )


def _conversation(
    simulator: Simulator, generator: torch.Generator, num_speakers: int, duration_s: float
) -> Conversations:
    for _ in range(_TRIES):
        drawn = simulator.batch(generator, 1, duration_s)
        if int((drawn.voice >= 0).sum()) == num_speakers:
            return drawn
    raise InputError(f"{num_speakers} speakers did not fit into {duration_s} s in {_TRIES} draws; make it longer")
