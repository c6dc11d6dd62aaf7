"""What a model says of a recording, in the end and layer by layer, as values to look at."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

import sortformer
from sortformer.annotation import Diarization, Origin, TimeAxis
from sortformer.clustering import mean_direction
from sortformer.config.postprocess import PostprocessConfig
from sortformer.config.presets import as_postprocess
from sortformer.errors import InputError
from sortformer.grid import FrameGrid
from sortformer.model import SortformerOutput
from sortformer.model.arrival import arrival_frames, arrival_ranks
from sortformer.model.early_exit import agreement, in_order_of_arrival
from sortformer.postprocess import turns
from sortformer.targets import activity

__all__ = ["Embeddings", "Estimates", "LayerEstimate", "Probabilities", "layer_estimates", "only_row"]

_SLACK_S = 0.5
"""Turns from elsewhere may come with a duration that is a little off: rounded, or with an encoder's padding."""


@dataclass(frozen=True, slots=True, eq=False)
class Probabilities:
    """Speaker probabilities: row ``t`` covers ``step_s`` seconds from ``start_s + t * step_s`` on."""

    start_s: ClassVar[float] = 0.0
    """They are of a recording from its beginning on."""

    data: np.ndarray  # (T, S) float32; slots, or voices where the post-processing clusters, in order of arrival: each
    # by its first frame above 1/2, which need not be the order of the turns that post-processing leaves
    step_s: float
    duration: float
    layers: int | None = None
    """Blocks of the head that it took, for a recording that was taken whole."""
    uri: str = "audio"
    """The recording's id in the turns."""

    def turns(
        self,
        postprocess: PostprocessConfig | str,
        *,
        exclusive: bool = False,
        names: Mapping[int, str] = MappingProxyType({}),
        slots: Collection[int] | None = None,
    ) -> Diarization:
        """Return the turns that they amount to.

        Arguments are those of :func:`sortformer.postprocess.turns`; ``postprocess`` may be a name, as in a call of the
        ``Diarizer``.

        Raises:
            ConfigError: when there is no post-processing of that name.
            InputError: when it is none, or the step is not a multiple of 10 ms.
        """
        return turns(
            self.data,
            as_postprocess(postprocess),
            self.step_s,
            duration=self.duration,
            uri=self.uri,
            exclusive=exclusive,
            names=names,
            slots=slots,
        )

    def origin(self, model: str, settings: Mapping[str, Any]) -> Origin:
        """Return what turns made of these frames say of how they were made; settings are plain values."""
        return Origin(model, sortformer.__version__, settings, TimeAxis(self.start_s, self.step_s, len(self.data)))


@dataclass(frozen=True, slots=True, eq=False)
class LayerEstimate:
    """What the model believes after ``layer`` of its head's blocks; its classes (K) stand in any order."""

    layer: int
    data: np.ndarray  # (T, K) float32 probabilities
    arrival_frames: np.ndarray  # (K,) first frame in which a class is active; T where it never is
    ranks: np.ndarray  # (K,) 0 for the class that arrives first
    ordered: np.ndarray  # (T, K) ``data`` with its classes in order of arrival: what an early exit would give out
    confidence: float | None
    """How much of its speech this estimate, ordered, has in common with the one before; None for the first."""


@dataclass(frozen=True, slots=True, eq=False)
class Estimates:
    """The estimates of each layer that makes them, from the lowest on, and what the model says in the end."""

    layers: tuple[LayerEstimate, ...]
    output: Probabilities


@dataclass(frozen=True, slots=True, eq=False)
class Embeddings:
    """What the encoder makes of a recording, one row for each frame of its grid, and what the model says in the end."""

    data: np.ndarray  # (T, D) float32
    grid: FrameGrid
    output: Probabilities

    def alone(self, diarization: Diarization) -> dict[str, np.ndarray]:
        """Return for each speaker the frames, (n,) int64, in which that speaker and nobody else is active.

        Raises:
            InputError: when it is no Diarization, or one of a longer or shorter recording.
        """
        check_diarization(diarization)
        if abs(self.output.duration - diarization.duration) > _SLACK_S:
            raise InputError(
                f"the turns of {diarization.uri} are of a recording of {diarization.duration:.2f} s, but this one "
                f"lasts {self.output.duration:.2f} s: give that recording, or the turns the duration of this one"
            )
        slots = max(1, len(diarization.speakers))
        active, speakers = activity(diarization.turns, len(self.data), slots, self.grid)
        single = active.sum(axis=1) == 1
        return {speaker: np.flatnonzero(single & (active[:, slot] > 0)) for slot, speaker in enumerate(speakers)}

    def voices(self, diarization: Diarization) -> dict[str, np.ndarray]:
        """Return for each speaker the direction, (D,) float32 of length 1, in which that voice lies.

        The product of two of them, from recordings that the same model has heard, is their cosine: the greater, the
        more alike. Speakers who are never alone are left out.

        Raises:
            InputError: as :meth:`alone`.
        """
        alone = self.alone(diarization)
        return {who: mean_direction(self.data[at]) for who, at in alone.items() if len(at)}


def check_diarization(value: Any) -> None:
    """Refuse what was given in place of a Diarization.

    Raises:
        InputError: naming its type.
    """
    if not isinstance(value, Diarization):
        raise InputError(
            f"a Diarization is wanted, got {type(value).__name__}; Diarization.from_pyannote makes one of an Annotation"
        )


def layer_estimates(output: SortformerOutput, layers: tuple[int, ...]) -> tuple[LayerEstimate, ...]:
    """Return the estimates of the only recording in ``output``, made after so many blocks of the head."""
    found: list[LayerEstimate] = []
    before: Tensor | None = None
    for layer, logits in zip(layers, output.estimates, strict=True):
        probs = torch.sigmoid(logits)
        arrivals = arrival_frames(probs)
        ordered = in_order_of_arrival(probs, output.valid)
        confidence = None if before is None else float(agreement(before, ordered, output.valid))
        ranks = only_row(arrival_ranks(arrivals))
        found.append(LayerEstimate(layer, only_row(probs), only_row(arrivals), ranks, only_row(ordered), confidence))
        before = ordered
    return tuple(found)


def only_row(rows: Tensor) -> np.ndarray:
    """Return the one row of a batch, such as probabilities (T, S), as an array."""
    row = rows[0]
    return (row.float() if row.is_floating_point() else row).cpu().numpy()
