"""Training config: a recipe's TOML file, read strictly."""

import math
import os
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from sortformer.config.checks import as_annotated
from sortformer.config.data import DataConfig
from sortformer.config.model import ModelConfig
from sortformer.config.override import overridden
from sortformer.config.simulation import SimulationConfig
from sortformer.config.strict import from_dict
from sortformer.errors import ConfigError, InputError, refusal

__all__ = ["CountTeacherConfig", "LossConfig", "OptimizerConfig", "StageConfig", "TeacherConfig", "TrainConfig"]

_GREATEST_SEED = 2**31 - 1  # torch's generator uses only the low 32 bits of a seed


def _not_negative(config: object, of: str, *names: str) -> None:
    for name in names:
        if not 0 <= getattr(config, name) < math.inf:
            raise ConfigError(f"{name} of {of} must be at least 0 and finite, got {getattr(config, name)}")


@dataclass(frozen=True, slots=True)
class StageConfig:
    """One stage of the curriculum: the kind of batches until ``until_step``.

    ``batch_size`` is the number of conversations per step, over all micro-batches (``accumulate``) and processes.
    """

    until_step: int
    duration_s: float
    batch_size: int
    speaker_weights: tuple[float, ...] | None = None
    """Relative frequency of 1, 2, ... speakers (None: as in ``simulation``)."""
    clean_probability: float | None = None
    """Fraction of conversations without room and noise (None: as in ``simulation.channel``)."""
    streamed_probability: float = 0.0
    """Fraction of batches seen as in a streaming step: speaker cache, FIFO, chunk and short look-ahead."""

    def __post_init__(self) -> None:
        as_annotated(self)
        if self.until_step < 1 or not 0 < self.duration_s < math.inf or self.batch_size < 1:
            raise ConfigError(f"a stage needs positive until_step, duration_s and batch_size, got {self}")
        if not 0 <= self.streamed_probability <= 1:
            raise ConfigError(f"streamed_probability must lie between 0 and 1, got {self.streamed_probability}")

    def simulation(self, whole: SimulationConfig) -> SimulationConfig:
        """Return the simulation of the ``whole`` run with the changes of this stage.

        Raises:
            ConfigError: if a change is out of range.
        """
        if self.speaker_weights is not None:
            whole = replace(whole, speaker_weights=self.speaker_weights)
        if self.clean_probability is not None:
            whole = replace(whole, channel=replace(whole.channel, clean_probability=self.clean_probability))
        return whole


@dataclass(frozen=True, slots=True)
class OptimizerConfig:
    """AdamW with linear warm-up, cosine decay, gradient clipping and an average of the weights."""

    learning_rate: float = 1e-3
    final_ratio: float = 0.05
    warmup_steps: int = 200
    weight_decay: float = 0.01
    betas: tuple[float, float] = (0.9, 0.98)
    clip_norm: float = 1.0
    ema_decay: float = 0.999

    def __post_init__(self) -> None:
        as_annotated(self)
        if not 0 < self.learning_rate < math.inf or self.clip_norm <= 0 or self.warmup_steps < 0:
            raise ConfigError(f"learning_rate and clip_norm must be positive, warmup_steps at least 0, got {self}")
        if not 0 <= self.weight_decay < math.inf or not 0 <= self.final_ratio <= 1 or not 0 <= self.ema_decay < 1:
            raise ConfigError(
                f"weight_decay must be at least 0, final_ratio in [0, 1] and ema_decay in [0, 1), got {self}"
            )
        if len(self.betas) != 2 or not all(0 <= beta < 1 for beta in self.betas):
            raise ConfigError(f"betas must be two numbers in [0, 1), got {self.betas}")


