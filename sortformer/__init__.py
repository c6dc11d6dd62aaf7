"""Speaker diarization with SortFormer: who spoke when, from a recording."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sortformer.annotation import Diarization, Turn
    from sortformer.config.postprocess import PostprocessConfig
    from sortformer.config.stream import StreamConfig
    from sortformer.diarizer import Diarizer
    from sortformer.errors import Cancelled, ConfigError, InputError, SortformerError
    from sortformer.estimates import Embeddings, Estimates, LayerEstimate, Probabilities
    from sortformer.streaming import Session, SessionPool, Update
    from sortformer.voices import VoiceStore
    from sortformer.warned import SortformerWarning
    from sortformer.words import Word, assign_speakers

__version__ = "0.1.0"  # not from the package's metadata, which PyInstaller leaves out

# Imported when asked for (PEP 562), so that `sortformer score` and `import sortformer` do not wait for torch.
_HOMES = {
    "Cancelled": "errors",
    "ConfigError": "errors",
    "Diarization": "annotation",
    "Diarizer": "diarizer",
    "Embeddings": "estimates",
    "Estimates": "estimates",
    "InputError": "errors",
    "LayerEstimate": "estimates",
    "PostprocessConfig": "config.postprocess",
    "Probabilities": "estimates",
    "Session": "streaming",
    "SessionPool": "streaming",
    "SortformerError": "errors",
    "SortformerWarning": "warned",
    "StreamConfig": "config.stream",
    "Turn": "annotation",
    "Update": "streaming",
    "VoiceStore": "voices",
    "Word": "words",
    "assign_speakers": "words",
}

__all__ = [
    "Cancelled",
    "ConfigError",
    "Diarization",
    "Diarizer",
    "Embeddings",
    "Estimates",
    "InputError",
    "LayerEstimate",
    "PostprocessConfig",
    "Probabilities",
    "Session",
    "SessionPool",
    "SortformerError",
    "SortformerWarning",
    "StreamConfig",
    "Turn",
    "Update",
    "VoiceStore",
    "Word",
    "__version__",
    "assign_speakers",
]


if not TYPE_CHECKING:  # to type checkers it would declare every name there is, even a misspelt one

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module 'sortformer' has no attribute {name!r}")
        return getattr(import_module(f"sortformer.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
