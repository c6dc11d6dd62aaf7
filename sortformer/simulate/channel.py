"""The channel (acoustics and recorder) of each conversation of a batch, drawn as numbers and short filters."""

from dataclasses import dataclass, fields, replace

import numpy as np

from sortformer.config.simulation import ChannelConfig
from sortformer.grid import SAMPLE_RATE
from sortformer.simulate.rooms import Rooms

__all__ = ["CLEAN", "FILTER_BINS", "ChannelPlan", "draw_channel", "stack_plans"]

FILTER_BINS = 257  # magnitudes from 0 to 8 kHz: filters of 512 samples
_FREQUENCY = np.linspace(0, SAMPLE_RATE / 2, FILTER_BINS)
_OCTAVE = np.log2(np.maximum(_FREQUENCY, 31.25) / 31.25)  # 0 to 8
_STOP = 0.01  # the least gain of a band filter (-40 dB)
_CALLS, _NARROW_MU_LAW = 0.5, 0.5  # shares of what is recorded at 8 kHz
CLEAN = replace(
    ChannelConfig(),
    equaliser_db=0.0,
    **{field.name: 0.0 for field in fields(ChannelConfig) if field.name.endswith("_probability")},
)
"""A channel without any effect but the level."""


@dataclass(frozen=True, slots=True, eq=False)
class ChannelPlan:
    """The channel of one conversation, or (stacked by ``stack_plans``) of B of them, with a leading axis B.

    Attributes:
        magnitude: (S + 2, FILTER_BINS) magnitude response of the path of each slot, of the babble and of the noise.
        response: (S + 1, 2) indices of room and position, for each slot and the babble.
        direct, wet: amplitude of the dry and of the reverberant voice.
        noise_swing_db: standard deviation of the slowly varying level of the noise.
        snr_db, babble_snr_db, hum_snr_db: active speech to disturbance; infinite without it.
        hum_hz: mains frequency.
        burst_hz: bursts per second, 0 for none.
        burst_snr_db: active speech to a burst.
        burst_seed: seed of the bursts' generator.
        burst_shares: (6,) shares of clatter, rustling, breath, laughter, music and pauses among the bursts.
        bystander: the babble is one voice that talks now and then.
        recorded_hz: (2,) lower and upper cut-off of the recorder.
        mu_law: quantise to 8-bit mu-law.
        step: step of uniform quantisation, 0 for none.
        clip_share: clipping level relative to the peak; 1 for none.
        level_dbfs: level of the active speech.
    """

    magnitude: np.ndarray
    response: np.ndarray
    direct: np.ndarray
    wet: np.ndarray
    noise_swing_db: np.ndarray
    snr_db: np.ndarray
    babble_snr_db: np.ndarray
    hum_snr_db: np.ndarray
    hum_hz: np.ndarray
    burst_hz: np.ndarray
    burst_snr_db: np.ndarray
    burst_seed: np.ndarray
    burst_shares: np.ndarray
    bystander: np.ndarray
    recorded_hz: np.ndarray
    mu_law: np.ndarray
    step: np.ndarray
    clip_share: np.ndarray
    level_dbfs: np.ndarray


def draw_channel(rng: np.random.Generator, config: ChannelConfig, num_slots: int, rooms: Rooms | None) -> ChannelPlan:
    """Draw the channel of one conversation; without rooms every voice is dry."""
    if config.clean_probability and rng.random() < config.clean_probability:
        config = replace(CLEAN, level_dbfs=config.level_dbfs)

    def sometimes(probability: float, bounds: tuple[float, float], otherwise: float) -> float:
        drawn = rng.uniform(*bounds)
        return drawn if rng.random() < probability else otherwise

    bursting = bool(config.burst_probability) and rng.random() < config.burst_probability
    direct, wet = _mixing(rng, config, rooms)
    # Drawn only if enabled: otherwise the result of a seed would change.
    bystander = bool(config.bystander_probability) and rng.random() < config.bystander_probability
    murmuring = (1.0, config.bystander_snr_db) if bystander else (config.babble_probability, config.babble_snr_db)
    narrow = bool(config.narrowband_probability) and rng.random() < config.narrowband_probability
    bits = sometimes(config.coarse_probability, config.coarse_bits, 0.0)
    return ChannelPlan(
        magnitude=_magnitudes(rng, config, num_slots),
        response=_places(rng, num_slots, rooms),
        direct=_number(direct),
        wet=_number(wet),
        noise_swing_db=_number(rng.uniform(*config.noise_swing_db)),
        snr_db=_number(sometimes(config.noise_probability, config.snr_db, np.inf)),
        babble_snr_db=_number(sometimes(*murmuring, np.inf)),
        hum_snr_db=_number(sometimes(config.hum_probability, config.snr_db, np.inf)),
        hum_hz=_number(rng.choice([50.0, 60.0])),
        burst_hz=_number(rng.uniform(*config.burst_hz) if bursting else 0.0),
        burst_snr_db=_number(rng.uniform(*config.burst_snr_db) if bursting else np.inf),
        burst_seed=np.asarray(rng.integers(2**31) if bursting else 0),
        burst_shares=np.array(config.burst_shares, dtype=np.float32),
        bystander=np.asarray(bystander),
        recorded_hz=_recorded_hz(rng, config) if narrow else np.array([0.0, np.inf], dtype=np.float32),
        mu_law=np.asarray(rng.random() < (_NARROW_MU_LAW if narrow else config.mu_law_probability)),
        step=_number(2.0 ** (1 - round(bits)) if bits else 0.0),
        clip_share=_number(sometimes(config.clip_probability, config.clip_share, 1.0)),
        level_dbfs=_number(rng.uniform(*config.level_dbfs)),
    )


