"""The head: plain with closed gates, sorted with open ones, and invariant to frame order except for arrivals."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from sortformer.config.model import HeadConfig
from sortformer.model.arrival import arrival_frames
from sortformer.model.head import Head
from tests.small_models import small_config

CONFIG = small_config().head
DESIGNS = ["hard", "soft", "softsort", "sinkhorn", "label"]


def build(config: HeadConfig, gate: float = 1.0) -> Head:
    torch.manual_seed(0)
    head = Head(16, config).eval()
    for encoding in head.encodings:
        torch.nn.init.constant_(encoding.gate, gate)
    for estimate in head.estimates:
        torch.nn.init.normal_(estimate.weight, std=1.0)
    return head


def frames(count: int = 60, seed: int = 0) -> Tensor:
    return torch.randn(1, count, 16, generator=torch.Generator().manual_seed(seed))


def frames_without_ties(head: Head) -> Tensor:
    """Let every class speak in a tenth of the frames, and return frames without simultaneous arrivals."""
    for seed in range(100):
        emb = frames(seed=seed)
        for index, estimate in enumerate(head.estimates):
            estimate.bias.data -= run(head, emb)[1][index][0].quantile(0.9, dim=0)
        arrivals = [arrival_frames(estimate.sigmoid())[0].tolist() for estimate in run(head, emb)[1]]
        if all(len(set(row)) == len(row) for row in arrivals):
            return emb
    raise AssertionError("no frames without ties")


def run(head: Head, emb: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
    with torch.no_grad():
        found = head(emb, torch.ones(emb.shape[:2], dtype=torch.bool))
    return found.logits, found.estimates


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("kernel", ["sinusoidal", "learned"])
def test_with_closed_gates_the_model_is_the_plain_one_to_the_bit(design, kernel):
    head = build(replace(CONFIG, permutation=design, kernel=kernel), gate=0.0)
    plain = build(replace(CONFIG, permutation="none"))
    shared = {name: value for name, value in head.state_dict().items() if not name.startswith("encodings.")}
    plain.load_state_dict(shared)
    (logits, estimates), (expected, plain_estimates) = run(head, frames()), run(plain, frames())
    torch.testing.assert_close(logits, expected, atol=0, rtol=0)
    torch.testing.assert_close(estimates, plain_estimates, atol=0, rtol=0)


@pytest.mark.parametrize("design", DESIGNS)
def test_with_open_gates_the_encoding_counts(design):
    head = build(replace(CONFIG, permutation=design))
    opened, _ = run(head, frames())
    for encoding in head.encodings:
        torch.nn.init.zeros_(encoding.gate)
    assert not torch.allclose(run(head, frames())[0], opened, atol=1e-2)


@pytest.mark.parametrize(
    ("design", "unchanged"), [("hard", True), ("soft", True), ("softsort", True), ("sinkhorn", True), ("label", False)]
)
@pytest.mark.parametrize("layer", [0, 1])
def test_relabelling_an_estimates_classes_changes_the_output_of_the_unsorted_control_alone(design, unchanged, layer):
    head = build(replace(CONFIG, permutation=design))
    emb = frames_without_ties(head)  # ties would be broken by index
    logits, estimates = run(head, emb)
    order = [2, 0, 1]
    estimate = head.estimates[layer]
    estimate.weight.data, estimate.bias.data = estimate.weight.data[order], estimate.bias.data[order]
    relabelled, other_estimates = run(head, emb)
    torch.testing.assert_close(other_estimates[layer], estimates[layer][..., order], atol=1e-4, rtol=0)
    assert torch.allclose(relabelled, logits, atol=1e-4) is unchanged


def last_arrival(estimates: tuple[Tensor, ...]) -> int:
    arrivals = torch.cat([arrival_frames(estimate.sigmoid())[0] for estimate in estimates])
    return int(arrivals[arrivals < estimates[0].shape[1]].max())


def test_shuffling_frames_after_the_last_arrival_only_shuffles_the_output():
    head = build(replace(CONFIG, position="none"))
    emb = frames_without_ties(head)
    logits, estimates = run(head, emb)
    kept = last_arrival(estimates) + 1
    assert kept < 55
    order = torch.cat(
        [torch.arange(kept), kept + torch.randperm(60 - kept, generator=torch.Generator().manual_seed(1))]
    )
    shuffled, _ = run(head, emb[:, order])
    torch.testing.assert_close(shuffled, logits[:, order], atol=1e-5, rtol=0)


@pytest.mark.parametrize(("design", "equivariant"), [("none", True), ("label", True), ("hard", False), ("soft", False)])
def test_without_positions_only_arrival_order_knows_of_time(design, equivariant):
    head, emb = build(replace(CONFIG, permutation=design, position="none")), frames()
    logits, _ = run(head, emb)
    backwards, _ = run(head, emb.flip(1))
    assert torch.allclose(backwards.flip(1), logits, atol=1e-5) is equivariant


def test_estimates_come_in_the_order_of_their_layers():
    head = build(replace(CONFIG, estimate_layers=(0, 2), permutation="none"))
    emb = frames()
    _, estimates = run(head, emb)
    assert len(estimates) == 2
    with torch.no_grad():
        torch.testing.assert_close(estimates[0], head.estimates[0](head.input(emb)), atol=0, rtol=0)


@pytest.mark.parametrize("design", [*DESIGNS, "none"])
def test_gradients_reach_every_weight(design):
    head = build(replace(CONFIG, permutation=design, kernel="learned"))
    found = head(frames(), torch.ones(1, 60, dtype=torch.bool))
    (found.logits.square().sum() + sum(estimate.square().sum() for estimate in found.estimates)).backward()
    without = [name for name, p in head.named_parameters() if p.grad is None or not torch.isfinite(p.grad).all()]
    assert not without
