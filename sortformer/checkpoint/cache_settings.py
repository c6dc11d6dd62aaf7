"""How the speaker cache chooses its frames, as the configs of NVIDIA's checkpoints say it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sortformer.config.stream import SpeakerCacheConfig
from sortformer.errors import ConfigError

__all__ = ["read_speaker_cache"]

_LARGEST_VALUE = 100_000  # as frames of silence more than two hours


def read_speaker_cache(
    section: Mapping[str, Any], place: str, names: Mapping[str, str], usual: SpeakerCacheConfig, num_slots: int
) -> SpeakerCacheConfig | None:
    """Return how the cache of a model with ``num_slots`` chooses by ``section``, or None where that is as ``usual``.

    ``names`` are those of the fields that the section, called ``place``, may have: theirs -> ours.

    Raises:
        ConfigError: if a value is none that the cache can have.
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
