"""Checkpoint averaging: one model whose weights are the mean of several from the same run."""

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

from sortformer import checkpoint
from sortformer.attention import drawn
from sortformer.attention.clusters import rescale
from sortformer.checkpoint.contents import Checkpoint
from sortformer.checkpoint.loading import read
from sortformer.config.postprocess import PostprocessConfig
from sortformer.config.strict import differences
from sortformer.errors import InputError
from sortformer.warned import warn

__all__ = ["average"]


def average(sources: Sequence[str | Path], out: str | Path) -> None:
    """Write the model whose weights are the mean of those of ``sources`` into the folder ``out``.

    Meant for checkpoints of one run, or of runs with the same initialisation, which lie in one basin of the loss
    (Izmailov et al., "Averaging Weights Leads to Wider Optima and Better Generalization", 2018). Counters and random
    features are those of the last source. Post-processing settings that differ are reset to their defaults: tune them.

    Args:
        sources: two or more models, each a folder, a ``.nemo`` file or an id.

    Raises:
        InputError: when there are fewer, one cannot be read, or their configs or licences differ.

    Warns:
        SortformerWarning: when their post-processing differs.
    """
    if len(sources) < 2:
        raise InputError(f"averaging needs at least two models, got {'only ' + str(sources[0]) if sources else 'none'}")
    first = read(sources[0])
    sums = {name: weights.double() for name, weights in first.model.state_dict().items()}
    last, settings = first, {first.postprocess}
    for source in sources[1:]:
        last = read(source)
        _check_same(str(sources[0]), first, str(source), last)
        settings.add(last.postprocess)
        for name, weights in last.model.state_dict().items():
            sums[name] += weights
    as_last = drawn(last.model)
    mean = {
        name: (sums[name] / len(sources)).to(weights.dtype)
        if weights.is_floating_point() and name not in as_last
        else weights
        for name, weights in last.model.state_dict().items()
    }
    last.model.load_state_dict(mean)
    rescale(last.model)
    values = {field.name: {getattr(each, field.name) for each in settings} for field in fields(PostprocessConfig)}
    alike = {name: found.pop() for name, found in values.items() if len(found) == 1}
    if different := [name for name in values if name not in alike]:
        warn(
            f"the models differ in their post-processing, so {out} has the default {' and '.join(different)}: tune it",
            stacklevel=2,
        )
    checkpoint.save(out, last.model, PostprocessConfig(**alike), licence=first.licence)


def _check_same(one: str, ours: Checkpoint, two: str, theirs: Checkpoint) -> None:
    if ours.licence != theirs.licence:
        raise InputError(f"{one} and {two} have different licences ({ours.licence} and {theirs.licence})")
    if different := differences(ours.model.config, theirs.model.config):
        name, first, second = different[0]
        raise InputError(f"{one} and {two} are different models: {name} is {first!r} and {second!r}")
