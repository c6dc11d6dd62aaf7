"""Compare the model in the package in ONNX Runtime, float32 and int8, with PyTorch: DER, size and time.

    python graphs.py FOLDER ...
    python graphs.py --published v2

Each folder holds recordings with their references, as RTTM of the same names. Protocol full: no collar, overlap scored,
whole recordings. Features, clustering and turns are the package's; only the network differs. On one thread. int8:
weights of linear layers, by ``onnxruntime.quantization.quantize_dynamic``. With ``--published``: the cost of exporting
a graph of the size of NVIDIA's v1 or v2, with random weights, and a comparison of its steps.
"""

import argparse
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import onnxruntime
import torch
from nvidia import published
from onnxruntime.quantization import QuantType, quantize_dynamic
from peak_memory import peak_mib
from scored_folders import errors, recordings, shown
from torch import Tensor

from sortformer import Diarizer, checkpoint
from sortformer.bandwidth import is_narrow, sounding
from sortformer.checkpoint.contents import Checkpoint
from sortformer.checkpoint.onnx_export import write_onnx
from sortformer.config.postprocess import PostprocessConfig
from sortformer.masks import length_mask
from sortformer.model import SortformerOutput


class Graph:
    """An ONNX graph in place of ``Sortformer.forward_features``."""

    def __init__(self, path: Path, dim: int) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.nothing = np.zeros((1, 0, dim), np.float32)
        self.seconds = 0.0

    def __call__(self, feats: Tensor, lengths: Tensor) -> SortformerOutput:
        none = np.zeros(1, np.int64)
        begun = time.perf_counter()
        probs, emb = self.session.run(
            ["spkcache_fifo_chunk_preds", "spkcache_fifo_chunk_embs"],
            {
                "chunk": feats.numpy(),
                "chunk_lengths": lengths.numpy(),
                "spkcache": self.nothing,
                "spkcache_lengths": none,
                "fifo": self.nothing,
                "fifo_lengths": none,
                "narrowband": is_narrow(sounding(feats, length_mask(lengths, feats.shape[1]))).numpy(),
            },
        )
        self.seconds += time.perf_counter() - begun
        logits = torch.logit(torch.from_numpy(probs), 1e-6)
        return SortformerOutput(logits, (), torch.from_numpy(emb), torch.ones(logits.shape[:2], dtype=torch.bool))


class Timed:
    """The model's own ``forward_features``, timed."""

    def __init__(self, diarizer: Diarizer) -> None:
        self.run = diarizer.model.forward_features
        self.seconds = 0.0

    def __call__(self, feats: Tensor, lengths: Tensor) -> SortformerOutput:
        begun = time.perf_counter()
        output = self.run(feats, lengths)
        self.seconds += time.perf_counter() - begun
        return output


STEPS = {  # rows, feature frames of the chunk, frames of the cache and of the FIFO
    "30.4s": (1, 8 * 380, 188, 40),
    "whole": (1, 8 * 380, 0, 0),
    "1.04s, two rows": (2, 8 * 13, 188, 188),
}


def compare_steps(generation: str, layers: int | None) -> None:
    """Export a model like NVIDIA's, and compare the steps of the graph with the model's."""
    model = published(generation, layers)
    features, dim = model.config.features.num_mels, model.config.encoder.dim
    with tempfile.TemporaryDirectory() as made:
        path, begun = Path(made) / "graph.onnx", time.process_time()
        write_onnx(path, Checkpoint(model, PostprocessConfig()))
        taken, peak = time.process_time() - begun, peak_mib()
        print(f"{path.stat().st_size / 1e6:.0f} MB, written in {taken:.0f} s, {peak:.0f} MiB", flush=True)
        graph = Graph(path, dim).session
    for name, (rows, chunk, cache, fifo) in STEPS.items():
        inputs = {}
        for part, frames, size in (("chunk", chunk, features), ("spkcache", cache, dim), ("fifo", fifo, dim)):
            inputs[part] = torch.randn(rows, frames, size)
            inputs[f"{part}_lengths"] = torch.full((rows,), frames)
        begun = time.perf_counter()
        emb, _ = model.encoder.subsample(inputs["chunk"], inputs["chunk_lengths"])
        whole = torch.cat([inputs["spkcache"], inputs["fifo"], emb], dim=1)
        expected = model.forward_frames(whole, torch.ones(whole.shape[:2], dtype=torch.bool)).probs
        between = time.perf_counter()
        (probs,) = graph.run(["spkcache_fifo_chunk_preds"], {key: value.numpy() for key, value in inputs.items()})
        here, there = between - begun, time.perf_counter() - between
        apart = np.abs(probs - expected.numpy()).max()
        print(f"{name:16} PyTorch {here:5.2f} s  graph {there:5.2f} s  ratio {there / here:.2f}  apart {apart:.1e}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="*")
    parser.add_argument("--published", choices=("v1", "v2"))
    parser.add_argument("--layers", type=int, help="of each stack of --published, to try this script out")
    asked = parser.parse_args()
    folders = asked.folders
    torch.set_num_threads(1)
    if asked.published is not None:
        with torch.no_grad():
            compare_steps(asked.published, asked.layers)
        return
    diarizer = Diarizer.load(device="cpu")
    dim = diarizer.model.config.encoder.dim
    with tempfile.TemporaryDirectory() as made:
        whole, small = Path(made) / "float32.onnx", Path(made) / "int8.onnx"
        checkpoint.convert(checkpoint.EMBEDDED, whole)
        quantize_dynamic(whole, small, weight_type=QuantType.QInt8, op_types_to_quantize=["MatMul", "Gemm"])
        for path in (whole, small):
            print(f"{path.stem:8} {path.stat().st_size / 1e6:5.1f} MB")
        ways = {"PyTorch": Timed(diarizer), "float32": Graph(whole, dim), "int8": Graph(small, dim)}
        for folder in folders:
            for name, way in ways.items():
                diarizer.model.forward_features, way.seconds = way, 0.0
                parts = errors(diarizer, recordings(folder), np.asarray, None)
                print(f"{folder.name:10} {name:8} {shown(parts)}  network {way.seconds:6.1f} s", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
