"""Models built by NeMo 3.0.0 from its published configurations, with random weights: same output here.

Runs where ``nemo_toolkit[asr]`` is installed, on whole recordings and, step by step, on streams.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from sortformer import checkpoint
from sortformer.config.stream import STREAM_PRESETS
from sortformer.features import LogMel
from sortformer.model import Sortformer
from sortformer.streaming import step
from sortformer.streaming.front import hear, next_chunk, start_front
from sortformer.streaming.state import start
from tests.checkpoint.goldens import activations, shared
from tests.checkpoint.waves import assert_agree, largest_difference, recordings, speech
from tests.marks import LICENCE_IS_LIMITED

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.data,
    pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning"),  # raised in NeMo
]


@pytest.fixture(scope="module")
def nemo() -> Any:
    """The class of NeMo's model."""
    models = pytest.importorskip("nemo.collections.asr.models", reason="nemo_toolkit[asr] (NeMo 3.0.0) is absent")
    return models.SortformerEncLabelModel


def build(nemo: Any, generation: str, layers: int | None, dim: int = 512) -> Any:
    """Return NeMo's model of a published configuration, or a smaller one, with random weights and varied output."""
    from omegaconf import OmegaConf

    values = OmegaConf.load(shared(f"models/{generation}_model_config.yaml"))
    for section in ("train_ds", "validation_ds", "test_ds", "optim"):
        values[section] = None
    values.model_defaults.fc_d_model = dim
    if layers is not None:
        values.encoder.n_layers = values.transformer_encoder.num_layers = layers
    torch.manual_seed(1)
    model = nemo(cfg=OmegaConf.create({"model": values}).model).eval()
    for norm in (module for module in model.modules() if isinstance(module, nn.BatchNorm1d)):
        norm.running_mean.normal_(std=0.1)
        norm.running_var.uniform_(0.5, 1.5)
    # At full depth a random model's output is nearly constant over frames: spreading it would amplify only rounding.
    if layers is not None:
        streams, model.streaming_mode = model.streaming_mode, False
        spread_logits(model, model.sortformer_modules.single_hidden_to_spks, speech(5.0))
        model.streaming_mode = streams
    return model


@torch.no_grad()
def spread_logits(model: Any, out: nn.Linear, wave: Tensor) -> None:
    """Scale the last layer so that slots become active and inactive on a wave (1, N)."""
    hidden = []
    hook = out.register_forward_pre_hook(lambda _, inputs: hidden.append(inputs[0]))
    model(wave, torch.tensor([wave.shape[1]]))
    hook.remove()
    out.weight.normal_()
    logits = hidden[0].flatten(0, 1) @ out.weight.T
    out.weight.mul_(3 / logits.std(0)[:, None])
    out.bias.copy_(-3 * logits.mean(0) / logits.std(0))


@torch.no_grad()
def nemo_activations(model: Any, wave: Tensor, num_samples: Tensor) -> dict[str, Tensor]:
    """Return the activations of NeMo's parts, time before channels, under our names."""
    parts = {"pre_encode": model.encoder.pre_encode}
    parts |= {f"conformer{index}": layer for index, layer in enumerate(model.encoder.layers)}
    parts |= {f"transformer{index}": layer for index, layer in enumerate(model.transformer_encoder.layers)}
    found: dict[str, Tensor] = {}

    def record(name: str) -> Any:
        return lambda _module, _inputs, output: found.update({name: output[0] if type(output) is tuple else output})

    hooks = [part.register_forward_hook(record(name)) for name, part in parts.items()]
    feats, lengths = model.process_signal(wave, num_samples)
    feats = feats[:, :, : lengths.max()]
    emb, emb_lengths = model.frontend_encoder(feats, lengths)
    found["probs"] = model.forward_infer(emb, emb_lengths)
    for hook in hooks:
        hook.remove()
    return found | {"feats": feats.transpose(1, 2), "lengths": lengths}


def loaded(model: Any, folder: Path) -> Sortformer:
    """Return NeMo's model, saved and loaded here."""
    model.save_to(str(folder / "model.nemo"))
    return checkpoint.load(folder / "model.nemo")[0]


