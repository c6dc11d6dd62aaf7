"""Sessions of a model with a state in its layers: inputs, refusals, and that all APIs lead to them."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch

from sortformer import checkpoint
from sortformer.config.attention import AttentionConfig
from sortformer.config.memories import TransformerXLMemory
from sortformer.config.stream import StreamConfig
from sortformer.diarizer import Diarizer
from sortformer.errors import ConfigError, InputError
from sortformer.model import Sortformer
from sortformer.streaming import Chunk, Session, stream_memory, stream_probabilities
from sortformer.streaming.layer_memory import LayerMemory
from sortformer.streaming.rows import shapes, side_by_side
from sortformer.streaming.snapshot import plain
from sortformer.streaming.step import SpeakerCache
from tests.small_models import small_config
from tests.streaming.tiny import REMEMBERING, noise, remembering_model, tiny_model

MODEL = remembering_model("compressive")
CONFIG = StreamConfig.by_memory(5)
WAVE, CLIP = noise(40_000, seed=3), noise(30_000, seed=7)


EXPECTED = stream_probabilities(Session(MODEL, CONFIG), [WAVE])


@pytest.mark.parametrize("kind", REMEMBERING)
@pytest.mark.parametrize(("dtype", "most"), [(torch.bfloat16, 0.05), (torch.float64, 1e-5)], ids=str)
def test_a_stream_has_the_precision_of_its_model(kind, dtype, most):
    model = remembering_model(kind)
    expected = stream_probabilities(Session(model, CONFIG), [WAVE])
    found = stream_probabilities(Session(model.to(dtype), CONFIG), [WAVE])
    assert found.dtype == np.float32
    assert 0 < np.abs(found - expected).mean() < most


def test_the_model_decides_what_remembers():
    assert isinstance(stream_memory(MODEL, CONFIG), LayerMemory)
    assert isinstance(stream_memory(tiny_model(), StreamConfig(5)), SpeakerCache)


@pytest.mark.parametrize(
    "config",
    [
        StreamConfig(5),
        replace(CONFIG, right_context_frames=1),
        replace(CONFIG, left_context_frames=1),
        replace(CONFIG, fifo_frames=3),
        replace(CONFIG, margin_frames=0),
    ],
)
def test_a_cache_or_contexts_are_refused(config):
    with pytest.raises(ConfigError, match=r"supports no speaker cache, FIFO or context: .*StreamConfig\.by_memory"):
        Session(MODEL, config)


def test_a_model_that_remembers_only_in_part_is_refused_with_the_reason():
    attention = AttentionConfig(memory=TransformerXLMemory(frames=5, chunk_frames=5))
    model = Sortformer(small_config(head={"attention": (attention,)})).eval()
    with pytest.raises(ConfigError, match="layer 1 of the encoder has no state"):
        Session(model, CONFIG)


def test_the_clip_of_a_voice_is_heard_as_if_it_had_come_first():
    session, whole = Session(MODEL, CONFIG), Session(MODEL, CONFIG)
    slot = session.enroll("chair", CLIP)
    stream_probabilities(whole, [CLIP])
    ours, theirs = session._position.memory, whole._position.memory
    assert shapes(ours) == shapes(theirs)
    torch.testing.assert_close(ours.head.arrivals[0].frames, theirs.head.arrivals[0].frames)
    torch.testing.assert_close(*(plain(state.encoder[0].attention.memory) for state in (ours, theirs)))
    restored = Session.restore(MODEL, session.snapshot())
    np.testing.assert_array_equal(stream_probabilities(session, [WAVE]), stream_probabilities(restored, [WAVE]))
    assert session._position.turns.slots[slot].name == "chair"


def test_one_speaker_cannot_be_taken_out_and_the_stream_goes_on():
    session = Session(MODEL, CONFIG)
    early = session.push(WAVE[:20_000]).probs
    with pytest.raises(InputError, match=r"one speaker cannot be removed: reset\(\) the stream"):
        session.reset_slot(0)
    np.testing.assert_array_equal(np.concatenate([early, stream_probabilities(session, [WAVE[20_000:]])]), EXPECTED)
    session.reset()
    np.testing.assert_array_equal(stream_probabilities(session, [WAVE]), EXPECTED)


def test_a_failure_in_the_middle_of_a_step_loses_nothing(fail_once):
    session = Session(MODEL, CONFIG)
    fail_once("step", 2, MemoryError)
    with pytest.raises(MemoryError):
        session.push(WAVE)
    assert session.num_frames == 2 * CONFIG.chunk_frames
    np.testing.assert_array_equal(stream_probabilities(session, []), EXPECTED)


def test_rows_of_a_step_are_equally_long():
    memory = stream_memory(MODEL, CONFIG)
    nothing = torch.zeros(2, dtype=torch.int64)
    with pytest.raises(ValueError, match="chunks of the same length"):
        memory.step(memory.start(2), Chunk(torch.zeros(2, 5, 16), nothing, torch.tensor([5, 4]), nothing))


def test_a_state_is_made_of_tensors():
    with pytest.raises(TypeError, match="must consist of tensors, got int"):
        side_by_side([(1,), (2,)])


def test_diarizer_and_saved_model_stream_by_it(tmp_path):
    checkpoint.save(tmp_path, MODEL)
    diarizer = Diarizer.load(tmp_path, "cpu")
    assert list(diarizer.presets) == ["0.4s"]
    session = diarizer.stream()
    np.testing.assert_array_equal(stream_probabilities(session, [WAVE]), EXPECTED)
    whole = diarizer.probabilities(WAVE, sample_rate=16_000).data
    np.testing.assert_allclose(
        diarizer.probabilities(WAVE, sample_rate=16_000, preset="0.4s").data, EXPECTED, atol=1e-6
    )
    np.testing.assert_allclose(whole, EXPECTED, atol=2e-4)
    with warnings.catch_warnings(action="ignore"):
        named = diarizer(WAVE, sample_rate=16_000, enroll={"chair": CLIP})
    assert set(named.speakers) <= {"chair", *(f"speaker_{number}" for number in range(3))}
