"""A batch of conversations can be taken apart, put together, moved and made as loud as others."""

from dataclasses import fields

import torch

from sortformer.simulate import Conversations


def drawn(rows: int = 3) -> Conversations:
    wave = 0.1 * torch.randn(rows, 32_000, generator=torch.Generator().manual_seed(0))
    active = torch.rand(rows, 25, 2, generator=torch.Generator().manual_seed(1)).round()
    return Conversations(
        wave, active, torch.tensor([32_000, 20_000, 24_000])[:rows], torch.arange(2 * rows).view(-1, 2)
    )


def test_rows_that_are_split_and_joined_are_the_batch():
    batch = drawn()
    again = Conversations.joined(batch.split())
    assert [len(row.wave) for row in batch.split()] == [1, 1, 1]
    assert all(getattr(again, field.name).equal(getattr(batch, field.name)) for field in fields(batch))


def test_all_of_a_batch_moves_to_a_device():
    moved = drawn().to("meta")
    assert all(getattr(moved, field.name).is_meta for field in fields(moved))


def test_a_batch_is_as_it_was_after_another_is_made_as_loud_as_others():
    batch = drawn()
    before = batch.wave.clone()
    assert not batch.alike_loud().wave.equal(before)
    assert batch.wave.equal(before)
