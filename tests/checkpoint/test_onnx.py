"""An ONNX graph computes the model's output for inputs of any size, and can be the core of a stream."""

import importlib.util
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from torch import Tensor
from torch.torch_version import TorchVersion

from sortformer.checkpoint.contents import Checkpoint
from sortformer.checkpoint.convert import convert
from sortformer.checkpoint.onnx_export import write_onnx
from sortformer.config.attention import AttentionConfig
from sortformer.config.cores import FavorCore
from sortformer.config.depth import UniversalDepth
from sortformer.config.model import ModelConfig
from sortformer.config.postprocess import PostprocessConfig
from sortformer.config.stream import SpeakerCacheConfig, StreamConfig
from sortformer.config.strict import from_dict
from sortformer.errors import InputError
from sortformer.masks import length_mask
from sortformer.model import Sortformer
from sortformer.streaming.frames import Frames
from sortformer.streaming.protocol import Chunk
from sortformer.streaming.step import SpeakerCache, shown, update
from tests.checkpoint.goldens import GOLDEN
from tests.small_models import SHAPES, small_config, small_model

NAMES = ["chunk", "chunk_lengths", "spkcache", "spkcache_lengths", "fifo", "fifo_lengths"]
# All features of the package's model and of NVIDIA's first ones.
OURS = small_config(
    {"window_frames": 7, "narrowband_channels": 3, "conv_norm": "batch", "layers": 1},
    {"position": "xl", "layers": 1, "estimate_layers": (0,)},
    normalize="fixed",
)


class Graph:
    """An ONNX graph and the model that it was exported from."""

    def __init__(self, path: Path, model: Sortformer) -> None:
        # Errors only, not warnings about buffers that cannot be reused for another size.
        onnxruntime.set_default_logger_severity(3)
        self.session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        self.model = model

    def run(self, **inputs: Tensor) -> dict[str, Tensor]:
        names = [output.name for output in self.session.get_outputs()]
        found = self.session.run(None, {name: tensor.numpy() for name, tensor in inputs.items()})
        return {name: torch.from_numpy(np.asarray(array)) for name, array in zip(names, found, strict=True)}


def inputs_of(model: Sortformer, lengths: dict[str, list[int]], room: int = 0, seed: int = 0) -> dict[str, Tensor]:
    """Return random inputs with the given number of frames per row, padded by ``room`` frames of NaN."""
    generator, config = torch.Generator().manual_seed(seed), model.config
    found = {}
    for name, size in (
        ("chunk", config.features.num_mels),
        ("spkcache", config.encoder.dim),
        ("fifo", config.encoder.dim),
    ):
        counts = torch.tensor(lengths[name])
        values = torch.randn(len(counts), int(counts.max()) + room, size, generator=generator)
        found[name] = values.masked_fill(~length_mask(counts, values.shape[1])[..., None], torch.nan)
        found[f"{name}_lengths"] = counts
    if model.encoder.narrowband is not None:
        found["narrowband"] = torch.arange(len(lengths["chunk"])) % 2 == 1
    return found


def assert_is_the_model(graph: Graph, inputs: dict[str, Tensor]) -> None:
    """Assert that each row equals the model's output for it alone, unpadded, followed by zeros."""
    model, found = graph.model, graph.run(**inputs)
    for row in range(len(inputs["chunk"])):
        cache, fifo, chunk = (
            inputs[name][row : row + 1, : int(inputs[f"{name}_lengths"][row])] for name in ("spkcache", "fifo", "chunk")
        )
        narrow = inputs["narrowband"][row : row + 1] if "narrowband" in inputs else None
        with torch.no_grad():
            emb, frames = model.encoder.subsample(chunk, torch.tensor([chunk.shape[1]]), narrow)
            whole = torch.cat([cache, fifo, emb], dim=1)
            output = model.forward_frames(whole, torch.ones(whole.shape[:2], dtype=torch.bool))
        finer = model.config.head.upsampling
        expected = {
            "spkcache_fifo_chunk_preds": output.probs.unflatten(1, (-1, finer)).mean(dim=2),
            "spkcache_fifo_chunk_embs": output.emb,
            "chunk_pre_encode_embs": emb,
        }
        if finer > 1:
            expected["spkcache_fifo_chunk_preds_hr"] = output.probs
        assert {"chunk_pre_encode_lengths", *expected} == set(found)
        assert int(found["chunk_pre_encode_lengths"][row]) == int(frames)
        for name, tensor in expected.items():
            got = found[name][row]
            torch.testing.assert_close(got[: tensor.shape[1]], tensor[0], atol=2e-5, rtol=1e-4, msg=name)
            if name.startswith("spkcache"):
                assert not got[tensor.shape[1] :].any(), name


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    """A small model with two subsamplings, local attention and open permutation encodings."""
    model = small_model(OURS)
    path = tmp_path_factory.mktemp("onnx") / "new" / "ours.onnx"
    write_onnx(path, Checkpoint(model, PostprocessConfig(onset=0.6), "CC0"))
    return Graph(path, model)


