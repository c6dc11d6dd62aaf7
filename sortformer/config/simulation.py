"""What simulated conversations look like: how many speakers, how they take turns, what the channel does to them."""

import math
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from sortformer.config.checks import as_annotated
from sortformer.errors import ConfigError

__all__ = ["CastingConfig", "ChannelConfig", "SimulationConfig", "TurnTakingConfig"]


_NOT_NEGATIVE = ("_spread", "_gain_db", "_swing_db", "equaliser_db", "_s", "slope", "burst_hz")
_ABOVE_ZERO = ("turn_median_s", "pause_median_s", "dominance", "pass_hz", "_from_hz", "_to_hz", "clip_share")
_COUNTS = ("babble_voices", "coarse_bits")
# Beyond these, samples and times are no numbers any more.
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
    """Who is in a conversation, and how loud each one is.

    Attributes:
        same_corpus_probability: all voices come from one corpus, so that the corpus tells nothing about the speaker.
        same_gender_probability: all voices have one known gender.
        voice_gain_db: each voice is louder or softer by up to this.
        turn_gain_db: standard deviation of the loudness of a turn around its voice's.
        turn_tilt: a turn sounds duller or brighter than its voice, by a filter 1 + t z^-1 with t up to this, because
            people turn their heads: so the channel does not tell who it is.
        turn_speed: a turn is played faster or slower by up to this share, pitch and formants with it, because people
            do not always sound the same.
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
    """Parametric turn-taking; every range is drawn from once a conversation, so that conversations differ.

    Attributes:
        turn_median_s: range of the median turn length (drawn log-uniformly).
        turn_spread: standard deviation of the logarithm of turn lengths.
        pause_median_s: range of the median pause between turns (drawn log-uniformly).
        pause_spread: standard deviation of the logarithm of pauses.
        overlap_probability: range of the share of turns that start before the running one has ended.
        overlap_median_s: median length of such an overlap.
        backchannel_probability: range of the chance that a listener says something short during a turn.
        backchannel_s: range of the length of a back-channel.
        same_speaker_probability: chance that the speaker of the last turn goes on after a pause.
        long_silence_probability: chance that a pause becomes a long silence.
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
    """What happens between the mouths and the file; levels and ratios in dB, frequencies in Hz.

    Attributes:
        clean_probability: the voices as they are in the bank, at the level of the file, and nothing of what follows.
        room_probability: one distant microphone in a room.
        near_probability: a close microphone each, summed, with the room far below (the rest of the time: no room).
        near_room_db: range of the level of the room in such a mix.
        equaliser_db: standard deviation of the smooth random filter of each voice, at its knots.
        one_microphone_probability: all voices have the same filter, so that nothing but themselves tells them apart.
        noise_probability: coloured noise is present.
        noise_slope: range of the exponent of 1 / f^slope (0 white, 1 pink, 2 brown).
        noise_swing_db: range of the standard deviation of the slowly wandering level of the noise.
        snr_db: range of active speech to noise.
        hum_probability: mains hum and its harmonics are present.
        burst_probability: breaths, clicks, knocks: noise that does not last.
        burst_hz: range of their number in a second.
        burst_snr_db: range of active speech to such a burst.
        clatter_share: of the bursts, those that come in trains: typing, tapping, handling of the microphone.
        rustle_share: of the bursts, those that last for seconds and flutter: clothes, paper, writing.
        breath_share: of the bursts, breaths, which have the resonances of a mouth.
        laughter_share: of the bursts, those that are laughter, with voice or without: no words, so no speech.
        music_share: of the bursts, those that have notes: music, ringing, beeps.
        pause_share: of the bursts, those that the recordings of the bank hold between phrases, as loud as the others.
        babble_probability: other voices of the bank murmur in the background.
        babble_voices: range of their number.
        babble_snr_db: range of active speech to babble.
        bystander_probability: one other voice of the bank talks now and then, far away, and is not labelled; where
            nobody else speaks, neither does it.
        bystander_snr_db: range of active speech to that voice.
        narrowband_probability: it is recorded at 8 kHz: nothing above a drawn cut-off, neither noise nor bursts. Half
            of these are telephone calls, which begin at a drawn cut-off, too, and half of all are in 8-bit mu-law.
        narrowband_from_hz, narrowband_to_hz: ranges of these cut-offs.
        telephone_probability: voices and noise from 300 to 3400 Hz only.
        low_pass_probability: nothing above a drawn cut-off.
        low_pass_hz: range of the cut-off.
        high_pass_probability: nothing below a drawn cut-off.
        high_pass_hz: range of the cut-off.
        mu_law_probability: 8-bit mu-law quantisation.
        coarse_probability: uniform quantisation to few bits.
        coarse_bits: range of the number of bits.
        clip_probability: peaks are cut.
        clip_share: range of the limit relative to the loudest sample.
        level_dbfs: range of the root mean square of the active speech in the file.
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
            raise ConfigError("room_probability and near_probability of the channel must not exceed 1 together")
        if min(self.burst_shares) < 0 or math.fsum(self.burst_shares) > 1 + 1e-9:  # of tenths the sum may be more
            raise ConfigError(
                "the shares of clatter, rustling, breath, laughter, music and pauses must be at least 0 and not exceed "
                f"1, got {self.burst_shares}"
            )

    @property
    def burst_shares(self) -> tuple[float, ...]:
        """Of the bursts, those that are clatter, rustling, breath, laughter, music and pauses."""
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
    """Conversations for training a diarizer.

    Attributes:
        num_slots: output channels of the targets, in order of arrival.
        speaker_weights: relative frequency of conversations with 1, 2, ... speakers; at most ``num_slots`` of them.
        speechless_probability: share of conversations in which nobody speaks, so that the channel is all there is.
        shortest_pause_s: shorter pauses of a speaker count as speech, as annotators have it: of the pauses in the
            references of AMI (train) 0.7 % are shorter than half a second, of VoxConverse's (dev) 16 %.
        replay_probability: share of conversations whose turn-taking is a window of a real meeting
            (when patterns are given).
        lively_probability: share of these for which the liveliest of several windows is taken.
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
                f"speaker_weights needs between 1 and num_slots = {self.num_slots} entries, got {self.speaker_weights}"
            )
        if min(self.speaker_weights) < 0 or not 0 < sum(self.speaker_weights) < math.inf:
            raise ConfigError(f"speaker_weights must be at least zero, and one above, got {self.speaker_weights}")
