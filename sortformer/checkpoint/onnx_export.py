"""Export to ONNX graphs, which run a step of a stream or, with empty cache and FIFO, a whole recording.

Inputs and outputs have the names of NeMo's ``SortformerEncLabelModel`` (its ``input_names`` and ``output_names``),
which runtimes already use. Features go in and probabilities come out; the caller keeps the speaker cache and the FIFO.
The numbers of rows and frames are dynamic.
"""

import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.torch_version import TorchVersion

from sortformer.checkpoint.contents import Checkpoint
from sortformer.checkpoint.native import described
from sortformer.config.depth import StackedDepth
from sortformer.config.model import ModelConfig
from sortformer.config.presets import model_presets
from sortformer.config.strict import to_dict
from sortformer.draft import drafted
from sortformer.errors import InputError
from sortformer.extras import require_extra
from sortformer.masks import length_mask
from sortformer.model import Sortformer
from sortformer.ragged import end_to_end

__all__ = ["write_onnx"]

_CORES = frozenset({"full", "local"})
_OLDEST_TORCH = TorchVersion("2.8")


class _Step(nn.Module):
    """The network's part of a stream's step."""

    def __init__(self, model: Sortformer) -> None:
        super().__init__()
        self.model = model

    def forward(
        self,
        chunk: Tensor,
        chunk_lengths: Tensor,
        spkcache: Tensor,
        spkcache_lengths: Tensor,
        fifo: Tensor,
        fifo_lengths: Tensor,
        narrowband: Tensor | None = None,
    ) -> dict[str, Tensor]:
        """Run the model on [speaker cache | FIFO | chunk] (B, T, D), concatenated in each row without gaps."""
        encoder = self.model.encoder
        if narrowband is None:
            emb, frames = encoder.pre_encode(chunk, chunk_lengths)
        else:
            emb, frames = encoder.subsample_both(chunk, chunk_lengths, narrowband)
        # Not cut to the longest row, because its length is known only when the graph runs.
        size = spkcache.shape[1] + fifo.shape[1] + emb.shape[1]
        x, total = end_to_end([(spkcache, spkcache_lengths), (fifo, fifo_lengths), (emb, frames)], size)
        output = self.model.forward_frames(x, length_mask(total, size))
        finer = self.model.config.head.upsampling
        probs = {"spkcache_fifo_chunk_preds": output.probs.unflatten(1, (-1, finer)).mean(dim=2)}
        if finer > 1:
            probs["spkcache_fifo_chunk_preds_hr"] = output.probs
        return {
            **probs,
            "chunk_pre_encode_embs": emb,
            "chunk_pre_encode_lengths": frames,
            "spkcache_fifo_chunk_embs": output.emb * length_mask(total, size)[..., None],
        }


def write_onnx(path: Path, checkpoint: Checkpoint) -> None:
    """Write a model as an ONNX graph, atomically; missing folders are created.

    Raises:
        InputError: if ONNX cannot express the model, or a package is missing or too old.
        OSError: if the file cannot be written.
    """
    require_extra("ONNX", "onnx", "onnx", "onnxscript")
    if torch.__version__ < _OLDEST_TORCH:
        raise InputError(f"ONNX export needs torch {_OLDEST_TORCH} or newer, but this is {torch.__version__}")
    _check_expressible(checkpoint.model.config)
    path.parent.mkdir(parents=True, exist_ok=True)
    with drafted(path) as draft:
        draft.touch()  # fails before the minute of tracing, not after it
        program = _exported(checkpoint.model)
        for key, value in _metadata(checkpoint).items():
            program.model.metadata_props[key] = value
        program.save(draft)


def _check_expressible(config: ModelConfig) -> None:
    encoder, head = config.encoder, config.head
    for place, stack, layers in (("encoder", encoder, encoder.layer_attention), ("head", head, head.layer_attention)):
        kinds = sorted({layer.core.kind for layer in layers} - _CORES)
        for fits, reason in (
            (isinstance(stack.depth, StackedDepth), f"the depth of its {place} is '{stack.depth.kind}', not 'stacked'"),
            (not any(layer.carries for layer in layers), f"layers of its {place} carry a state, which graphs cannot"),
            (not kinds, f"its {place} attends with {', '.join(map(repr, kinds))}, not 'full' or 'local'"),
            (
                "learned" not in {layer.position for layer in layers},
                f"the positions of its {place} are a table of fixed length",
            ),
            (stack.ff_chunk_frames is None, f"the feed-forward parts of its {place} are chunked (ff_chunk_frames)"),
        ):
            if not fits:
                raise InputError(f"ONNX cannot express this model: {reason}")


def _exported(model: Sortformer) -> Any:
    inputs = _inputs(model.config)
    sizes = {name: dict(enumerate(("rows", f"{name}_frames")[: tensor.dim()])) for name, tensor in inputs.items()}
    step = _Step(model).eval()
    with torch.no_grad():
        names = list(step(**inputs))
    # With gradients, so that no branch depends on the length: without, long recordings are processed in parts.
    with _quiet(), torch.enable_grad():
        return torch.onnx.export(
            step,
            kwargs=inputs,
            input_names=list(inputs),
            output_names=names,
            dynamic_shapes=sizes,
            dynamo=True,
            verbose=False,
        )


def _inputs(config: ModelConfig) -> dict[str, Tensor]:
    """Return example inputs of a step of two streams, by NeMo's names."""
    dim = config.encoder.dim
    inputs = {
        "chunk": torch.zeros(2, 200, config.features.num_mels),
        "chunk_lengths": torch.tensor([200, 133]),
        "spkcache": torch.zeros(2, 300, dim),
        "spkcache_lengths": torch.tensor([300, 7]),
        "fifo": torch.zeros(2, 20, dim),
        "fifo_lengths": torch.tensor([0, 20]),
    }
    if config.encoder.narrowband_channels is not None:
        inputs["narrowband"] = torch.tensor([False, True])
    return inputs


def _metadata(checkpoint: Checkpoint) -> dict[str, str]:
    """Return the metadata of the graph, each value as JSON."""
    model = checkpoint.model
    config = described(model.config, checkpoint.postprocess, checkpoint.licence)
    presets = model_presets(model.config)
    values: dict[str, Any] = {
        "sortformer.config": config,
        "sortformer.presets": {n: to_dict(p) for n, p in presets.items()},
    }
    if model.encoder.silence is not None:
        values["sortformer.silence"] = model.encoder.silence.tolist()
    if presets:
        longest = next(iter(presets.values()))
        values |= {
            "chunk_len": longest.chunk_frames,
            "left_context": longest.left_context_frames,
            "right_context": longest.right_context_frames,
            "fifo_len": longest.fifo_frames,
            "spkcache_len": longest.speaker_cache.frames,
            "spkcache_update_period": longest.update_period_frames,
        }
    return {name: json.dumps(value) for name, value in values.items()}


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress messages of the exporter about its own internals."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
