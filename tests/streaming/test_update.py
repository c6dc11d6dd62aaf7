"""The output of a session after a block."""

import numpy as np

from sortformer.annotation import Turn
from sortformer.streaming import Update


def test_who_speaks_is_whose_turn_reaches_the_last_frame_by_name():
    """An open turn ends 10 ms before the frames do; one that ended 20 ms before them is over."""
    turns = (Turn(0.0, 1.59, "Bea"), Turn(0.2, 1.6, "Ada"), Turn(0.4, 1.58, "Cem"))
    assert Update(0, np.zeros((0, 3)), (), turns, 1.6).speaking == ("Ada", "Bea")
