"""From the values of options to a model, its settings and clips of speakers, and from settings to options."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sortformer.cli.console import say, usage_errors
from sortformer.config.clustering import ClusteringConfig
from sortformer.config.postprocess import PostprocessConfig
from sortformer.errors import InputError
from sortformer.formats.names import check_person

if TYPE_CHECKING:
    from sortformer.diarizer import Diarizer

__all__ = ["as_options", "clips", "clustered", "loaded", "postprocessed"]


def clustered(settings: PostprocessConfig, distance: float | None) -> PostprocessConfig:
    """Return the settings changed by the ``distance`` of ``--clustering``: 0 is by slot, None is no change.

    Raises:
        ConfigError: when it is not a valid distance.
    """
    if distance is None:
        return settings
    if not distance:
        return replace(settings, clustering=None)
    before = settings.clustering or ClusteringConfig(distance)
    return replace(settings, clustering=replace(before, threshold=distance))


def postprocessed(
    own: PostprocessConfig, name: str | None, distance: float | None, **given: str | float | None
) -> PostprocessConfig:
    """Return a model's ``own`` settings, or those called ``name``, changed by the options that are not None.

    ``distance`` is that of ``--clustering``; the others are ``given`` by field name.

    Raises:
        ConfigError: when there are no settings of that name, or a value is invalid.
    """
    from sortformer.config.presets import as_postprocess

    changes: dict[str, Any] = {field: value for field, value in given.items() if value is not None}
    settings = clustered(replace(as_postprocess(own if name is None else name), **changes), distance)
    if settings.clustering is None and own.clustering is not None and distance is None:
        say(f"note: '{name}' has no clustering, which this model uses: add --clustering {own.clustering.threshold:g}")
    return settings


def as_options(settings: PostprocessConfig) -> str:
    """Return settings as command line options."""
    return (
        f"--decision {settings.decision} --onset {settings.onset:g} --offset {settings.offset:g}"
        f" --pad-on {settings.pad_on_s:g} --pad-off {settings.pad_off_s:g}"
        f" --min-on {settings.min_on_s:g} --min-off {settings.min_off_s:g}"
        f" --clustering {0 if settings.clustering is None else settings.clustering.threshold:g}"
    )


def loaded(model: str | None, device: str, preset: str | None, distance: float | None = None) -> Diarizer:
    """Return the diarizer of a model that has the preset; None and ``offline`` are always valid.

    Its settings are changed by the ``distance`` of ``--clustering``, as in :func:`clustered`.
    """
    from sortformer.diarizer import Diarizer
    from sortformer.inference import preset_of

    diarizer = Diarizer.load(model, device)
    with usage_errors():
        preset_of(diarizer.model.config, preset)
        return replace(diarizer, postprocess=clustered(diarizer.postprocess, distance))


def clips(enroll: Iterable[str] | None) -> dict[str, str]:
    """Parse options like ``chair=chair.wav`` into clips by name.

    Raises:
        InputError: when one has no clip, or the name is missing, invalid or given twice.
    """
    found: dict[str, str] = {}
    for option in enroll or ():
        name, _, clip = option.partition("=")
        if not clip:
            raise InputError(f"--enroll takes a name and a clip, like chair=chair.wav, got {option!r}")
        check_person(name, found)
        found[name] = clip
    return found
