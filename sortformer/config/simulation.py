"""Configs of simulated conversations: number of speakers, turn-taking and channel."""

import math
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from sortformer.config.checks import as_annotated
from sortformer.errors import ConfigError

__all__ = ["CastingConfig", "ChannelConfig", "SimulationConfig", "TurnTakingConfig"]


_NOT_NEGATIVE = ("_spread", "_gain_db", "_swing_db", "equaliser_db", "_s", "slope", "burst_hz")
_ABOVE_ZERO = ("turn_median_s", "pause_median_s", "dominance", "pass_hz", "_from_hz", "_to_hz", "clip_share")
_COUNTS = ("babble_voices", "coarse_bits")
# Beyond these, samples and times are no longer finite.
_MOST_DB, _MOST_SPREAD, _LONGEST_S = 200, 10, 1_000_000


def _check(config: Any) -> None:
    as_annotated(config)
    for name, value in ((field.name, getattr(config, field.name)) for field in fields(config)):
        if is_dataclass(value):
            continue
        numbers = value if isinstance(value, tuple) else (value,)
        if not all(abs(number) < math.inf for number in numbers):
            raise ConfigError(f"{name} must be finite, got {value}")
        if isinstance(value, tuple) and name != "speaker_weights" and (len(value) != 2 or value[0] > value[1]):
            raise ConfigError(f"{name} must be a range [low, high], got {value}")
        low, high = min(numbers, default=0), max(numbers, default=0)
        if name.endswith("_probability") and not 0 <= low <= high <= 1:
            raise ConfigError(f"{name} must lie between 0 and 1, got {value}")
        if name.endswith(_NOT_NEGATIVE) and low < 0:
            raise ConfigError(f"{name} must not be negative, got {value}")
        if name.endswith(_ABOVE_ZERO) and low <= 0:
            raise ConfigError(f"{name} must be above zero, got {value}")
        if name.endswith(("_db", "_dbfs")) and not -_MOST_DB <= low <= high <= _MOST_DB:
            raise ConfigError(f"{name} must lie between {-_MOST_DB} and {_MOST_DB} dB, got {value}")
        if name.endswith("_spread") and high > _MOST_SPREAD:
            raise ConfigError(f"{name} must not exceed {_MOST_SPREAD}, got {value}")
        if name.endswith("_s") and high > _LONGEST_S:
            raise ConfigError(f"{name} must not exceed {_LONGEST_S:,} s, got {value}")
        if name in _COUNTS and low < 1:
            raise ConfigError(f"{name} must be at least 1, got {value}")
        if name.endswith("_share") and high > 1:
            raise ConfigError(f"{name} must not exceed 1, got {value}")


@dataclass(frozen=True, slots=True)
class CastingConfig:
    """The voices of a conversation, and variations in their level, tilt and speed.

    Attributes:
        same_corpus_probability: all voices come from one corpus, so that the corpus does not identify the speaker.
        same_gender_probability: all voices have the same known gender.
        voice_gain_db: largest gain of a voice, up or down.
        turn_gain_db: standard deviation of the gain of a turn, relative to its voice.
        turn_tilt: largest |t| of a filter 1 + t z^-1 that makes a turn duller or brighter, as when people turn their
            heads: so the channel does not identify the speaker.
        turn_speed: largest relative change of the speed of a turn, including pitch and formants, because people do not
            always sound the same.
    """

    same_corpus_probability: float = 0.4
    same_gender_probability: float = 0.3
    voice_gain_db: float = 8.0
    turn_gain_db: float = 1.5
    turn_tilt: float = 0.0
    turn_speed: float = 0.0

    def __post_init__(self) -> None:
        _check(self)
        for name in ("turn_tilt", "turn_speed"):
            if not 0 <= getattr(self, name) < 1:
                raise ConfigError(f"{name} of the casting must be at least 0 and below 1, got {getattr(self, name)}")


