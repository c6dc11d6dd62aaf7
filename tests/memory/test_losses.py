"""The losses of compressions: what they train, and that padding changes none of them."""

import pytest
import torch

from sortformer.config.cores import FullCore, SpanCore
from sortformer.config.memories import CompressiveMemory, TransformerXLMemory
from tests.draws import draw
from tests.masks import unpadded
from tests.memory.cases import CHUNK, DIM, FRAMES, build, compressive, streamed


@pytest.mark.parametrize(
    ("compression", "loss"),
    [("conv", "attention"), ("dilated_conv", "attention"), ("conv", "autoencoding"), ("autoencoder", "autoencoding")],
)
def test_a_loss_trains_the_compression_and_nothing_else(compression: str, loss: str):
    layer, x = build(compressive(compression, loss)), draw(12, 1, FRAMES, DIM)
    torch.stack([loss for step in streamed(layer, x) for loss in step.losses.values()]).sum().backward()
    for name, parameter in layer.named_parameters():
        touched = parameter.grad is not None and bool(parameter.grad.abs().sum() > 0)
        assert touched == name.startswith("memory."), name


def test_without_a_loss_the_task_trains_the_compression():
    layer, x = build(compressive("conv")), draw(13, 1, FRAMES, DIM)
    assert not any(step.losses for step in streamed(layer, x))
    layer(*unpadded(x)).out.square().sum().backward()
    for name, parameter in layer.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


@pytest.mark.parametrize("loss", ["attention", "autoencoding"])
def test_with_a_loss_the_task_does_not_train_the_compression(loss: str):
    layer, x = build(compressive("conv", loss)), draw(14, 1, FRAMES, DIM)
    layer(*unpadded(x)).out.square().sum().backward()
    assert all(parameter.grad is None for parameter in layer.memory.parameters())


def test_what_is_rebuilt_without_error_costs_nothing():
    memory = CompressiveMemory(
        frames=2, compressed_frames=4, ratio=1, compression="conv", loss="autoencoding", chunk_frames=CHUNK
    )
    layer, x = build(memory), draw(15, 1, FRAMES, DIM)
    eye = torch.eye(DIM, dtype=torch.float64)[..., None]
    with torch.no_grad():
        for name, parameter in layer.memory.named_parameters():
            parameter.copy_(eye if name.endswith("weight") else torch.zeros(DIM))
    assert streamed(layer, x)[-1].losses["memory_autoencoding"].item() == pytest.approx(0, abs=1e-20)


def test_every_frame_that_is_compressed_counts():
    memory = CompressiveMemory(
        frames=2, compressed_frames=4, ratio=1, compression="conv", loss="autoencoding", chunk_frames=CHUNK
    )
    layer, x = build(memory), draw(16, 1, FRAMES, DIM)
    for parameter in layer.memory.parameters():
        torch.nn.init.zeros_(parameter)  # so that zeros are rebuilt
    expected = x[0, : FRAMES - 2].square().mean(dim=1).sum() / FRAMES
    torch.testing.assert_close(layer(*unpadded(x)).losses, {"memory_autoencoding": expected})


def test_the_loss_of_a_recording_is_the_mean_over_its_frames_of_those_of_its_chunks():
    layer, x = build(compressive("conv", "attention")), draw(17, 1, FRAMES, DIM)
    total = sum(step.losses.get("memory_attention", 0.0) * step.out.shape[1] for step in streamed(layer, x))
    torch.testing.assert_close(layer(*unpadded(x)).losses, {"memory_attention": total / FRAMES})
    layer.eval()
    assert layer(*unpadded(x)).losses == {}


@pytest.mark.parametrize("loss", ["attention", "autoencoding", "span"])
def test_neither_padding_nor_what_else_is_in_the_batch_changes_a_loss(loss: str):
    core = SpanCore(max_frames=8, ramp_frames=3) if loss == "span" else FullCore()
    memory = TransformerXLMemory(frames=5, chunk_frames=CHUNK) if loss == "span" else compressive("conv", loss)
    layer, lengths = build(memory, core), (FRAMES, FRAMES - 2, FRAMES - 3, FRAMES - CHUNK - 1, 1)
    x, valid = draw(20, 5, FRAMES + 3 * CHUNK, DIM), torch.arange(FRAMES + 3 * CHUNK) < torch.tensor(lengths)[:, None]
    (together,) = layer(x.masked_fill(~valid[..., None], torch.nan), valid).losses.values()
    alone = [sum(layer(*unpadded(x[row : row + 1, :length])).losses.values()) for row, length in enumerate(lengths)]
    expected = sum(length * loss for length, loss in zip(lengths, alone, strict=True)) / sum(lengths)
    torch.testing.assert_close(together, expected, atol=1e-12, rtol=0)
