"""Calibrate early exit on recordings: the lowest confidence whose loss stays within a tolerance."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from sortformer.annotation import Turn, Turns
from sortformer.config.checks import by_recording
from sortformer.config.postprocess import PostprocessConfig
from sortformer.errors import ConfigError, InputError
from sortformer.estimates import Estimates, LayerEstimate
from sortformer.metrics.der import der
from sortformer.metrics.protocol import FULL
from sortformer.metrics.risk import boldest_safe, fewest_samples

__all__ = ["ExitCalibration", "calibrate_exit"]

# From the most careful, which hardly ever exits, downwards; the guarantee requires that they are fixed in advance.
_CONFIDENCES = tuple(round(1 - 0.01 * step, 2) for step in range(1, 96))


@dataclass(frozen=True, slots=True)
class ExitCalibration:
    """The confidence to exit at, and its effect on the recordings of the calibration."""

    confidence: float | None
    """None: any early exit may cost more than the tolerance."""
    loss: float
    """Mean loss of the recordings, 0 without early exit."""
    layers: float
    """Mean number of the head's blocks run per recording."""


def calibrate_exit(
    estimates: Mapping[str, Estimates],
    postprocess: PostprocessConfig,
    references: Mapping[str, Turns] | None = None,
    *,
    tolerance: float = 0.05,
    error: float = 0.05,
) -> ExitCalibration:
    """Return the lowest confidence at which the expected loss of an early exit is at most ``tolerance``.

    The loss of a recording is the DER of the early turns against those of the whole model or, with ``references``, the
    increase of the DER against them, at most 1 (the two risks of Schuster et al., CALM, arXiv 2207.07061, section 4).
    The guarantee holds for recordings of the same distribution, with probability 1 - ``error`` over the choice of the
    calibration set. It bounds the mean: single recordings may lose more. All turns are by slot: if the post-processing
    clusters, a diarizer's are by voice, for which there is no guarantee.

    Args:
        estimates: the results of ``Diarizer.estimates``, by recording.
        postprocess: how probabilities become turns.
        references: who spoke when, by recording: turns, or diarizations.

    Raises:
        InputError: when the estimates or references are not a mapping, there are too few recordings for the guarantee,
            or one has no reference.
        ConfigError: when tolerance or error is not between 0 and 1, or fewer than two layers make estimates.
    """
    for name, value in (("tolerance", tolerance), ("error", error)):
        if not 0 < value < 1:
            raise ConfigError(f"the {name} of a calibration must be between 0 and 1, got {value}")
    by_recording("estimates", estimates)
    by_recording("references", {} if references is None else references)
    if len(estimates) < (needed := fewest_samples(tolerance, error)):
        raise InputError(
            f"a tolerance of {tolerance:g} with error {error:g} needs at least {needed} recordings to calibrate, "
            f"but there are {len(estimates)}"
        )
    uris = sorted(estimates)
    if references is not None and (absent := [uri for uri in uris if uri not in references]):
        raise InputError(f"there is no reference for {absent[0]!r}: give one, or calibrate without any")
    exits = {uri: estimates[uri].layers[1:] for uri in uris}
    if not all(exits.values()):
        raise ConfigError("early exit compares estimates, but fewer than two layers of this model's head produce any")
    losses = _losses(estimates, exits, postprocess, references)
    confidences = np.array([[exit.confidence for exit in exits[uri]] for uri in uris])
    blocks = np.array([[*(exit.layer for exit in exits[uri]), estimates[uri].output.layers] for uri in uris])

    def taken(confidence: float) -> np.ndarray:
        """Return the index of the first exit of each recording with enough confidence, or of the end."""
        enough = np.pad(confidences >= confidence, ((0, 0), (0, 1)), constant_values=True)
        return enough.argmax(axis=1)

    rows = np.arange(len(uris))
    best = boldest_safe([losses[rows, taken(each)] for each in _CONFIDENCES], tolerance, error)
    chosen = None if best is None else _CONFIDENCES[best]
    leaving = taken(np.inf if chosen is None else chosen)
    return ExitCalibration(chosen, float(losses[rows, leaving].mean()), float(blocks[rows, leaving].mean()))


def _losses(
    estimates: Mapping[str, Estimates],
    exits: Mapping[str, tuple[LayerEstimate, ...]],
    postprocess: PostprocessConfig,
    references: Mapping[str, Turns] | None,
) -> np.ndarray:
    """Return the loss (recordings, exits), recordings sorted by name; the last exit is the end."""

    def decided(given: Mapping[str, np.ndarray]) -> dict[str, tuple[Turn, ...]]:
        return {
            uri: replace(estimates[uri].output, data=probs).turns(postprocess).turns for uri, probs in given.items()
        }

    said = decided({uri: found.output.data for uri, found in estimates.items()})
    truth = said if references is None else references

    def rates(hypotheses: Mapping[str, tuple[Turn, ...]]) -> np.ndarray:
        parts = {uri: ((0.0, estimates[uri].output.duration),) for uri in estimates}
        return np.array([der(truth[uri], hypotheses[uri], parts[uri], FULL).rate for uri in sorted(estimates)])

    end = rates(said)
    early = [
        rates(decided({uri: found[index].ordered for uri, found in exits.items()}))
        for index in range(len(next(iter(exits.values()))))
    ]
    return np.clip(np.stack([*early, end], axis=1) - end[:, None], 0.0, 1.0)