@dataclass(frozen=True, slots=True)
class TurnTakingConfig:
    """Parametric turn-taking; ranges are sampled once per conversation, so that conversations differ.

    Attributes:
        turn_median_s: range of the median turn length (drawn log-uniformly).
        turn_spread: standard deviation of the logarithm of turn lengths.
        pause_median_s: range of the median pause between turns (drawn log-uniformly).
        pause_spread: standard deviation of the logarithm of pauses.
        overlap_probability: range of the fraction of turns that start before the current one has ended; those of
            the same speaker extend it instead of overlapping it.
        overlap_median_s: median length of such an overlap.
        backchannel_probability: range of the probability of a back-channel, a short remark of a listener during a turn
            of more than 1.2 s.
        backchannel_s: range of the length of a back-channel.
        same_speaker_probability: probability that the next turn is of the same speaker, after a pause or not.
        long_silence_probability: probability that a pause becomes a long silence.
        long_silence_s: range of the length of a long silence.
        dominance: range of the Dirichlet concentration (small: one speaker dominates).
    """

    turn_median_s: tuple[float, float] = (0.6, 5.0)
    turn_spread: float = 0.7
    pause_median_s: tuple[float, float] = (0.1, 0.9)
    pause_spread: float = 0.8
    overlap_probability: tuple[float, float] = (0.0, 0.65)
    overlap_median_s: float = 0.6
    backchannel_probability: tuple[float, float] = (0.0, 0.6)
    backchannel_s: tuple[float, float] = (0.25, 1.0)
    same_speaker_probability: float = 0.2
    long_silence_probability: float = 0.03
    long_silence_s: tuple[float, float] = (2.0, 8.0)
    dominance: tuple[float, float] = (0.7, 8.0)

    def __post_init__(self) -> None:
        _check(self)


@dataclass(frozen=True, slots=True)
class ChannelConfig:
    """Acoustics and recording, from mouth to file; levels and ratios in dB, frequencies in Hz.

    Attributes:
        clean_probability: voices as in the bank, scaled to ``level_dbfs``, without any of the effects below.
        room_probability: one distant microphone in a room.
        near_probability: one close microphone per speaker, summed, with a low level of the room (otherwise: no room).
        near_room_db: range of the level of the room in such a mix.
        equaliser_db: standard deviation of the smooth random filter of each voice, at its knots.
        one_microphone_probability: all voices have the same filter, so that it does not distinguish them.
        noise_probability: coloured noise is present.
        noise_slope: range of the exponent of 1 / f^slope (0 white, 1 pink, 2 brown).
        noise_swing_db: range of the standard deviation of the slowly varying noise level.
        snr_db: range of the ratio of active speech to noise.
        hum_probability: mains hum and its harmonics are present.
        burst_probability: bursts (short noises such as breaths, clicks and knocks) are present.
        burst_hz: range of the number of bursts per second.
        burst_snr_db: range of the ratio of active speech to a burst.
        clatter_share: fraction of bursts that come in trains: typing, tapping, handling of the microphone.
        rustle_share: fraction of bursts that fluctuate for seconds: clothes, paper, writing.
        breath_share: fraction of bursts that are breaths, with the resonances of a mouth.
        laughter_share: fraction of bursts that are laughter, voiced or not: without words, so not speech.
        music_share: fraction of bursts with notes: music, ringing, beeps.
        pause_share: fraction of bursts taken from pauses in the bank's recordings, at the level of the others.
        babble_probability: other voices of the bank talk in the background.
        babble_voices: range of their number.
        babble_snr_db: range of the ratio of active speech to babble.
        bystander_probability: instead of babble, one other voice of the bank talks now and then, far away and not
            labelled; not in conversations without speech.
        bystander_snr_db: range of the ratio of active speech to that voice.
        narrowband_probability: recording at 8 kHz: everything, noise and bursts included, is cut above a drawn
            frequency. Half of these are telephone calls, cut below a drawn frequency too; half of all use 8-bit mu-law.
        narrowband_from_hz, narrowband_to_hz: ranges of these cut-offs.
        telephone_probability: voices and noise are limited to 300 to 3400 Hz.
        low_pass_probability: voices and noise are cut above a drawn frequency.
        low_pass_hz: range of the cut-off.
        high_pass_probability: voices and noise are cut below a drawn frequency.
        high_pass_hz: range of the cut-off.
        mu_law_probability: 8-bit mu-law quantisation.
        coarse_probability: uniform quantisation to few bits.
        coarse_bits: range of the number of bits.
        clip_probability: peaks are clipped.
        clip_share: range of the clipping level, relative to the highest sample.
        level_dbfs: range of the root-mean-square level of active speech.
    """

    clean_probability: float = 0.0
    room_probability: float = 0.4
    near_probability: float = 0.35
    near_room_db: tuple[float, float] = (-25.0, -6.0)
    equaliser_db: float = 3.5
    one_microphone_probability: float = 0.0
    noise_probability: float = 0.9
    noise_slope: tuple[float, float] = (0.0, 2.0)
    noise_swing_db: tuple[float, float] = (0.0, 6.0)
    snr_db: tuple[float, float] = (3.0, 40.0)
    hum_probability: float = 0.08
    burst_probability: float = 0.3
    burst_hz: tuple[float, float] = (0.05, 1.5)
    burst_snr_db: tuple[float, float] = (-5.0, 20.0)
    clatter_share: float = 0.0
    rustle_share: float = 0.0
    breath_share: float = 0.0
    laughter_share: float = 0.0
    music_share: float = 0.0
    pause_share: float = 0.0
    babble_probability: float = 0.15
    babble_voices: tuple[int, int] = (4, 8)
    babble_snr_db: tuple[float, float] = (8.0, 30.0)
    bystander_probability: float = 0.0
    bystander_snr_db: tuple[float, float] = (24.0, 40.0)
    narrowband_probability: float = 0.0
    narrowband_from_hz: tuple[float, float] = (150.0, 350.0)
    narrowband_to_hz: tuple[float, float] = (3200.0, 3950.0)
    telephone_probability: float = 0.08
    low_pass_probability: float = 0.15
    low_pass_hz: tuple[float, float] = (2500.0, 7500.0)
    high_pass_probability: float = 0.2
    high_pass_hz: tuple[float, float] = (60.0, 250.0)
    mu_law_probability: float = 0.06
    coarse_probability: float = 0.03
    coarse_bits: tuple[int, int] = (8, 11)
    clip_probability: float = 0.06
    clip_share: tuple[float, float] = (0.25, 0.8)
    level_dbfs: tuple[float, float] = (-35.0, -12.0)

    def __post_init__(self) -> None:
        _check(self)
        if self.narrowband_from_hz[1] >= self.narrowband_to_hz[0]:
            raise ConfigError(
                f"narrowband_from_hz of the channel must lie below narrowband_to_hz, got {self.narrowband_from_hz} and "
                f"{self.narrowband_to_hz}"
            )
        if self.room_probability + self.near_probability > 1:
            raise ConfigError("the sum of room_probability and near_probability of the channel must not exceed 1")
        if min(self.burst_shares) < 0 or math.fsum(self.burst_shares) > 1 + 1e-9:  # tenths may sum to more
            raise ConfigError(
                "the shares of clatter, rustling, breath, laughter, music and pauses must be at least 0 and sum to at "
                f"most 1, got {self.burst_shares}"
            )

    @property
    def burst_shares(self) -> tuple[float, ...]:
        """Fractions of bursts that are clatter, rustling, breath, laughter, music and pauses."""
        return (
            self.clatter_share,
            self.rustle_share,
            self.breath_share,
            self.laughter_share,
            self.music_share,
            self.pause_share,
        )


