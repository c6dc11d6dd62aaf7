"""The hooks of positions: without a mechanism none of them has an effect."""

import torch

from sortformer.attention.softmax import attend
from sortformer.position import Places, Position
from tests.draws import draw

HEADS, DIM, FRAMES = 2, 4, 5
ALL = torch.ones(1, 1, 1, 1, dtype=torch.bool)


def test_no_hook_of_the_base_class_has_an_effect():
    position, places = Position(), Places.whole(FRAMES)
    query, key, value = draw(0, 3, 2, HEADS, FRAMES, DIM).unbind()
    assert position.embed(query, places.key) is query
    assert position.rotate(query, key, places) == (query, key)
    assert position.codes(places) is None
    bias, factor = position.bias(query, places), position.factor(places)
    assert bias.shape == factor.shape == (1, 1, FRAMES, FRAMES)
    assert torch.equal(attend(query, key, value, ALL, bias, None), attend(query, key, value, ALL, None, None))
    rectified = attend(query, key, value, ALL, None, factor)
    assert rectified.dtype == query.dtype
    assert torch.equal(rectified, attend(query, key, value, ALL, None, torch.ones(1, 1, 1, 1, dtype=query.dtype)))