@LICENCE_IS_LIMITED
@pytest.mark.parametrize(
    ("generation", "layers"),
    [("v1", 2), ("v2", 2), *(pytest.param(name, None, marks=pytest.mark.slow) for name in ("v1", "v2"))],
)
def test_every_layer_agrees(generation: str, layers: int | None, nemo: Any, tmp_path: Path) -> None:
    theirs = build(nemo, generation, layers)
    ours = loaded(theirs, tmp_path)
    theirs.streaming_mode = False
    front_end = LogMel(replace(ours.config.features, gain="none"))
    for kind in ("noise", "speech", "ragged"):
        wave, num_samples = recordings(kind, 6.0 if layers else 3.0)
        expected = nemo_activations(theirs, wave, num_samples)
        # NeMo's offline gain is that of the whole batch, so it is passed in.
        feats, lengths = front_end(wave * (1 / (wave.max() + 1e-3)), num_samples)
        assert lengths.equal(expected.pop("lengths"))
        found = activations(ours, feats, lengths) | {"feats": feats}
        assert float(np.ptp(found["probs"].numpy())) > (0.8 if layers else 0.0), "the output should be lively"
        assert_agree(
            f"{generation}, {layers or 'all'} layers, {kind}",
            (
                (name, largest_difference(found[name], values, lengths if name == "feats" else -(-lengths // 8)))
                for name, values in expected.items()
            ),
        )


@pytest.mark.parametrize("preset", ["30.4s", "10s", "1.04s", "0.32s"])
def test_streams_agree_step_by_step(preset: str, nemo: Any, tmp_path: Path) -> None:
    theirs = build(nemo, "v2", 1, dim=64)
    ours = loaded(theirs, tmp_path)
    config = STREAM_PRESETS[f"nvidia-{preset}"]
    modules = theirs.sortformer_modules
    modules.chunk_len, modules.fifo_len = config.chunk_frames, config.fifo_frames
    modules.chunk_left_context, modules.chunk_right_context = config.left_context_frames, config.right_context_frames
    modules.spkcache_len, modules.spkcache_update_period = config.speaker_cache.frames, config.update_period_frames
    expected, forward_step = [], theirs.forward_streaming_step

    def recorded(**arguments: Any) -> tuple[Any, Tensor]:
        before = arguments["total_preds"].shape[1]
        state, total = forward_step(**arguments)
        expected.append((state.spkcache.clone(), state.fifo.clone(), total[:, before:]))
        return state, total

    theirs.forward_streaming_step = recorded
    assert theirs.streaming_mode
    assert not theirs.async_streaming
    wave = speech(45.0)
    with torch.no_grad():
        theirs(wave, torch.tensor([wave.shape[1]]))
        log_mel = LogMel(ours.config.features)
        front = hear(log_mel, start_front(log_mel), wave[0].numpy(), last=True)
        state, differences = start(config, theirs.encoder.d_model, 4), []
        for cache, fifo, probs in expected:
            front, chunk = next_chunk(log_mel, ours.encoder, config, front)
            assert chunk is not None
            state, own = step(ours, config, state, chunk)
            assert (int(state.cache.length), int(state.fifo.length)) == (cache.shape[1], fifo.shape[1])
            differences += [
                ("cache", largest_difference(state.cache.emb[:, : cache.shape[1]], cache)),
                ("fifo", largest_difference(state.fifo.emb[:, : fifo.shape[1]], fifo)),
                ("probs", largest_difference(own, probs)),
            ]
    assert next_chunk(log_mel, ours.encoder, config, front)[1] is None
    assert state.compressed.item()
    assert torch.cat([probs for *_, probs in expected], dim=1).std(dim=1).min() > 0.1, "every slot should be lively"
    assert_agree(f"v2 streamed, {preset}, {len(expected)} steps", differences)


def test_what_is_converted_back_loads_in_nemo_with_the_same_output(nemo: Any, tmp_path: Path) -> None:
    for generation in ("v1", "v2"):
        folder = tmp_path / generation
        folder.mkdir()
        original = build(nemo, generation, 1, dim=64)
        loaded(original, folder)
        checkpoint.convert(folder / "model.nemo", folder / "ours")
        checkpoint.convert(folder / "ours", folder / "back.nemo")
        back = nemo.restore_from(str(folder / "back.nemo"), map_location="cpu").eval()
        assert back.streaming_mode == original.streaming_mode
        for model in (original, back):
            model.streaming_mode = False
        wave, num_samples = recordings("speech", 4.0)
        with torch.no_grad():
            assert torch.equal(back(wave, num_samples), original(wave, num_samples))
