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
        raise ConfigError(f"this model cannot stream by what its layers remember: {obstacle}")


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
    for place, depth, layers in (
        ("encoder", encoder.depth, encoder.layer_attention),
        ("head", head.depth, head.layer_attention),
    ):
        if depth.kind != "stacked":
            yield f"the depth '{depth.kind}' of its {place} takes recordings whole: set it to 'stacked'"
        for number, layer in enumerate(layers, 1):
            if not layer.carries:
                cores = ", ".join(f"'{facts.name}'" for facts in CORES.values() if facts.state)
                yield (
                    f"layer {number} of the {place} carries nothing: give it a memory, or a causal core with a state "
                    f"({cores}) and a position that scores no pairs of frames"
                )
            if layer.position == "learned":
                yield f"the positions of layer {number} of the {place} are a table, which a stream outgrows"
    lengths = _chunk_lengths(model)
    if len(lengths) > 1:
        yield f"the chunk_frames of its memories differ ({', '.join(map(str, lengths))}): give all the same"
    if encoder.kind == "conformer" and encoder.layers and encoder.conv_kernel > 1 and not encoder.conv_causal:
        yield (
            f"each convolution of its encoder hears {encoder.conv_kernel // 2} frames that are to come: "
            "train it with conv_causal = true"
        )
    if head.order_takes_all and head.estimate_layers:
        yield (
            f"the permutation '{head.permutation}' encodes each frame by the order in the whole recording: "
            "train it with 'hard', whose order is known frame by frame"
        )
    if head.upsampling > 1:
        yield "its output, finer than 80 ms, is a convolution that hears a frame that is to come: set upsampling to 1"
    if model.features.whole:
        yield "its features depend on the whole recording: set normalize to 'none' or 'fixed', and gain to 'none'"
