"""Audio as it comes: a pause is not the end."""

import os
import threading

from sortformer.audio.live import pcm


def test_a_pause_of_what_does_not_block_is_not_the_end():
    outlet, inlet = os.pipe()
    os.set_blocking(outlet, False)
    with os.fdopen(outlet, "rb") as pipe, os.fdopen(inlet, "wb", buffering=0) as sender:
        sender.write(bytes(2_000))
        blocks = pcm(pipe)
        assert len(next(blocks)) == 1_000
        later = threading.Timer(0.1, lambda: (sender.write(bytes(1_000)), sender.close()))
        later.start()
        assert [len(block) for block in blocks] == [500]
        later.join()
