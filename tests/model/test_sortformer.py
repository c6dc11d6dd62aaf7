"""The whole model: shapes on the grid, parts according to their configs, finite bf16 and training."""

import pytest
import torch
from torch import nn

from sortformer.attention import MultiHeadAttention
from sortformer.layers import ConformerBlock, TransformerBlock
from sortformer.layers.stack import Stack
from sortformer.model import Sortformer
from sortformer.model.encoder import Encoder
from sortformer.model.head import Head
from sortformer.model.permutation import PermutationEncoding
from tests.masks import unpadded
from tests.small_models import SHAPES, small_config, small_model

shapes = pytest.mark.parametrize("shape", SHAPES)


def waves(*samples: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return 0.1 * torch.randn(len(samples), max(samples), generator=generator), torch.tensor(samples)


@shapes
@pytest.mark.parametrize("samples", [160, 799, 1280, 1281, 20_000])
def test_the_output_lies_on_the_grid(shape, samples):
    model = small_model(SHAPES[shape])
    with torch.no_grad():
        output = model(*waves(samples))
    frames = model.config.grid.output_frames(samples)
    assert output.logits.shape == (1, frames, model.config.head.num_slots)
    assert output.emb.shape == (1, frames, model.config.encoder.dim)
    assert output.valid.tolist() == [[True] * frames]
    assert [estimate.shape for estimate in output.estimates] == [output.logits.shape] * len(
        model.config.head.estimate_layers
    )


@shapes
def test_probabilities_are_zero_where_nothing_is_valid(shape):
    with torch.no_grad():
        output = small_model(SHAPES[shape])(*waves(20_000, 9_000))
    assert not output.probs[1, 8:].any()
    assert (output.probs[0] > 0).all()
    assert (output.probs < 1).all()


def test_what_stands_in_padding_does_not_reach_the_probabilities():
    emb = torch.randn(2, 9, small_config().encoder.dim)
    valid = torch.arange(9) < torch.tensor([9, 5])[:, None]
    with torch.no_grad():
        output = small_model(small_config()).forward_frames(emb.masked_fill(~valid[..., None], torch.nan), valid)
    assert torch.isfinite(output.probs).all()
    assert not output.probs[1, 5:].any()


@shapes
def test_training_reaches_every_weight_with_finite_gradients(shape):
    model = small_model(SHAPES[shape]).train()
    output = model(*waves(20_000, 9_000))
    targets = [output.logits, *output.estimates]
    sum(target[output.valid].square().mean() for target in targets).backward()
    wrong = [name for name, p in model.named_parameters() if p.grad is None or not torch.isfinite(p.grad).all()]
    assert not wrong


@shapes
def test_bf16_stays_finite_and_near(shape):
    model = small_model(SHAPES[shape])
    feats, lengths = model.features(*waves(20_000, 9_000))
    with torch.no_grad():
        expected = model.forward_features(feats, lengths)
        with torch.autocast("cpu", torch.bfloat16):
            output = model.forward_features(feats, lengths)
    assert torch.isfinite(output.logits[output.valid]).all()
    assert (output.emb - expected.emb)[output.valid].abs().mean() < 0.1


@shapes
@pytest.mark.parametrize(
    ("dtype", "most"), [(torch.bfloat16, 0.2), (torch.float16, 0.03), (torch.float64, 1e-5)], ids=str
)
def test_it_computes_in_the_precision_of_its_weights(shape, dtype, most):
    model = small_model(SHAPES[shape])
    with torch.no_grad():
        expected = model(*waves(20_000, 9_000))
        output = model.to(dtype)(*waves(20_000, 9_000))
    assert (model.dtype, output.logits.dtype, output.emb.dtype) == (dtype, dtype, dtype)
    for found, wanted in ((output.emb, expected.emb), (output.logits, expected.logits)):
        far = (found.to(wanted) - wanted).abs()[expected.valid]
        assert 0 < far.max() < most


@shapes
def test_the_same_seed_builds_the_same_model(shape):
    def weights(seed: int) -> torch.Tensor:
        torch.manual_seed(seed)
        return torch.cat([parameter.flatten() for parameter in Sortformer(SHAPES[shape]).parameters()])

    torch.testing.assert_close(weights(3), weights(3), atol=0, rtol=0)
    assert not weights(3).equal(weights(4))


def test_a_stream_can_go_in_by_its_pre_encoded_frames():
    model = small_model(small_config())
    feats, lengths = model.features(*waves(20_000))
    with torch.no_grad():
        emb, frames = model.encoder.pre_encode(feats, lengths)
        inside = torch.ones(1, int(frames[0]), dtype=torch.bool)
        torch.testing.assert_close(
            model.forward_frames(emb, inside).logits, model.forward_features(feats, lengths).logits, atol=0, rtol=0
        )


@pytest.mark.parametrize("shape", sorted(set(SHAPES) - {"reversible"}))  # it calls the parts of its blocks directly
def test_hooks_see_what_every_block_gives(shape):
    model, seen = small_model(SHAPES[shape]), set[nn.Module]()
    kinds = (Encoder, Head, Stack, ConformerBlock, TransformerBlock, MultiHeadAttention, PermutationEncoding)
    parts = {part for part in model.modules() if isinstance(part, kinds)}
    for part in parts:
        part.register_forward_hook(lambda part, *_: seen.add(part))
    with torch.no_grad():
        model(*waves(20_000))
    assert seen == parts


def test_the_features_are_not_part_of_the_weights():
    assert not [name for name in small_model(small_config()).state_dict() if name.startswith("features.")]


def test_a_model_without_blocks_still_answers():
    config = small_config({"layers": 0}, {"layers": 0, "estimate_layers": ()})
    with torch.no_grad():
        output = small_model(config)(*waves(5_000))
    assert output.logits.shape == (1, 4, 3)


@pytest.mark.parametrize(("scaled", "factor"), [(True, 4.0), (False, 1.0)])
def test_input_scale_multiplies_by_the_root_of_the_channels(scaled, factor):
    model = small_model(small_config({"layers": 0, "input_scale": scaled}))
    frames = torch.randn(1, 5, 16)
    torch.testing.assert_close(model.encoder(*unpadded(frames)).out, factor * frames)
