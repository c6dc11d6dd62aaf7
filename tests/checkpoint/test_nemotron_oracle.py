"""Models built by transformers 5.23, with random weights: same output here, whole and in its streaming modes.

Runs where transformers has ``nemotron3_diarization``.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from sortformer import checkpoint
from sortformer.config.stream import STREAM_PRESETS, StreamConfig
from sortformer.model import Sortformer
from sortformer.streaming import Chunk, step
from sortformer.streaming.state import StreamState, start
from tests.checkpoint.goldens import activations
from tests.checkpoint.waves import assert_agree, largest_difference, recordings, speech

pytestmark = [pytest.mark.oracle, pytest.mark.data]

MODES = {"1.04s": "low_latency", "0.64s": "very_low_latency", "0.32s": "ultra_low_latency"}


@pytest.fixture(scope="module")
def transformers() -> Any:
    """The library, if it has this model."""
    library = pytest.importorskip("transformers", reason="transformers 5.23 is absent")
    if not hasattr(library, "Nemotron3DiarizationForAudioFrameClassification"):
        pytest.skip(f"transformers {library.__version__} has no nemotron3_diarization (5.23 does)")
    return library


def build(transformers: Any, layers: int | None, dim: int = 512) -> Any:
    """Return the published model, or a smaller one, with random weights and varied output."""
    audio = {"hidden_size": dim, "intermediate_size": 4 * dim, "num_hidden_layers": layers or 31}
    head = {"audio_hidden_size": dim}
    config = transformers.Nemotron3DiarizationConfig(audio_config=audio, head_config=head)
    torch.manual_seed(1)
    model = transformers.Nemotron3DiarizationForAudioFrameClassification(config).eval()
    with torch.no_grad():
        model.silence_embeds.normal_()
        model.model.upsampler.conv.weight.add_(0.05 * torch.randn_like(model.model.upsampler.conv.weight))
        out = model.classifier.out_proj
        hidden = []
        hook = out.register_forward_pre_hook(lambda _, inputs: hidden.append(inputs[0]))
        model(features(transformers, speech(5.0), torch.tensor([80_000]))[0])
        hook.remove()
        out.weight.normal_()
        logits = hidden[0].flatten(0, 1) @ out.weight.T
        out.weight.mul_(3 / logits.std(0)[:, None])
        out.bias.copy_(-3 * logits.mean(0) / logits.std(0))
    return model


def features(transformers: Any, wave: Tensor, num_samples: Tensor) -> tuple[Tensor, Tensor]:
    """Return the library's features (B, T, 128) and its mask of valid frames (B, T)."""
    extract = transformers.NemotronAsrStreamingFeatureExtractor(feature_size=128)
    rows = [row[:count].numpy() for row, count in zip(wave, num_samples.tolist(), strict=True)]
    inputs = extract(rows, sampling_rate=16_000, return_tensors="pt", return_attention_mask=True)
    return inputs["input_features"], inputs["attention_mask"].bool()


def loaded(model: Any, folder: Path) -> Sortformer:
    """Return the library's model, saved and loaded here."""
    model.save_pretrained(folder)
    return checkpoint.load(folder)[0]