@pytest.fixture(scope="module")
def nemotron(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    """Transformers' random Nemotron 3, loaded here."""
    path = tmp_path_factory.mktemp("onnx") / "nemotron.onnx"
    return Graph(path, convert(GOLDEN / "tiny_nemotron3", path).model)


SIZES = {
    "a recording": {"chunk": [200], "spkcache": [0], "fifo": [0]},
    "a frame": {"chunk": [1], "spkcache": [0], "fifo": [0]},
    "a step": {"chunk": [48], "spkcache": [12], "fifo": [5]},
    "rows": {"chunk": [61, 200, 8], "spkcache": [40, 3, 0], "fifo": [0, 21, 2]},
}


@pytest.mark.parametrize("lengths", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("room", [0, 9])
def test_a_graph_is_its_model_whatever_its_sizes(ours: Graph, lengths: dict[str, list[int]], room: int):
    assert_is_the_model(ours, inputs_of(ours.model, lengths, room))


@pytest.mark.parametrize("lengths", SIZES.values(), ids=SIZES)
def test_a_graph_of_nemotron_3_is_its_model(nemotron: Graph, lengths: dict[str, list[int]]):
    assert_is_the_model(nemotron, inputs_of(nemotron.model, lengths))


def test_its_inputs_and_sizes_have_nemos_names(ours: Graph, nemotron: Graph):
    assert [each.name for each in nemotron.session.get_inputs()] == NAMES
    assert [each.name for each in ours.session.get_inputs()] == [*NAMES, "narrowband"]
    assert ours.session.get_inputs()[0].shape == ["rows", "chunk_frames", 16]


@torch.no_grad()
def test_a_stream_can_be_built_around_a_graph(nemotron: Graph):
    """From features, graph and cache rules, as in a host application, against the package's stream."""
    model, size = nemotron.model, 5
    config = StreamConfig(size, fifo_frames=10, update_period_frames=6, speaker_cache=SpeakerCacheConfig(24, 1))
    memory = SpeakerCache(model, config)
    here = there = memory.start()
    feats = torch.randn(1, 8 * size * 12, model.config.features.num_mels, generator=torch.Generator().manual_seed(3))
    finer, nothing = model.config.head.upsampling, torch.zeros(1, dtype=torch.int64)
    for part in feats.split(8 * size, dim=1):
        found = nemotron.run(
            chunk=part,
            chunk_lengths=torch.tensor([part.shape[1]]),
            spkcache=here.cache.emb,
            spkcache_lengths=here.cache.length,
            fifo=here.fifo.emb,
            fifo_lengths=here.fifo.length,
        )
        first = int(here.cache.length + here.fifo.length) * finer
        probs = found["spkcache_fifo_chunk_preds_hr"][:, first : first + size * finer]
        length = found["chunk_pre_encode_lengths"]
        chunk = Chunk(found["chunk_pre_encode_embs"], nothing, length, nothing)
        emb, count = shown(here, chunk)
        heard = Frames(emb, found["spkcache_fifo_chunk_preds"], count)
        here = update(config, here, chunk, heard, model.encoder.silence)
        emb, _ = model.encoder.subsample(part, torch.tensor([part.shape[1]]))
        there, expected = memory.step(there, Chunk(emb, nothing, length, nothing))
        torch.testing.assert_close(probs, expected, atol=1e-4, rtol=0)
    assert bool(here.compressed.all())


@torch.no_grad()
def test_frames_that_see_what_came_before_take_two_calls(ours: Graph):
    """As docs/onnx.md says for presets with a margin, against the package's stream."""
    model, size = ours.model, 2
    config = StreamConfig(size, fifo_frames=6, update_period_frames=3, speaker_cache=SpeakerCacheConfig(12, 0))
    memory = SpeakerCache(model, config)
    here = there = memory.start()
    feats = torch.randn(1, 8 * size * 15, model.config.features.num_mels, generator=torch.Generator().manual_seed(3))
    nothing, wide = torch.zeros(1, dtype=torch.int64), torch.zeros(1, dtype=torch.bool)
    none = torch.zeros(1, 0, model.config.encoder.dim)
    for first in range(0, feats.shape[1], 8 * size):
        margin = config.margin_frames if first else 0
        part = feats[:, first - 8 * margin : first + 8 * size]
        count = torch.tensor([part.shape[1]])
        both = {"narrowband": wide, "spkcache_lengths": nothing, "fifo_lengths": nothing}
        alone = ours.run(chunk=part, chunk_lengths=count, spkcache=none, fifo=none, **both)
        emb = alone["chunk_pre_encode_embs"][:, margin:]
        found = ours.run(
            chunk=part,
            chunk_lengths=nothing,
            spkcache=here.cache.emb,
            spkcache_lengths=here.cache.length,
            fifo=torch.cat([here.fifo.emb[:, : int(here.fifo.length)], emb], dim=1),
            fifo_lengths=here.fifo.length + size,
            narrowband=wide,
        )["spkcache_fifo_chunk_preds"]
        chunk = Chunk(emb, nothing, torch.tensor([size]), nothing)
        start = int(here.cache.length + here.fifo.length)
        emb, count = shown(here, chunk)
        here = update(config, here, chunk, Frames(emb, found[:, : start + size], count))
        whole, _ = model.encoder.subsample(feats[:, : first + 8 * size], torch.tensor([first + 8 * size]), wide)
        there, expected = memory.step(there, replace(chunk, emb=whole[:, -size:]))
        torch.testing.assert_close(found[:, start : start + size], expected, atol=1e-4, rtol=0)
    assert bool(here.compressed.all())


def test_its_metadata_say_what_else_is_to_be_known(ours: Graph, nemotron: Graph):
    said = {name: json.loads(value) for name, value in ours.session.get_modelmeta().custom_metadata_map.items()}
    assert from_dict(ModelConfig, said["sortformer.config"]["model"], "model") == ours.model.config
    assert said["sortformer.config"]["postprocess"]["onset"] == 0.6
    assert said["sortformer.config"]["licence"] == "CC0"
    assert from_dict(StreamConfig, said["sortformer.presets"]["1s"], "1s").latency_s == 0.96
    assert "sortformer.silence" not in said
    said = {name: json.loads(value) for name, value in nemotron.session.get_modelmeta().custom_metadata_map.items()}
    assert (said["chunk_len"], said["left_context"], said["right_context"]) == (340, 0, 40)
    assert (said["fifo_len"], said["spkcache_len"], said["spkcache_update_period"]) == (40, 264, 300)
    silence = nemotron.model.encoder.silence
    assert silence is not None
    torch.testing.assert_close(torch.tensor(said["sortformer.silence"]), silence.detach(), atol=0, rtol=0)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (SHAPES["memory"], "layers of its encoder carry a state, which graphs cannot"),
        (SHAPES["reversible"], "the depth of its encoder is 'reversible', not 'stacked'"),
        (
            small_config(head={"depth": UniversalDepth(), "position": "coordinates"}),
            "the depth of its head is 'universal'",
        ),
        (small_config(head={"attention": (AttentionConfig(FavorCore()),)}), "its head attends with 'favor', not"),
        (small_config(head={"position": "learned"}), "the positions of its head are a table of fixed length"),
        (small_config({"ff_chunk_frames": 3}), "the feed-forward parts of its encoder are chunked"),
    ],
)
def test_what_a_graph_cannot_say_is_refused_with_the_reason(tmp_path: Path, config: ModelConfig, said: str):
    with pytest.raises(InputError, match=f"ONNX cannot express this model: {said}"):
        write_onnx(tmp_path / "model.onnx", Checkpoint(Sortformer(config), PostprocessConfig()))
    assert not list(tmp_path.iterdir())


