"""The licences of published weights, as far as they bind the user."""

from sortformer.config.model import ModelConfig
from sortformer.warned import warn

__all__ = ["licence_of", "remind"]

_NON_COMMERCIAL = "CC-BY-NC-4.0"

_PUBLISHED = {
    "diar_sortformer_4spk-v1": _NON_COMMERCIAL,
    "diar_streaming_sortformer_4spk-v2": "CC-BY-4.0",
    "diar_streaming_sortformer_4spk-v2.1": "NVIDIA Open Model License",
    "Nemotron-3-Diarization": "OpenMDW-1.1",
}


def licence_of(name: str, config: ModelConfig) -> str | None:
    """Return the licence of the weights published as ``name``, or None if it is not known.

    The first generation forbids commercial use, so it is also recognised by its shape, whatever its name.
    """
    if name in _PUBLISHED:
        return _PUBLISHED[name]
    shape = (config.features.num_mels, config.features.normalize, config.encoder.layers, config.encoder.dim)
    if shape == (80, "per_feature", 18, 512) and config.head.permutation == "none":
        return _NON_COMMERCIAL
    return None


def remind(source: str, licence: str | None) -> None:
    """Warn once, when weights are loaded, if their licence forbids commercial use."""
    if licence == _NON_COMMERCIAL:
        warn(f"the weights {source} are licensed {licence}: no commercial use", stacklevel=4)
