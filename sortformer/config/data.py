"""Training data: single voices, from which conversations are simulated, and real recordings."""

import math
from dataclasses import dataclass, replace
from pathlib import Path

from sortformer.config.checks import as_annotated, factors
from sortformer.errors import ConfigError

__all__ = ["DataConfig", "RecordingsConfig"]


@dataclass(frozen=True, slots=True)
class RecordingsConfig:
    """Real recordings, of which crops are put into batches.

    Attributes:
        manifest: JSON lines, as written by ``sortformer manifest``; every recording needs an RTTM.
        weight: relative number of conversations from here, compared with other manifests and ``simulated_weight``.
        channel_probability: fraction of the crops that also pass through ``[simulation.channel]``, without room and
            babble or bystander; the others are as recorded, with the loudness normalisation of ``diarize``.
    """

    manifest: str
    weight: float = 1.0
    channel_probability: float = 0.0

    def __post_init__(self) -> None:
        as_annotated(self)
        if not 0 < self.weight < math.inf or not 0 <= self.channel_probability <= 1:
            raise ConfigError(
                f"recordings need a positive weight and a channel_probability between 0 and 1, got {self.weight} and "
                f"{self.channel_probability}"
            )


@dataclass(frozen=True, slots=True)
class DataConfig:
    """Sources of voices, real turn-taking, rooms and recordings; paths are relative to the recipe's file.

    Attributes:
        bank: folder with ``segments.tsv`` and the recordings it lists (None: no simulation).
        speeds: playback speeds, each of which makes new voices.
        formants: factors on formant frequencies, each of which makes new voices at each speed.
        turns: folders of RTTM files whose turn-taking is replayed.
        exclude: recordings not to replay, as shell patterns of their names (each must match one).
        rooms: number of simulated rooms (0: none).
        bursts: number of breaths, knocks and other bursts of each kind in a pool that is made once (0: each burst is
            made for its conversation, which takes longer than the rest of the simulation).
        cache: folder for the decoded bank, the rooms and the bursts.
        pool: number of speakers of the bank to train on, drawn by ``pool_seed`` (None: all).
        recordings: real recordings to mix in; the source of each conversation in a batch is drawn by weight.
        simulated_weight: relative number of simulated conversations, compared with the weights of the recordings.
        dev: manifest of the evaluation recordings (None: simulated conversations of the bank's dev voices).
    """

    bank: str | None = None
    speeds: tuple[float, ...] = (0.9, 1.0, 1.1)
    formants: tuple[float, ...] = (1.0,)
    turns: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    rooms: int = 0
    bursts: int = 0
    cache: str | None = None
    pool: int | None = None
    pool_seed: int = 0
    recordings: tuple[RecordingsConfig, ...] = ()
    simulated_weight: float = 1.0
    dev: str | None = None

    def __post_init__(self) -> None:
        as_annotated(self)
        if self.pool is not None and self.pool < 1:
            raise ConfigError(f"pool of data must be at least one speaker, got {self.pool}")
        factors("data", speeds=self.speeds, formants=self.formants)
        for name in ("pool_seed", "rooms", "bursts"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} of data must be at least 0, got {getattr(self, name)}")
        if self.exclude and not self.turns:
            raise ConfigError("exclude of data excludes recordings of turns, which is not set: set turns, too")
        if self.bank is None and not self.recordings:
            raise ConfigError("there is nothing to train on: [data] of a recipe needs a bank, recordings, or both")
        if not 0 <= self.simulated_weight < math.inf or (self.simulated_weight == 0 and not self.recordings):
            raise ConfigError(f"simulated_weight must be positive, or 0 with recordings, got {self.simulated_weight}")

    @property
    def shares(self) -> tuple[float, ...]:
        """Fractions of conversations that are simulated and from each of ``recordings``; they sum to 1."""
        weights = [self.simulated_weight if self.bank is not None else 0.0, *(each.weight for each in self.recordings)]
        return tuple(weight / sum(weights) for weight in weights)

    def beside(self, folder: Path) -> "DataConfig":
        """Return a copy with relative paths resolved against ``folder``."""

        def placed(name: str | None) -> str | None:
            return str(folder / name) if name else None

        return replace(
            self,
            bank=placed(self.bank),
            turns=tuple(str(folder / name) for name in self.turns),
            cache=placed(self.cache),
            recordings=tuple(replace(each, manifest=str(folder / each.manifest)) for each in self.recordings),
            dev=placed(self.dev),
        )