def test_a_place_that_cannot_be_written_is_found_before_the_tracing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch.onnx, "export", None)
    (tmp_path / "model.onnx").mkdir()
    for folder in (tmp_path, Path("/proc")):  # there, not even root can create files
        with pytest.raises(OSError, match=r"model\.onnx|/proc"):
            write_onnx(folder / "model.onnx", Checkpoint(small_model(OURS), PostprocessConfig()))


def test_a_torch_that_is_too_old_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch, "__version__", TorchVersion("2.7.1+cpu"))
    with pytest.raises(InputError, match=r"ONNX export needs torch 2\.8 or newer, but this is 2\.7\.1\+cpu"):
        convert(GOLDEN / "tiny_v1.nemo", tmp_path / "model.onnx")


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    found = importlib.util.find_spec
    monkeypatch.setattr("sortformer.extras.find_spec", lambda name: None if name == "onnxscript" else found(name))
    with pytest.raises(InputError, match=r"ONNX needs onnxscript: pip install"):
        convert(GOLDEN / "tiny_v1.nemo", tmp_path / "model.onnx")


def test_a_graph_that_is_there_is_not_replaced_unasked(tmp_path: Path):
    (tmp_path / "model.onnx").write_bytes(b"old")
    with pytest.raises(InputError, match="exists already"):
        convert(GOLDEN / "tiny_v1.nemo", tmp_path / "model.onnx")
    assert (tmp_path / "model.onnx").read_bytes() == b"old"