@pytest.mark.parametrize("layers", [2, pytest.param(None, marks=pytest.mark.slow)])
def test_every_layer_agrees(layers: int | None, transformers: Any, tmp_path: Path) -> None:
    theirs = build(transformers, layers)
    ours = loaded(theirs, tmp_path)
    tower = theirs.model.audio_tower
    parts = {"pre_encode": tower.embedder} | {f"conformer{index}": layer for index, layer in enumerate(tower.layers)}
    found: dict[str, Tensor] = {}
    for name, part in parts.items():
        part.register_forward_hook(lambda _module, _inputs, output, name=name: found.update({name: output}))
    for kind in ("noise", "speech", "ragged"):
        wave, num_samples = recordings(kind, 6.0 if layers else 3.0)
        feats, mask = features(transformers, wave, num_samples)
        with torch.no_grad():
            found["logits"] = theirs(feats, attention_mask=mask).logits
            own_feats, lengths = ours.features(wave, num_samples)
        own = activations(ours, own_feats, lengths)
        assert lengths.equal(mask.sum(dim=1))
        differences = [("feats", largest_difference(own_feats, feats, lengths))]
        frames = -(-lengths // 8)
        for name, values in found.items():
            if name != "logits":
                differences.append((name, largest_difference(own[name], values, frames)))
        # Their upsampling of the last 80 ms of a row sees the padding after it, ours does not.
        heard = torch.where(frames < -(-feats.shape[1] // 8), 8 * (frames - 1), lengths)
        differences.append(("logits", largest_difference(own["logits"], found["logits"], heard)))
        assert found["logits"].std() > 1, "the output should be lively"
        assert_agree(f"Nemotron 3, {layers or 'all'} layers, {kind}", differences)


def stream(ours: Sortformer, config: StreamConfig, feats: Tensor) -> Iterator[tuple[Tensor, int, StreamState, Tensor]]:
    """Yield each step over features (1, T, M): its features, look-ahead in frames, the state after it, its output."""
    state, total = start(config, ours.config.encoder.dim, ours.config.head.num_slots), feats.shape[1] // 8
    for first in range(0, total, config.chunk_frames):
        length = min(config.chunk_frames, total - first)
        heard = feats[:, 8 * first : 8 * (first + length + config.right_context_frames)]
        ahead = heard.shape[1] // 8 - length
        emb, _ = ours.encoder.pre_encode(heard, torch.tensor([heard.shape[1]]))
        chunk = Chunk(emb, *(torch.tensor([count]) for count in (0, length, ahead)))
        state, probs = step(ours, config, state, chunk)
        yield heard, ahead, state, probs


def whole_frames(transformers: Any, wave: Tensor) -> Tensor:
    """Return the features of a wave (1, N) without an incomplete 80 ms at the end."""
    feats, mask = features(transformers, wave, torch.tensor([wave.shape[1]]))
    return feats[:, : int(mask.sum()) // 8 * 8]


@pytest.mark.parametrize("preset", MODES)
def test_streams_agree_step_by_step(preset: str, transformers: Any, tmp_path: Path) -> None:
    from transformers.models.nemotron3_diarization.processing_nemotron3_diarization import DEFAULT_STREAMING_MODES

    theirs = build(transformers, 1, dim=64)
    ours = loaded(theirs, tmp_path)
    config = STREAM_PRESETS[f"nemotron3-{preset}"]
    assert (config.chunk_frames, config.right_context_frames) == tuple(DEFAULT_STREAMING_MODES[MODES[preset]])
    memory, differences, outputs, compressed = None, [], [], False
    with torch.no_grad():
        for heard, ahead, state, probs in stream(ours, config, whole_frames(transformers, speech(55.0))):
            output = theirs(heard, speaker_cache=memory, num_lookahead_frames=ahead)
            memory = output.speaker_cache
            cached, queued = memory.num_cache_frames, memory.num_fifo_frames
            assert (int(state.cache.length), int(state.fifo.length)) == (cached, queued)
            differences += [
                ("cache", largest_difference(state.cache.emb[:, :cached], memory.embeds[:, :cached])),
                ("fifo", largest_difference(state.fifo.emb[:, :queued], memory.fifo[:, :queued])),
                ("probs", largest_difference(probs, output.logits.sigmoid())),
            ]
            outputs.append(probs)
            compressed = bool(state.compressed)
    assert compressed
    assert torch.cat(outputs, dim=1).std(dim=1).min() > 0.1, "every slot should be lively"
    assert_agree(f"Nemotron 3 streamed, {preset}, {len(outputs)} steps", differences)


def test_their_pass_over_a_whole_recording_is_a_stream_too(transformers: Any, tmp_path: Path) -> None:
    theirs = build(transformers, 1, dim=64)
    ours = loaded(theirs, tmp_path)
    feats = whole_frames(transformers, speech(55.0))
    with torch.no_grad():
        expected = theirs(feats).logits.sigmoid()
        found = torch.cat([probs for *_, probs in stream(ours, STREAM_PRESETS["nemotron3-30.4s"], feats)], dim=1)
    assert_agree("Nemotron 3 whole, 30.4s", [("probs", largest_difference(found, expected))])
