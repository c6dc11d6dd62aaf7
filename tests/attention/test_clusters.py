"""Clusters: centroids follow the frames in training only, and each frame is a member of its cluster exactly once."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sortformer.attention import build_core
from sortformer.attention.clusters import Clusters, members
from sortformer.config.combiners import CombinerRoutingCore
from sortformer.config.cores import RoutingCore
from tests.masks import all_seen


@given(st.integers(1, 5), st.integers(1, 12), st.integers(0, 1000))
def test_every_frame_is_a_member_of_its_cluster_once_and_in_time(number: int, frames: int, seed: int):
    cluster = torch.randint(0, number + 1, (2, 3, frames), generator=torch.Generator().manual_seed(seed))
    seen = torch.full_like(cluster, number)
    for one, (index, there) in enumerate(members(cluster, number)):
        for b in range(2):
            for h in range(3):
                mine = index[b, h][there[b, h]]
                assert mine.tolist() == sorted(set(mine.tolist()))
                assert (seen[b, h, mine] == number).all()
                seen[b, h, mine] = one
    assert torch.equal(seen, cluster)


def test_centroids_move_towards_the_means_of_what_they_are_nearest_to():
    torch.manual_seed(0)
    clusters = Clusters(heads=1, head_dim=2, number=2, decay=0.25)
    clusters.centroids.copy_(torch.tensor([[[1.0, 0.0], [0.0, 1.0]]]))
    frames = torch.tensor([[[[3.0, 0.0], [3.0, 2.0], [9.0, -9.0]]]])
    clusters.follow(frames, torch.tensor([[True, True, False]]))
    moved = 0.25 * torch.tensor([1.0, 0.0]) + 0.75 * torch.tensor([3.0, 1.0])
    torch.testing.assert_close(clusters.centroids[0, 0], torch.nn.functional.normalize(moved, dim=0))
    torch.testing.assert_close(clusters.centroids[0, 1], torch.tensor([0.0, 1.0]))


@pytest.mark.parametrize(
    "config", [RoutingCore(), RoutingCore(causal=True), CombinerRoutingCore()], ids=lambda c: f"{c.kind}-{c.causal}"
)
def test_centroids_follow_in_training_alone(config):
    core = build_core(replace(config, clusters=3, decay=0.5), 2, 4)
    frames = torch.randn(3, 1, 2, 9, 4, generator=torch.Generator().manual_seed(0))
    before = {key: value.clone() for key, value in core.state_dict().items()}
    core.eval()(*all_seen(*frames))
    torch.testing.assert_close(core.state_dict(), before, atol=0, rtol=0)
    core.train()(*all_seen(*frames))
    assert not torch.allclose(core.state_dict()["clusters.centroids"], before["clusters.centroids"])
