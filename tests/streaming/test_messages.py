"""Messages say when it is in whole milliseconds, and who speaks then."""

import numpy as np

from sortformer.annotation import Turn
from sortformer.config.stream import StreamConfig
from sortformer.streaming import Session, Update
from sortformer.streaming.messages import update_message
from tests.streaming.tiny import tiny_model


def test_a_time_has_no_more_digits_than_it_needs():
    session = Session(tiny_model(), StreamConfig(5))
    update = Update(0, np.zeros((0, 3), np.float32), (), (Turn(0.0, 2.8, "speaker_0"),), 35 * 0.08)  # 2.80...03
    said = update_message(session, update)
    assert (said["type"], said["time_s"], said["speaking"]) == ("update", 2.8, ["speaker_0"])
