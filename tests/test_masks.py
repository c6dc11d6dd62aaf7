"""Masks of the valid frames of a batch."""

import torch

from sortformer.masks import length_mask


def test_a_length_mask_counts_up_to_the_length():
    mask = length_mask(torch.tensor([0, 2, 3]), 3)
    assert mask.tolist() == [[False, False, False], [True, True, False], [True, True, True]]
