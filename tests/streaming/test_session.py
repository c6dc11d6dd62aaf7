"""Sessions: every misuse is refused with a reason, and nothing is lost."""

import dataclasses
import re
import warnings

import numpy as np
import pytest
import torch

from sortformer.config.clustering import ClusteringConfig
from sortformer.config.model import EncoderConfig, FeatureConfig, ModelConfig
from sortformer.config.postprocess import PostprocessConfig
from sortformer.config.stream import STREAM_PRESETS, SpeakerCacheConfig, StreamConfig
from sortformer.errors import ConfigError, InputError
from sortformer.model import Sortformer
from sortformer.model.identity import identity
from sortformer.streaming import Session, SessionPool, StreamState, stream_probabilities
from sortformer.streaming.forget import forget
from tests.small_models import small_config, small_model
from tests.streaming.tiny import hearing_model, noise, normalized, tiny_model

MODEL = tiny_model()
CONFIG = StreamConfig(5, 2, fifo_frames=6, update_period_frames=5, speaker_cache=SpeakerCacheConfig(14, 1))
WAVE = noise(40_000, seed=3)


@pytest.fixture
def session():
    return Session(MODEL, CONFIG, uri="meeting")


EXPECTED = stream_probabilities(Session(MODEL, CONFIG), [WAVE])


def test_updates_say_where_they_are(session):
    first, second = session.push(WAVE[:20_000]), session.push(WAVE[20_000:])
    assert (first.first_frame, second.first_frame) == (0, len(first.probs))
    assert first.time_s == len(first.probs) * session.step_s
    assert session.duration_s == 2.5
    assert repr(session) == f"Session(uri='meeting', duration_s=2.50, names={session.names})"
    np.testing.assert_array_equal(np.concatenate([first.probs, second.probs, session.flush().probs]), EXPECTED)
    assert session.finish().uri == "meeting"


def test_updates_can_be_compared_and_are_printed_in_a_line(session):
    updates = [session.push(WAVE[:20_000]), session.push(WAVE[20_000:])]
    assert [updates.index(each) for each in updates] == [0, 1]
    assert dataclasses.replace(updates[0]) != updates[0]  # as with arrays, of which it holds one: by identity
    assert len({*updates}) == 2
    assert re.fullmatch(
        r"Update\(time_s=\d+\.\d\d, probs=\(\d+, 3\), turns=\d+, tentative=\d+, speaking=\(.*\)\)", repr(updates[0])
    )


def test_chunks_wait_for_what_is_missing_and_for_no_more(session):
    for start in range(0, len(WAVE), 100):
        missing, update = session.missing_samples, session.push(WAVE[start : start + 100])
        assert (len(update.probs) > 0) == (missing <= 100)


@pytest.mark.parametrize(
    "pieces",
    [
        [np.zeros(0, np.float32), WAVE, np.zeros((0, 2), np.float32), []],
        [WAVE[:1], *np.array_split(WAVE[1:], 333), WAVE[:0]],
        [torch.from_numpy(WAVE[:7]), WAVE[7:].astype(np.float64)],
        [np.repeat(WAVE[:, None], 2, axis=1)],
        [np.repeat(WAVE[:64, None], 2, axis=1), np.repeat(WAVE[64:65, None], 2, axis=1), WAVE[65:]],
    ],
    ids=["nothing", "single samples", "other types", "two channels", "few samples of two channels"],
)
def test_blocks_of_any_length_and_type_are_taken(session, pieces):
    np.testing.assert_array_equal(stream_probabilities(session, pieces), EXPECTED)


