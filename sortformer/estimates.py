"""Outputs of a model for a recording, final and layer by layer, as plain values."""

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
from sortformer.config.strict import plain
from sortformer.errors import InputError
from sortformer.grid import FrameGrid
from sortformer.model import SortformerOutput
from sortformer.model.arrival import arrival_frames, arrival_order
from sortformer.model.early_exit import agreement, in_order_of_arrival
from sortformer.postprocess import turns
from sortformer.targets import activity

__all__ = ["Embeddings", "Estimates", "LayerEstimate", "Probabilities", "layer_estimates", "only_row"]

_SLACK_S = 0.5
"""Tolerance for the duration of turns from elsewhere: it may be rounded, or include an encoder's padding."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Probabilities:
    """Speaker probabilities: row ``t`` covers ``step_s`` seconds from ``start_s + t * step_s`` on.

    Attributes:
        start_s: 0, the start of the recording.
        data: (T, S) float32; slots, or voices if the post-processing clusters, in order of arrival: by the first frame
            above 1/2, which may differ from the order of the turns after post-processing.
        step_s: seconds from one row to the next.
        duration: of the recording, in seconds.
        layers: blocks of the head that were run, for a recording processed whole.
        uri: the recording's id in the turns.
    """

    start_s: ClassVar[float] = 0.0

    data: np.ndarray
    step_s: float
    duration: float
    layers: int | None = None
    uri: str = "audio"

    def __repr__(self) -> str:
        shape, duration = self.data.shape, f"{self.duration:.2f}"
        return f"Probabilities(uri={self.uri!r}, duration={duration}, data={shape}, step_s={self.step_s:g})"

    def turns(
        self,
        postprocess: PostprocessConfig | str,
        *,
        exclusive: bool = False,
        names: Mapping[int, str] = MappingProxyType({}),
        slots: Collection[int] | None = None,
    ) -> Diarization:
        """Return the turns after post-processing.

        Arguments are those of :func:`sortformer.postprocess.turns`; ``postprocess`` may be a name, as in a call of the
        ``Diarizer``.

        Raises:
            ConfigError: when there is no post-processing of that name.
            InputError: when ``postprocess`` is something else, or as for that function.
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
        """Return the provenance of turns made from these frames; numbers in the settings may be numpy's."""
        axis = TimeAxis(self.start_s, self.step_s, len(self.data))
        return Origin(model, sortformer.__version__, plain(settings), axis)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LayerEstimate:
    """The estimate after ``layer`` blocks of the head; its classes (K) are in any order.

    Attributes:
        layer: blocks of the head that were run.
        data: (T, K) float32 probabilities.
        arrival_frames: (K,) first frame in which a class is active; T if it never is.
        ranks: (K,) 0 for the class that arrives first; at one time, and of those that never do, for the more active.
        ordered: (T, K) ``data`` with its classes by rank: the output of an early exit.
        confidence: agreement of the speech in this estimate, ordered, with the one before; None for the first.
    """

    layer: int
    data: np.ndarray
    arrival_frames: np.ndarray
    ranks: np.ndarray
    ordered: np.ndarray
    confidence: float | None

    def __repr__(self) -> str:
        sure = None if self.confidence is None else f"{self.confidence:.4f}"
        return f"LayerEstimate(layer={self.layer}, data={self.data.shape}, confidence={sure})"


@dataclass(frozen=True, slots=True, eq=False)
class Estimates:
    """The estimates of the layers, the lowest first, and the final output."""

    layers: tuple[LayerEstimate, ...]
    output: Probabilities


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Embeddings:
    """The encoder's embeddings of a recording.

    Attributes:
        data: (T, D) float32, one row for each frame of the ``grid``.
        grid: the frames; ``grid.step_s`` is the number of seconds from one to the next.
        output: the final output for the same recording.
    """

    data: np.ndarray
    grid: FrameGrid
    output: Probabilities

    def __repr__(self) -> str:
        return f"Embeddings(uri={self.output.uri!r}, data={self.data.shape})"

    def alone(self, diarization: Diarization) -> dict[str, np.ndarray]:
        """Return for each speaker the indices, (n,) int64, of the frames in which only that speaker is active.

        Raises:
            InputError: when it is not a ``Diarization``, or the duration of its recording differs.
        """
        check_diarization(diarization)
        if abs(self.output.duration - diarization.duration) > _SLACK_S:
            raise InputError(
                f"the turns of {diarization.uri} belong to a recording of {diarization.duration:.2f} s, but this one "
                f"lasts {self.output.duration:.2f} s: give that recording, or turns with the duration of this one"
            )
        slots = max(1, len(diarization.speakers))
        active, speakers = activity(diarization.turns, len(self.data), slots, self.grid)
        single = active.sum(axis=1) == 1
        return {speaker: np.flatnonzero(single & (active[:, slot] > 0)) for slot, speaker in enumerate(speakers)}

    def voices(self, diarization: Diarization) -> dict[str, np.ndarray]:
        """Return for each speaker the mean direction, a unit vector (D,) float32, of the embeddings of the voice.

        The dot product of two of them, from recordings processed by the same model, is their cosine similarity.
        Speakers who are never alone are left out.

        Raises:
            InputError: as :meth:`alone`.
        """
        alone = self.alone(diarization)
        return {who: mean_direction(self.data[at]) for who, at in alone.items() if len(at)}


def check_diarization(value: Any) -> None:
    """Refuse a value that is not a ``Diarization``.

    Raises:
        InputError: naming its type.
    """
    if not isinstance(value, Diarization):
        raise InputError(
            f"a Diarization is needed, got {type(value).__name__}; Diarization.from_pyannote converts an Annotation"
        )


def layer_estimates(output: SortformerOutput, layers: tuple[int, ...]) -> tuple[LayerEstimate, ...]:
    """Return the estimates of the only recording in ``output``, made after the given ``layers`` of the head."""
    found: list[LayerEstimate] = []
    before: Tensor | None = None
    for layer, logits in zip(layers, output.estimates, strict=True):
        probs = torch.sigmoid(logits)
        ordered = in_order_of_arrival(probs, output.valid)
        confidence = None if before is None else float(agreement(before, ordered, output.valid))
        arrivals, ranks = only_row(arrival_frames(probs)), only_row(arrival_order(probs).argsort(dim=1))
        found.append(LayerEstimate(layer, only_row(probs), arrivals, ranks, only_row(ordered), confidence))
        before = ordered
    return tuple(found)


def only_row(rows: Tensor) -> np.ndarray:
    """Return the only row of a batch, such as probabilities (T, S), as an array."""
    row = rows[0]
    return (row.float() if row.is_floating_point() else row).cpu().numpy()
