"""Models that stream by the states of their layers: which can, in which chunks, and why others cannot."""

from collections.abc import Iterator

from sortformer.config.mechanisms import CORES
from sortformer.config.memories import NoMemory
from sortformer.config.model import ModelConfig
from sortformer.errors import ConfigError

__all__ = ["carries", "check_carries", "memory_chunk_frames", "memory_obstacle"]


def carries(model: ModelConfig) -> bool:
    """Return whether any layer of the model carries a state; if so, it streams by these states or not at all."""
    return any(layer.carries for layer in (*model.encoder.layer_attention, *model.head.layer_attention))


def check_carries(model: ModelConfig) -> None:
    """Refuse a model that cannot process a recording chunk by chunk, each chunk once.

    Raises:
        ConfigError: with the first obstacle.
    """
    if (obstacle := memory_obstacle(model)) is not None:
        raise ConfigError(f"this model cannot stream with the states of its layers: {obstacle}")


def memory_obstacle(model: ModelConfig) -> str | None:
    """Return the first obstacle to streaming by the states of layers, and its remedy; None if there is none."""
    return next(_obstacles(model), None)


def memory_chunk_frames(model: ModelConfig) -> int | None:
    """Return the chunk length of the memories; None without memories, when results do not depend on chunks."""
    return next(iter(_chunk_lengths(model)), None)


def _chunk_lengths(model: ModelConfig) -> list[int]:
    layers = (*model.encoder.layer_attention, *model.head.layer_attention)
    return sorted({layer.memory.chunk_frames for layer in layers if not isinstance(layer.memory, NoMemory)})


def _obstacles(model: ModelConfig) -> Iterator[str]:
    encoder, head = model.encoder, model.head
    for place, stack in (("encoder", encoder), ("head", head)):
        if stack.depth.kind != "stacked":
            yield f"the depth '{stack.depth.kind}' of its {place} needs whole recordings: set it to 'stacked'"
        for number, layer in enumerate(stack.layer_attention, 1):
            if not layer.carries:
                cores = ", ".join(f"'{facts.name}'" for facts in CORES.values() if facts.state)
                yield (
                    f"layer {number} of the {place} has no state: give it a memory, or a causal core with a state "
                    f"({cores}) and a position that does not score pairs"
                )
            if layer.position == "learned":
                yield f"layer {number} of the {place} has a table of positions, which is too short for a stream"
    lengths = _chunk_lengths(model)
    if len(lengths) > 1:
        yield f"its memories have different chunk_frames ({', '.join(map(str, lengths))}): give all the same"
    if encoder.kind == "conformer" and encoder.layers and encoder.conv_kernel > 1 and not encoder.conv_causal:
        yield (
            f"each convolution of its encoder needs {encoder.conv_kernel // 2} future frames: "
            "train it with conv_causal = true"
        )
    if head.order_takes_all and head.estimate_layers:
        yield (
            f"the permutation '{head.permutation}' needs the order of arrival in the whole recording: "
            "train it with 'hard', which needs only past frames"
        )
    if head.upsampling > 1:
        yield "its upsampling to frames shorter than 80 ms needs a future frame: set upsampling to 1"
    if model.features.whole:
        yield "its features depend on the whole recording: set normalize to 'none' or 'fixed', and gain to 'none'"