@dataclass(frozen=True, slots=True)
class LossConfig:
    """Weights of losses: the final output has ``sort_weight`` of sort loss, the rest PIT; the estimates their own mix.

    ``ponder_weight`` is for the ponder loss of halting layers, which other models do not have.
    ``memory_weight`` is for the loss of compressive memories, if their ``loss`` is not "none".
    ``span_weight`` is for the spans of adaptive-span heads, relative to the longest span: that of the paper's smaller
    models, 2e-6 for each of 1,024 frames (Sukhbaatar et al., arXiv 1905.07799).
    ``voice_pairs_weight`` is for the classification of pairs of stretches in a conversation as one voice or two, by the
    cosine distance ``voice_pairs_threshold``.
    """

    sort_weight: float = 0.5
    deep_weight: float = 0.2
    deep_sort_weight: float = 0.0
    ponder_weight: float = 0.01
    memory_weight: float = 1.0
    span_weight: float = 0.002
    voice_pairs_weight: float = 0.0
    voice_pairs_threshold: float = 0.4

    def __post_init__(self) -> None:
        as_annotated(self)
        if not 0 < self.voice_pairs_threshold < 2:
            raise ConfigError(f"voice_pairs_threshold must lie between 0 and 2, got {self.voice_pairs_threshold}")
        _not_negative(
            self, "the loss", "deep_weight", "ponder_weight", "memory_weight", "span_weight", "voice_pairs_weight"
        )
        if not (0 <= self.sort_weight <= 1 and 0 <= self.deep_sort_weight <= 1):
            raise ConfigError(f"sort weights must lie in [0, 1], got {self}")

    def weight(self, name: str) -> float:
        """Return the weight of a loss by its name in the log."""
        return {
            "ponder": self.ponder_weight,
            "memory_attention": self.memory_weight,
            "memory_autoencoding": self.memory_weight,
            "span": self.span_weight,
            "voice_pairs": self.voice_pairs_weight,
        }[name]


@dataclass(frozen=True, slots=True)
class TeacherConfig:
    """A table of voice embeddings, among which the encoder's frames must find theirs; used in training only."""

    table: str
    scale: float = 16.0
    """Scale of the cosines before the softmax."""
    weight: float = 1.0
    final_weight: float = 0.1
    """The weight falls linearly to this one at the last step."""

    def __post_init__(self) -> None:
        as_annotated(self)
        _not_negative(self, "the teacher", "scale", "weight", "final_weight")


@dataclass(frozen=True, slots=True)
class CountTeacherConfig:
    """A network that estimates whether nobody, one or more speak in each frame; used in training only."""

    network: str
    weight: float = 0.5
    final_weight: float = 0.5
    """The weight falls linearly to this one at the last step."""

    def __post_init__(self) -> None:
        as_annotated(self)
        _not_negative(self, "count_teacher", "weight", "final_weight")


