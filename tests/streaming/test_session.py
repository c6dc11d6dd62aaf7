"""Sessions: every misuse is refused with a reason, and nothing is lost."""

import dataclasses
import re

import numpy as np
import pytest
import torch

from sortformer.annotation import Origin, TimeAxis
from sortformer.audio.signal import INAUDIBLE
from sortformer.config.clustering import ClusteringConfig
from sortformer.config.postprocess import PostprocessConfig
from sortformer.config.stream import STREAM_PRESETS, SpeakerCacheConfig
from sortformer.errors import ConfigError, InputError
from sortformer.streaming import Session, SessionPool, StreamState, stream_probabilities
from tests.audio.makers import chirp, write
from tests.marks import MAXIMUM_MAY_BE_REACHED
from tests.small_models import small_config, small_model
from tests.streaming.tiny import CONFIG, MODEL, WAVE, hearing_model, noise, normalized, tiny_model

pytestmark = MAXIMUM_MAY_BE_REACHED

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
    calls = (
        lambda: session.push(WAVE),
        session.flush,
        lambda: session.reset_slot(0),
        lambda: session.enroll("Ada", WAVE),
    )
    for call in calls:
        with pytest.raises(InputError, match=r"has ended: call reset\(\)"):
            call()
    session.reset()
    np.testing.assert_array_equal(stream_probabilities(session, [WAVE]), EXPECTED)
    assert session.finish() == diarization


@pytest.mark.parametrize("uri", [5, "", None])
def test_an_id_that_a_result_cannot_have_is_refused_before_anything_is_heard(uri):
    with pytest.raises(InputError, match="must be a non-empty string"):
        Session(MODEL, CONFIG, uri=uri)


def test_an_origin_that_a_result_cannot_have_is_refused_before_anything_is_heard():
    with pytest.raises(InputError, match="must be an Origin, got 'tiny'"):
        Session(MODEL, CONFIG, origin="tiny")  # pyright: ignore[reportArgumentType]


def test_the_result_names_its_origin_and_its_frames():
    session = Session(
        MODEL, dataclasses.replace(CONFIG, max_speakers=3), origin=Origin("tiny", "0.1", {"preset": "1s"})
    )
    frames = len(stream_probabilities(session, [WAVE]))
    assert session.finish().origin == Origin("tiny", "0.1", {"preset": "1s"}, TimeAxis(0.0, 0.08, frames), ())


@pytest.mark.filterwarnings("ignore::sortformer.SortformerWarning")
def test_the_result_has_the_warnings_of_its_stream_and_of_its_clips_and_names_no_folder(tmp_path):
    path = write(tmp_path / "ann.wav", chirp(3, 16_000), 16_000)
    path.write_bytes(path.read_bytes()[:-40_000])
    session = Session(MODEL, CONFIG, uri="hall", origin=Origin("tiny"))
    session.enroll("Ann", path)
    session = Session.restore(MODEL, session.snapshot())
    session.push(np.zeros(16_000, np.float32))
    for _ in range(2):
        damaged, silent = getattr(session.finish().origin, "warnings", ())
        assert damaged.startswith("ann.wav is damaged or truncated")
        assert silent == "no speech found in hall: it is silent"
    session.reset()
    assert getattr(session.finish().origin, "warnings", None) == ()


def test_an_empty_stream_is_an_empty_diarization(session):
    assert session.push([]).probs.shape == (0, 3)
    assert session.finish().turns == ()


@pytest.mark.parametrize("failure", [RuntimeError, KeyboardInterrupt, MemoryError])
def test_a_failure_in_the_middle_of_a_step_loses_nothing(session, fail_once, failure):
    fail_once("forward_frames", 2, failure)
    with pytest.raises(failure):
        session.push(WAVE)
    assert session.num_frames == 2 * CONFIG.chunk_frames
    np.testing.assert_array_equal(stream_probabilities(session, []), EXPECTED)


def test_a_reset_forgets_what_a_failed_push_had_found(session, fail_once):
    fail_once("forward_frames", 1, RuntimeError)
    with pytest.raises(RuntimeError):
        session.push(WAVE)
    session.reset()
    np.testing.assert_array_equal(stream_probabilities(session, [WAVE]), EXPECTED)


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
        sizes.append(len(session.snapshot()) - 90 * len(session._final.turns))
    assert max(sizes[20:]) < 1.1 * max(sizes[5:15])


def test_nothing_that_was_processed_stays_in_memory():
    session = Session(normalized("fixed"), CONFIG)
    session.push(noise(400_000))
    front = session._position.front
    arrays = [*session._waiting, front.level.begun, front.level.every.begun]
    assert sum((array if array.base is None else array.base).nbytes for array in arrays) < 4 * 16_000
    for tensor in (front.features.tail, front.mel):
        assert tensor.untyped_storage().nbytes() == tensor.nbytes


@pytest.mark.parametrize("samples", [32_000, 32_200, 33_279])
def test_the_turns_of_the_updates_are_those_of_the_end(samples):
    model = hearing_model(3.0, 3.0, 3.0)
    session = Session(model, CONFIG, PostprocessConfig(pad_off_s=0.3))
    given = [*session.push(noise(samples)).turns, *session.flush().turns]
    assert sorted(given) == list(session.finish())
    assert max(turn.end for turn in given) <= samples / 16_000


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
    with pytest.warns(UserWarning, match=f"no speech found in hall: {words}") as caught:
        session.finish()
    assert caught[0].filename == __file__  # the line of the caller


@pytest.mark.parametrize(("peak", "heard"), [(0.9 * INAUDIBLE, False), (1.1 * INAUDIBLE, True)])
def test_what_nobody_can_hear_is_no_speech_whatever_the_model_says(peak, heard):
    session = Session(hearing_model(3.0, 3.0, 3.0), CONFIG)
    assert session.push(WAVE * (peak / np.abs(WAVE).max())).probs.any() == heard


@pytest.mark.filterwarnings("error")
def test_of_a_stream_of_nothing_nothing_is_said():
    assert Session(MODEL, CONFIG).finish().turns == ()


def test_the_state_is_a_value():
    assert {field.name for field in dataclasses.fields(StreamState)} >= {"cache", "fifo", "compressed"}
    with pytest.raises(dataclasses.FrozenInstanceError):
        Session(MODEL, CONFIG)._position.memory.cache = None