@dataclass(frozen=True, slots=True)
class SimulationConfig:
    """Simulated conversations for training a diarizer.

    Attributes:
        num_slots: output channels of the targets, in order of arrival.
        speaker_weights: relative frequency of conversations with 1, 2, ... speakers; at most ``num_slots`` of them.
        speechless_probability: fraction of conversations without speech, of channel sounds only.
        shortest_pause_s: shorter pauses of a speaker are labelled as speech, as annotators do: of the pauses in the
            references of AMI (train) 0.7 % are shorter than half a second, of VoxConverse's (dev) 16 %.
        replay_probability: fraction of conversations whose turn-taking is a window of a real meeting
            (when patterns are given).
        lively_probability: fraction of these for which the liveliest of several windows is taken.
    """

    num_slots: int = 4
    speaker_weights: tuple[float, ...] = (0.1, 0.3, 0.3, 0.3)
    speechless_probability: float = 0.0
    shortest_pause_s: float = 0.5
    replay_probability: float = 0.5
    lively_probability: float = 0.5
    casting: CastingConfig = CastingConfig()
    turn_taking: TurnTakingConfig = TurnTakingConfig()
    channel: ChannelConfig = ChannelConfig()

    def __post_init__(self) -> None:
        _check(self)
        if not 1 <= len(self.speaker_weights) <= self.num_slots:
            raise ConfigError(
                f"speaker_weights of the simulation (four unless set) needs between 1 and num_slots = {self.num_slots} "
                f"entries, got {self.speaker_weights}"
            )
        if min(self.speaker_weights) < 0 or not 0 < sum(self.speaker_weights) < math.inf:
            raise ConfigError(f"speaker_weights must be at least 0, and not all 0, got {self.speaker_weights}")
