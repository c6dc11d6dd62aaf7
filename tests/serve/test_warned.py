"""What is said to users in a block is kept for one of them; everything else goes where it went."""

import warnings

from sortformer.audio.decoder import AudioWarning
from sortformer.serve.warned import warned


def test_behind_a_block_warnings_go_where_they_went():
    with warnings.catch_warnings(record=True, action="always") as elsewhere:
        for _ in range(2):
            with warned() as kept:
                warnings.warn("mine", stacklevel=1)
        warnings.warn("of others", stacklevel=1)
    assert kept == ["mine"]
    assert [str(each.message) for each in elsewhere] == ["of others"]


def test_what_is_said_to_developers_is_not_for_users():
    with warnings.catch_warnings(record=True, action="always") as elsewhere, warned() as kept:
        warnings.warn("a call of the past", DeprecationWarning, stacklevel=1)
        warnings.warn("mine", stacklevel=1)
        warnings.warn("damaged", AudioWarning, stacklevel=1)
    assert kept == ["mine", "damaged"]
    assert [str(each.message) for each in elsewhere] == ["a call of the past"]