@dataclass(frozen=True, slots=True)
class TrainConfig:
    """A training run.

    Attributes:
        steps: total number of optimisation steps.
        stages: the curriculum, by increasing ``until_step``; the last one reaches ``steps``.
        seed: seed of the initial weights, data and dropout.
        model: the model to train (None: that of ``init``, or else our default, with the slots of ``simulation``).
        init: weights to start from: a folder, a ``.nemo`` file or a Hugging Face id (None: random weights).
        frozen: names of modules whose weights and statistics stay fixed, such as ``encoder.pre_encode``.
        accumulate: number of micro-batches into which each process splits its share of a batch, to save memory. The
            weights depend neither on it nor on the number of processes, except for rounding, dropout, batch norms and
            the k-means clusters of the cores "routing" and "combiner_routing".
        precision: bf16 autocast pays on a GPU; this repository's CPUs are faster in float32.
        workers: processes that prepare batches ahead (0: none).
        checkpoint_every: steps between checkpoints of the training state and the averaged model.
        keep_every: steps between averaged models that are kept as ``models/step_N`` (0: none), to inspect or average.
        evaluate_every: steps between evaluations of the averaged model, which also take place at the start, with
            ``init``, and at the end; the model with the lowest DER is kept as ``best``.
        evaluate_conversations: number of conversations, crops of ``dev`` or simulated, to evaluate on (0: none).
        repeat: train on the first batch only, to check whether a model can overfit to it.
    """

    data: DataConfig
    stages: tuple[StageConfig, ...]
    steps: int
    model: ModelConfig | None = None
    simulation: SimulationConfig = field(default_factory=SimulationConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    loss: LossConfig = field(default_factory=LossConfig)
    teacher: TeacherConfig | None = None
    count_teacher: CountTeacherConfig | None = None
    seed: int = 0
    init: str | None = None
    frozen: tuple[str, ...] = ()
    accumulate: int = 1
    precision: Literal["float32", "bf16"] = "float32"
    workers: int = 1
    repeat: bool = False
    checkpoint_every: int = 200
    keep_every: int = 0
    evaluate_every: int = 500
    evaluate_conversations: int = 8

    def __post_init__(self) -> None:
        as_annotated(self)
        if min(self.steps, self.accumulate, self.checkpoint_every, self.evaluate_every) < 1:
            raise ConfigError("steps, accumulate, checkpoint_every and evaluate_every of a run must be at least 1")
        if not 0 <= self.seed <= _GREATEST_SEED:
            raise ConfigError(f"the seed of a run must lie between 0 and {_GREATEST_SEED:,}, got {self.seed}")
        if min(self.workers, self.evaluate_conversations, self.keep_every) < 0:
            raise ConfigError("workers, evaluate_conversations and keep_every of a run must be at least 0")
        ends = [stage.until_step for stage in self.stages]
        if not ends or ends != sorted(set(ends)) or ends[-1] < self.steps:
            raise ConfigError(
                f"until_step of the stages must increase and reach the {self.steps} steps of the run, got {ends}"
            )
        for stage in self.stages:
            stage.simulation(self.simulation)  # refuses changes that are out of range
        if self.evaluate_conversations and self.data.bank is None and self.data.dev is None:
            raise ConfigError(
                "there is nothing to evaluate on: name a manifest as dev in [data], or set evaluate_conversations = 0"
            )
        if self.model is not None and self.simulation.num_slots != self.model.head.num_slots:
            raise ConfigError(
                f"simulation makes {self.simulation.num_slots} slots, the model has {self.model.head.num_slots}: give "
                "[simulation] and [model.head] the same num_slots"
            )

    def stage(self, step: int) -> StageConfig:
        """Return the stage of a ``step`` (from 0), which is the first one with ``repeat``."""
        return next(stage for stage in self.stages if self.repeat or step < stage.until_step)

    @classmethod
    def read(cls, path: str | Path, settings: Sequence[str] = ()) -> "TrainConfig":
        """Read a recipe; relative paths are resolved against its folder.

        An ``init`` that does not exist there is left unchanged, as it may be a Hugging Face id. ``settings``, such as
        ``loss.sort_weight=1``, take the place of the recipe's own (see :func:`~sortformer.config.override.overridden`).

        Raises:
            InputError: if the file is missing or not valid TOML, or a setting is not KEY=VALUE.
            ConfigError: if a key or an item of a list is unknown, or a value is invalid.
        """
        path = Path(path)
        try:
            values = tomllib.loads(path.read_text(encoding="utf-8-sig"))  # some editors write a byte order mark
        except OSError as error:
            raise InputError(f"cannot read the recipe {path}: {refusal(error)}") from error
        except UnicodeDecodeError as error:  # as from PowerShell, which writes UTF-16
            raise InputError(f"{path} is not text in UTF-8, which TOML requires: save it as that") from error
        except (ValueError, RecursionError) as error:  # also from thousands of digits or brackets
            raise InputError(f"{path} is not a TOML file: {error}") from error
        try:
            config = from_dict(cls, overridden(values, settings))
        except ConfigError as error:
            changed = f", with {', '.join(settings)}" if settings else ""
            raise ConfigError(f"in the recipe {path}{changed}: {error}") from error

        def beside(name: str) -> str:
            return str(path.parent / name)

        data = config.data.beside(path.parent)
        teacher = replace(config.teacher, table=beside(config.teacher.table)) if config.teacher else None
        counts = config.count_teacher
        counts = replace(counts, network=beside(counts.network)) if counts else None
        init = config.init
        if init is not None and os.path.exists(beside(init)):  # does not raise for over-long names
            init = beside(init)
        return replace(config, data=data, teacher=teacher, count_teacher=counts, init=init)
