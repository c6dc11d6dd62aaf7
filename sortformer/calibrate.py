"""Calibrate early exit on recordings: the lowest confidence that changes results as little as was asked for."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from sortformer.annotation import Turn
from sortformer.config.postprocess import PostprocessConfig
from sortformer.errors import ConfigError, InputError
from sortformer.estimates import Estimates, LayerEstimate
from sortformer.metrics.der import der
from sortformer.metrics.protocol import FULL
from sortformer.metrics.risk import boldest_safe, fewest_samples

__all__ = ["ExitCalibration", "calibrate_exit"]

# From never, nearly, down; fixed beforehand, as the guarantee demands.
_CONFIDENCES = tuple(round(1 - 0.01 * step, 2) for step in range(1, 96))


@dataclass(frozen=True, slots=True)
class ExitCalibration:
    """What was found: the confidence to stop at, and what stopping does to the recordings it was found on."""

    confidence: float | None
    """None: to stop anywhere may cost more than was tolerated."""
    loss: float
    """Mean loss of the recordings, 0 where nothing stops."""
    layers: float
    """Mean number of the head's blocks that a recording takes."""


def calibrate_exit(
    estimates: Mapping[str, Estimates],
    postprocess: PostprocessConfig,
    references: Mapping[str, tuple[Turn, ...]] | None = None,
    *,
    tolerance: float = 0.05,
    error: float = 0.05,
) -> ExitCalibration:
    """Return the lowest confidence at which the expected loss of an early exit is at most ``tolerance``.

    The loss of a recording is the DER of what it leaves with, against what the whole model says or, with
    ``references``, by how much the DER against them rises; more than 1 counts as 1 (the two risks of Schuster et al.,
    CALM, arXiv 2207.07061, section 4). The promise holds for recordings drawn as these were, and with probability 1 -
    ``error`` over their choice. It is a mean: single recordings may lose more. All turns are those of slots: where the
    post-processing clusters, a diarizer's are those of voices, about which nothing is promised.

    Args:
        estimates: by recording, what ``Diarizer.estimates`` gave.
        postprocess: how probabilities become turns.
        references: who spoke when.

    Raises:
        InputError: when there are too few recordings for any such promise, or one has no reference.
        ConfigError: when tolerance or error is not between 0 and 1, or fewer than two layers make estimates.
    """
    for name, value in (("tolerance", tolerance), ("error", error)):
        if not 0 < value < 1:
            raise ConfigError(f"the {name} of a calibration must be between 0 and 1, got {value}")
    if len(estimates) < (needed := fewest_samples(tolerance, error)):
        raise InputError(
            f"a tolerance of {tolerance:g} with error {error:g} takes at least {needed} recordings to calibrate, "
            f"and there are {len(estimates)}"
        )
    uris = sorted(estimates)
    if references is not None and (absent := [uri for uri in uris if uri not in references]):
        raise InputError(f"there is no reference of {absent[0]!r}: give one, or calibrate without any")
    exits = {uri: estimates[uri].layers[1:] for uri in uris}
    if not all(exits.values()):
        raise ConfigError("early exit compares estimates, and fewer than two layers of this model's head make any")
    losses = _losses(estimates, exits, postprocess, references)
    confidences = np.array([[exit.confidence for exit in exits[uri]] for uri in uris])
    blocks = np.array([[*(exit.layer for exit in exits[uri]), estimates[uri].output.layers] for uri in uris])

    def taken(confidence: float) -> np.ndarray:
        """The first exit of each recording that is confident, or the end."""
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
    references: Mapping[str, tuple[Turn, ...]] | None,
) -> np.ndarray:
    """The loss of each recording (rows, in order of their names) at each exit, the end among them."""

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
