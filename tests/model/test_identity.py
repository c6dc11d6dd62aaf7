"""The identity of a model: a number that changes with any weight."""

import copy

import torch

from sortformer.model.identity import identity
from tests.streaming.tiny import tiny_model


def test_weights_are_looked_at_once_for_all_that_is_moved_and_again_when_they_change(monkeypatch):
    model, looked = tiny_model(seed=2), []
    monkeypatch.setattr(torch.Tensor, "numpy", lambda tensor, own=torch.Tensor.numpy: looked.append(0) or own(tensor))
    first = identity(model, model.config)
    count = len(looked)
    assert identity(model, model.config) == first
    assert len(looked) == count > 0
    next(model.parameters()).data.mul_(1.5)
    assert identity(model, model.config) != first
    first = identity(model, model.config)
    weights = model.head.out.weight.data
    weights.copy_(weights.flip(0))  # their sum stays
    assert identity(model, model.config) != first
    fresh = tiny_model(seed=2)
    fresh.load_state_dict(model.state_dict())
    assert identity(model, model.config) == identity(fresh, fresh.config)
    wide = torch.nn.Linear(1000, 1000)
    first = identity(wide)
    wide.weight.data[0, 0] += 0.01  # negligible in a sum weighted by position
    assert identity(wide) != first


def test_half_precision_has_an_identity_of_its_own():
    model = tiny_model().bfloat16()
    assert identity(model) == identity(copy.deepcopy(model)) != identity(tiny_model())
