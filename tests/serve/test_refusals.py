"""A minute of a voice is enough, and may be sent."""

import pytest

from sortformer.errors import InputError
from sortformer.serve.refusals import check_clip


def test_a_clip_may_last_a_minute():
    check_clip("Ada", 60 * 16_000)
    with pytest.raises(InputError, match="the clip of 'Ada' is longer than 60 s: a few seconds are enough"):
        check_clip("Ada", 60 * 16_000 + 1)