def stack_plans(plans: list[ChannelPlan]) -> ChannelPlan:
    """Stack the plans of B conversations along a new first axis."""
    return ChannelPlan(*(np.stack([getattr(plan, field.name) for plan in plans]) for field in fields(ChannelPlan)))


def _number(value: float) -> np.ndarray:
    return np.asarray(value, dtype=np.float32)


def _mixing(rng: np.random.Generator, config: ChannelConfig, rooms: Rooms | None) -> tuple[float, float]:
    kind = rng.random()
    room_below = rng.uniform(*config.near_room_db)
    if rooms is None or kind >= config.room_probability + config.near_probability:
        return 1.0, 0.0
    return (0.0, 1.0) if kind < config.room_probability else (1.0, 10 ** (room_below / 20))


def _places(rng: np.random.Generator, num_slots: int, rooms: Rooms | None) -> np.ndarray:
    count, positions = (1, 1) if rooms is None else rooms.responses.shape[:2]
    room = np.full(num_slots + 1, rng.integers(count))
    order = rng.permutation(positions)
    return np.stack([room, order[np.arange(num_slots + 1) % positions]], axis=-1)


def _magnitudes(rng: np.random.Generator, config: ChannelConfig, num_slots: int) -> np.ndarray:
    knots = rng.normal(size=(num_slots + 1, 7)) * config.equaliser_db
    # Drawn only if enabled: otherwise the result of a seed would change.
    if config.one_microphone_probability and rng.random() < config.one_microphone_probability:
        knots[:] = knots[0]
    curves = [np.interp(_OCTAVE, np.linspace(2, 8, 7), row) for row in knots]
    voices = 10 ** (np.stack(curves) / 20)
    slope = rng.uniform(*config.noise_slope)
    bumps = np.interp(_OCTAVE, np.linspace(0, 8, 9), rng.normal(size=9) * 3)
    noise = 2 ** (-slope / 2 * _OCTAVE) * 10 ** (bumps / 20)
    return (np.vstack([voices, noise]) * _band(rng, config)).astype(np.float32)


def _band(rng: np.random.Generator, config: ChannelConfig) -> np.ndarray:
    """Return the magnitude response (FILTER_BINS,) of the recorder."""
    draws = rng.random(3)
    low_pass_hz = rng.uniform(*config.low_pass_hz)
    high_pass_hz = rng.uniform(*config.high_pass_hz)
    band = np.ones(FILTER_BINS)
    if draws[0] < config.telephone_probability:
        band *= _edge(_FREQUENCY, 300.0, 80.0) * _edge(-_FREQUENCY, -3400.0, 150.0)
    if draws[1] < config.low_pass_probability:
        band *= _edge(-_FREQUENCY, -low_pass_hz, 150.0)
    if draws[2] < config.high_pass_probability:
        band *= _edge(_FREQUENCY, high_pass_hz, 40.0)
    return np.maximum(band, _STOP)


def _recorded_hz(rng: np.random.Generator, config: ChannelConfig) -> np.ndarray:
    """Return the lower and the upper cut-off (2,) of a recorder at 8 kHz."""
    call = rng.random() < _CALLS
    first_hz = rng.uniform(*config.narrowband_from_hz)
    return np.array([first_hz if call else 0.0, rng.uniform(*config.narrowband_to_hz)], dtype=np.float32)


def _edge(position: np.ndarray, corner: float, width: float) -> np.ndarray:
    return np.clip((position - corner) / (2 * width) + 0.5, 0, 1)
