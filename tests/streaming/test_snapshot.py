"""Snapshots of sessions: nothing is lost, what does not fit is refused, and the bytes are those of the state alone."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from sortformer.errors import InputError
from sortformer.streaming import Session, stream_probabilities
from sortformer.streaming.snapshot import from_bytes, plain, to_bytes
from tests.marks import MAXIMUM_MAY_BE_REACHED
from tests.streaming.tiny import CONFIG, MODEL, WAVE, tiny_model

pytestmark = MAXIMUM_MAY_BE_REACHED

EXPECTED = stream_probabilities(Session(MODEL, CONFIG), [WAVE])


def test_a_part_of_a_tensor_does_not_bring_the_whole():
    whole = torch.arange(100_000.0)
    data = to_bytes({"state": plain((whole[:10],))})
    assert len(data) < whole.nbytes / 10
    assert torch.equal(from_bytes(data)["state"][0], whole[:10])


def test_snapshots_keep_what_a_failed_push_had_found(session, fail_once):
    fail_once("forward_frames", 1, RuntimeError)
    with pytest.raises(RuntimeError):
        session.push(WAVE)
    np.testing.assert_array_equal(stream_probabilities(Session.restore(MODEL, session.snapshot()), []), EXPECTED)


def test_a_snapshot_of_an_ended_stream_has_ended(session):
    session.push(WAVE)
    diarization = session.finish()
    restored = Session.restore(MODEL, session.snapshot())
    with pytest.raises(InputError, match="has ended"):
        restored.push(WAVE)
    assert restored.finish() == diarization


def test_a_restored_session_knows_where_it_is(session):
    session.push(WAVE[:20_000])
    restored = Session.restore(MODEL, session.snapshot())
    assert (restored.num_frames, restored.duration_s) == (session.num_frames, session.duration_s)
    update = restored.push(WAVE[20_000:])
    assert update.first_frame == session.num_frames > 0
    assert update.time_s == restored.num_frames * restored.step_s


def test_a_session_whose_config_has_numpys_integers_can_be_restored():
    session = Session(MODEL, replace(CONFIG, chunk_frames=np.int64(CONFIG.chunk_frames)))
    session.push(WAVE)
    assert Session.restore(MODEL, session.snapshot()).finish() == session.finish()


@pytest.mark.parametrize("kind", [bytearray, memoryview])
def test_a_snapshot_may_come_in_whatever_holds_bytes(session, kind):
    session.push(WAVE)
    assert Session.restore(MODEL, kind(session.snapshot())).finish() == session.finish()


def test_snapshots_that_do_not_fit_are_refused(session):
    data = session.snapshot()
    for broken in (None, b"", b"nonsense", b"abc"):
        with pytest.raises(InputError, match="these bytes are not a snapshot of a session"):
            Session.restore(MODEL, broken)
    for cut in (100, len(data) // 2):
        with pytest.raises(InputError, match="the snapshot is damaged"):
            Session.restore(MODEL, data[:cut])
    for place in range(0, len(data), len(data) // 50):
        with pytest.raises(InputError, match="snapshot"):
            Session.restore(MODEL, data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :])
    with pytest.raises(InputError, match=r"a Sortformer is needed, such as diarizer\.model, got str"):
        Session.restore("tiny", data)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match="another model"):
        Session.restore(tiny_model(num_slots=4), data)
    with pytest.raises(InputError, match="another model"):
        Session.restore(tiny_model(seed=1), data)


def test_a_snapshot_of_another_version_is_not_called_something_else(session):
    data = session.snapshot()
    head = data[: data.index(b"/") + 1]
    assert head == b"sortformer-session/"
    with pytest.raises(InputError, match=r"from another version of the toolkit .*: restore it with that version"):
        Session.restore(MODEL, head + b"9\n" + data[len(head) :])


def test_a_model_that_was_loaded_for_inference_has_snapshots():
    with torch.inference_mode():
        model = tiny_model(seed=3)
        session = Session(model, CONFIG)
        session.push(WAVE)
        assert Session.restore(model, session.snapshot()).num_frames == session.num_frames