def test_ten_minutes_in_one_push_are_those_of_many():
    wave = np.resize(WAVE, 10**7)
    one, many = (Session(MODEL, STREAM_PRESETS["30s"]) for _ in range(2))
    found = one.push(wave).probs
    np.testing.assert_array_equal(found, np.concatenate([many.push(piece).probs for piece in np.array_split(wave, 9)]))
    assert len(found) == 340 * ((10**7 // 1_280 - 35) // 340)


def test_what_a_push_costs_does_not_grow_with_what_waits(session):
    class Counted(list):
        """A list that counts accesses to its members."""

        looks = 0

        def __iter__(self):
            Counted.looks += len(self)
            return super().__iter__()

    session._waiting = Counted()
    for sample in WAVE[:2_000]:
        session.push([sample])
    assert session.duration_s == 0.125
    assert not session.num_frames
    assert Counted.looks == 0


@pytest.mark.parametrize("value", [np.nan, np.inf, 20_000.0])
def test_a_block_with_an_impossible_sample_is_refused_whole(session, value):
    session.push(WAVE[:10_000])
    bad = WAVE[10_000:].copy()
    bad[123] = value
    with pytest.raises(InputError, match=r"the block pushed to meeting at 0\.62 s"):
        session.push(bad)
    assert session.duration_s == 10_000 / 16_000
    rest = stream_probabilities(session, [WAVE[10_000:]])
    np.testing.assert_array_equal(rest, EXPECTED[-len(rest) :])


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_bytes_are_no_samples_of_8_bits(session, kind):
    sent = (WAVE * 8_192).astype("<i2").tobytes()
    with pytest.raises(InputError, match=r"pass numpy\.frombuffer\(data, 'int16'\)"):
        session.push(kind(sent))
    session.push(np.frombuffer(kind(sent), "int16"))
    session.push(memoryview(WAVE))
    assert session.duration_s == 5.0


def test_another_sample_rate_is_refused(session):
    session.push(WAVE, sample_rate=16_000)
    with pytest.raises(InputError, match=r"16000 Hz, got 8000: .*soxr\.ResampleStream"):
        session.push(WAVE, sample_rate=8_000)


def test_what_is_no_array_and_no_slot_is_refused(session):
    with pytest.raises(InputError, match="cannot be read as an array"):
        session.push([[1.0, 2.0], [3.0]])
    for slot in (-1, 3, 1.0, "1", None, np.array([1]), torch.tensor(1.0)):
        with pytest.raises(InputError, match="slot must be between 0 and 2"):
            session.reset_slot(slot)
    assert session.duration_s == 0


def test_a_stream_ends_once(session):
    session.push(WAVE)
    diarization = session.finish()
    assert session.finish() == diarization
    for call in (lambda: session.push(WAVE), session.flush, lambda: session.reset_slot(0)):
        with pytest.raises(InputError, match=r"has ended: call reset\(\)"):
            call()
    session.reset()
    np.testing.assert_array_equal(stream_probabilities(session, [WAVE]), EXPECTED)
    assert session.finish() == diarization


@pytest.mark.parametrize("uri", [5, "", None])
def test_an_id_that_a_result_cannot_have_is_refused_before_anything_is_heard(uri):
    with pytest.raises(InputError, match="must be a non-empty string"):
        Session(MODEL, CONFIG, uri=uri)


def test_an_empty_stream_is_an_empty_diarization(session):
    assert session.push([]).probs.shape == (0, 3)
    assert session.finish().turns == ()


@pytest.mark.parametrize("failure", [RuntimeError, KeyboardInterrupt, MemoryError])
def test_a_failure_in_the_middle_of_a_step_loses_nothing(session, monkeypatch, failure):
    whole, calls = MODEL.forward_frames, 0

    def failing(*arguments):
        nonlocal calls
        calls += 1
        if calls == 3:
            raise failure
        return whole(*arguments)

    monkeypatch.setattr(MODEL, "forward_frames", failing)
    with pytest.raises(failure):
        session.push(WAVE)
    assert session.num_frames == 2 * CONFIG.chunk_frames
    np.testing.assert_array_equal(stream_probabilities(session, []), EXPECTED)


def test_snapshots_keep_what_a_failed_push_had_found(session, monkeypatch):
    whole = MODEL.forward_frames
    monkeypatch.setattr(MODEL, "forward_frames", _failing_after(1, whole))
    with pytest.raises(RuntimeError):
        session.push(WAVE)
    monkeypatch.setattr(MODEL, "forward_frames", whole)
    np.testing.assert_array_equal(stream_probabilities(Session.restore(MODEL, session.snapshot()), []), EXPECTED)


def test_a_reset_forgets_what_a_failed_push_had_found(session, monkeypatch):
    monkeypatch.setattr(MODEL, "forward_frames", _failing_after(1, MODEL.forward_frames))
    with pytest.raises(RuntimeError):
        session.push(WAVE)
    monkeypatch.undo()
    session.reset()
    np.testing.assert_array_equal(stream_probabilities(session, [WAVE]), EXPECTED)


def _failing_after(good, forward):
    results = iter([forward] * good)

    def call(*arguments):
        function = next(results, None)
        if function is None:
            raise RuntimeError
        return function(*arguments)

    return call


def test_a_snapshot_of_an_ended_stream_has_ended(session):
    session.push(WAVE)
    diarization = session.finish()
    restored = Session.restore(MODEL, session.snapshot())
    assert restored.finish() == diarization
    with pytest.raises(InputError, match="has ended"):
        restored.push(WAVE)


def test_a_restored_session_knows_where_it_is(session):
    session.push(WAVE[:20_000])
    restored = Session.restore(MODEL, session.snapshot())
    assert (restored.num_frames, restored.duration_s) == (session.num_frames, session.duration_s)
    update = restored.push(WAVE[20_000:])
    assert update.first_frame == session.num_frames > 0
    assert update.time_s == restored.num_frames * restored.step_s


def test_a_finer_output_has_all_its_frames_in_any_cut():
    model = small_model(small_config(head={"upsampling": 8, "estimate_layers": ()}))
    whole = stream_probabilities(Session(model, CONFIG), [WAVE])
    assert len(whole) == model.config.grid.output_frames(len(WAVE))
    np.testing.assert_array_equal(stream_probabilities(Session(model, CONFIG), np.array_split(WAVE, 7)), whole)


def test_a_stream_in_half_precision_is_near():
    with torch.autocast("cpu", torch.bfloat16):
        found = stream_probabilities(Session(MODEL, CONFIG), [WAVE])
    assert found.dtype == np.float32
    assert 0 < np.abs(found - EXPECTED).mean() < 0.05


@pytest.mark.parametrize("clustering", [None, ClusteringConfig(0.4)])
@pytest.mark.parametrize(
    ("dtype", "most"), [(torch.bfloat16, 0.05), (torch.float16, 0.01), (torch.float64, 1e-5)], ids=str
)
def test_a_stream_has_the_precision_of_its_model(dtype, most, clustering):
    config = dataclasses.replace(CONFIG, clustering=clustering)
    expected = stream_probabilities(Session(tiny_model(), config), [WAVE])
    session = Session(tiny_model().to(dtype), config)
    first = session.push(WAVE[:20_000]).probs
    restored = Session.restore(session.model, session.snapshot())
    found = np.concatenate([first, stream_probabilities(restored, [WAVE[20_000:]])])
    assert found.dtype == np.float32
    assert 0 < np.abs(found - expected).mean() < most


@pytest.mark.parametrize("kind", [bytearray, memoryview])
def test_a_snapshot_may_come_in_whatever_holds_bytes(session, kind):
    session.push(WAVE)
    assert Session.restore(MODEL, kind(session.snapshot())).finish() == session.finish()


def test_snapshots_that_do_not_fit_are_refused(session):
    data = session.snapshot()
    for broken in (None, b"", b"nonsense", b"abc", data[:100], data[: len(data) // 2]):
        with pytest.raises(InputError, match="snapshot"):
            Session.restore(MODEL, broken)
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


def test_a_model_that_was_loaded_for_inference_has_snapshots():
    with torch.inference_mode():
        model = tiny_model(seed=3)
        session = Session(model, CONFIG)
        session.push(WAVE)
        assert Session.restore(model, session.snapshot()).num_frames == session.num_frames


def test_a_model_that_needs_the_whole_recording_is_refused():
    config = ModelConfig(FeatureConfig(num_mels=16, normalize="per_feature"), EncoderConfig(subsampling_channels=4))
    with pytest.raises(ConfigError, match="normalises its features over the whole recording"):
        Session(Sortformer(config).eval(), CONFIG)


def test_a_cache_too_small_for_the_slots_is_refused():
    with pytest.raises(ConfigError, match="too small for 3 slots: it needs 6"):
        Session(MODEL, dataclasses.replace(CONFIG, speaker_cache=SpeakerCacheConfig(5, 1)))


@pytest.mark.parametrize(
    ("model", "config", "told"),
    [
        (None, CONFIG, "a Sortformer is needed, such as diarizer.model, got NoneType"),
        (CONFIG, MODEL, "a Sortformer is needed, such as diarizer.model, got StreamConfig"),
        (MODEL, "1s", "a stream needs a StreamConfig, such as one of diarizer.presets, got '1s'"),
        (MODEL, None, "a stream needs a StreamConfig, such as one of diarizer.presets, got None"),
    ],
)
@pytest.mark.parametrize("start", [Session, lambda *given: SessionPool(*given).open()])
def test_what_is_no_model_or_no_configuration_is_refused(start, model, config, told: str):
    with pytest.raises(InputError, match=told):
        start(model, config)


def test_a_model_in_training_mode_is_refused():
    with pytest.raises(InputError, match="training mode"):
        Session(tiny_model().train(), CONFIG)


def test_memory_does_not_grow_with_the_stream():
    sizes = []
    session = Session(MODEL, CONFIG)
    for _ in range(30):
        session.push(WAVE[:8_000])
        sizes.append(len(session.snapshot()) - 90 * len(session._turns))
    assert max(sizes[20:]) < 1.1 * max(sizes[5:15])


def test_nothing_that_was_processed_stays_in_memory():
    session = Session(normalized("fixed"), CONFIG)
    session.push(noise(400_000))
    front = session._position.front
    arrays = [*session._waiting, front.level.begun, front.level.every.begun]
    assert sum((array if array.base is None else array.base).nbytes for array in arrays) < 4 * 16_000
    for tensor in (front.features.tail, front.mel):
        assert tensor.untyped_storage().nbytes() == tensor.nbytes


def test_a_reset_slot_is_somebody_new():
    session = Session(MODEL, CONFIG, PostprocessConfig())
    before = session.push(WAVE)
    slot = int(before.probs.mean(axis=0).argmax())
    known = {turn.speaker for turn in (*before.turns, *before.tentative)}
    session.reset_slot(slot)
    memory = session._position.memory
    assert sorted(session._position.channels) == [0, 1, 2]
    assert session._position.channels[slot] == 2
    assert not memory.cache.probs[..., 2].any()
    assert not memory.fifo.probs[..., 2].any()
    session.push(noise(60_000, seed=4))
    names = {turn.speaker for turn in session.finish()}
    assert len(names - known) >= 1


def test_names_say_whose_slot_to_reset():
    session = Session(hearing_model(-3.0, -3.0, 3.0), CONFIG)
    assert session.names == (None, None, None)
    slot = session.enroll("Ada", WAVE)
    session.push(WAVE)
    assert (slot, session.names) == (2, (None, None, "Ada"))
    assert Session.restore(session.model, session.snapshot()).names == session.names
    session.reset_slot(session.names.index("Ada"))
    assert session.names == (None, None, None)
    session.push(WAVE)
    assert session.finish().speakers == ("Ada", "speaker_0")
    assert session.names == (None, None, "speaker_0")


def test_the_turns_of_a_reset_slot_come_with_the_next_update():
    session = Session(hearing_model(3.0, 3.0, -3.0), CONFIG)
    session.push(WAVE)
    session.reset_slot(0)
    restored = Session.restore(session.model, session.snapshot())
    end = round(session.num_frames * session.step_s - 0.01, 2)
    for each in (session, restored):
        assert [(turn.start, turn.end, turn.speaker) for turn in each.push([]).turns] == [(0, end, "speaker_0")]
        assert each.push([]).turns == ()
    session.reset_slot(1)
    session.reset()
    assert session.push([]).turns == ()


def test_whoever_stays_keeps_the_slot_when_others_leave():
    session = Session(hearing_model(3.0, -3.0, -3.0), CONFIG)
    for slot in range(2):  # remaining slots move up a channel, and the first channel is the active one
        session.reset_slot(slot)
    session = Session.restore(session.model, session.snapshot())
    speaking = session.push(WAVE).probs > 0.5
    assert speaking.all(axis=0).tolist() == speaking.any(axis=0).tolist() == [False, False, True]


@pytest.mark.parametrize("samples", [32_000, 32_200, 33_279])
def test_the_turns_of_the_updates_are_those_of_the_end(samples):
    model = tiny_model()
    with torch.no_grad():
        model.head.out.weight.zero_()
        model.head.out.bias.fill_(3.0)
    session = Session(model, CONFIG, PostprocessConfig(pad_off_s=0.3))
    given = [*session.push(noise(samples)).turns, *session.flush().turns]
    assert sorted(given) == list(session.finish())
    assert max(turn.end for turn in given) <= samples / 16_000


@pytest.mark.parametrize("slot", [0, 1, 2])
def test_a_reset_slot_is_free_again_where_not_all_may_speak(slot):
    model = tiny_model()
    with torch.no_grad():
        model.head.out.weight.zero_()
        model.head.out.bias.fill_(3.0)
    session = Session(model, dataclasses.replace(CONFIG, max_speakers=2))
    session.push(WAVE)
    session.reset_slot(slot)
    probs = session.push(noise(60_000, seed=4)).probs
    assert (probs[:, :2] > 0.9).all()
    assert not probs[:, 2:].any()
    memory = session._position.memory
    assert not memory.cache.probs[..., 2:].any()
    assert not memory.fifo.probs[..., 2:].any()
    assert len(session.finish().speakers) == (2 if slot == 2 else 3)


def test_what_may_not_speak_is_heard_in_what_may():
    """A voice split over two slots is one speaker, the first slot's, also where the others may not speak."""
    model = tiny_model()
    with torch.no_grad():
        model.head.out.weight.zero_()
        model.head.out.bias.copy_(torch.tensor([0.1, -0.1, -3.0]))
    least_error = PostprocessConfig(decision="least_error")
    free, one = (Session(model, dataclasses.replace(CONFIG, max_speakers=most), least_error) for most in (None, 1))
    for session in (free, one):
        session.push(WAVE)
    assert one.finish().turns == free.finish().turns != ()


def test_a_slot_that_does_not_exist_is_refused(session):
    with pytest.raises(InputError, match="slot must be between 0 and 2, got 3"):
        session.reset_slot(3)


def test_forgetting_a_channel_drops_its_frames_and_moves_the_later_ones_up(session):
    session.push(noise(60_000, seed=5))
    memory = session._position.memory
    after = forget(memory, 0)
    for before, found in ((memory.cache, after.cache), (memory.fifo, after.fifo)):
        count = int(before.length)
        old = before.probs[0, :count]
        kept = old[:, 0] <= 0.5
        assert 0 < kept.sum() < len(old)
        assert int(found.length) == kept.sum()
        expected = torch.cat([old[kept][:, 1:], torch.zeros(int(kept.sum()), 1)], dim=1)
        assert torch.equal(found.probs[0, : len(expected)], expected)
        assert torch.equal(found.emb[0, : len(expected)], before.emb[0, :count][kept])
        assert not found.emb[0, len(expected) :].any()


def test_where_every_slot_has_a_speaker_there_may_be_more():
    model = tiny_model()
    with torch.no_grad():
        model.head.out.weight.zero_()
        model.head.out.bias.fill_(3.0)
    session, told = (Session(model, dataclasses.replace(CONFIG, max_speakers=most), uri="hall") for most in (None, 3))
    session.push(WAVE)
    told.push(WAVE)
    with pytest.warns(UserWarning, match="hall has 3 speakers, the maximum, and any further one is merged") as caught:
        assert len(session.finish().speakers) == len(told.finish().speakers) == 3
    assert len(caught) == 1


@pytest.mark.parametrize(
    ("wave", "words"),
    [
        (0.001 * WAVE, "it is quiet, no sample exceeds -6[0-9] dBFS"),
        ((WAVE * 32_767).astype(np.int16).astype(np.int32), "it is silent"),  # read as samples of 32 bits
    ],
)
def test_that_nobody_was_found_to_speak_is_said_and_how_quiet_it_was(wave, words):
    session = Session(hearing_model(-9.0, -9.0), CONFIG, uri="hall")
    session.push(wave)
    with pytest.warns(UserWarning, match=f"no speech found in hall: {words}"):
        session.finish()


def test_of_a_stream_of_nothing_nothing_is_said():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Session(MODEL, CONFIG).finish().turns == ()


def test_the_state_is_a_value():
    assert {field.name for field in dataclasses.fields(StreamState)} >= {"cache", "fifo", "compressed"}
    with pytest.raises(dataclasses.FrozenInstanceError):
        Session(MODEL, CONFIG)._position.memory.cache = None
