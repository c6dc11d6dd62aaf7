"""Settings of the speaker cache in the configs of NVIDIA's checkpoints."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sortformer.config.stream import SpeakerCacheConfig
from sortformer.errors import ConfigError

__all__ = ["read_speaker_cache"]

_LARGEST_VALUE = 100_000  # as frames of silence, more than two hours


def read_speaker_cache(
    section: Mapping[str, Any], place: str, names: Mapping[str, str], usual: SpeakerCacheConfig, num_slots: int
) -> SpeakerCacheConfig | None:
    """Return the cache config in ``section`` for a model with ``num_slots``, or None if it is the default, ``usual``.

    ``names`` maps the keys of the section to our field names; ``place`` is the section's name in errors.

    Raises:
        ConfigError: if a value is not supported, or the cache is too small for the slots.
    """
    cache = usual
    for theirs, ours in names.items():
        value = section.get(theirs, getattr(cache, ours))
        if not isinstance(value, int | float) or not value <= _LARGEST_VALUE:
            raise ConfigError(f"{place}.{theirs} is {value!r}, which is not supported")
        try:
            cache = replace(cache, **{ours: value})
        except ConfigError as error:
            raise ConfigError(f"{place}.{theirs} is not supported: {error}") from error
    if cache == usual:
        return None
    cache.check_slots(num_slots)
    return cache
