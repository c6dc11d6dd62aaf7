"""Embeddings and estimates: voices as directions of single-speaker frames, and estimates by layer."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from sortformer import ConfigError, Diarization, InputError, PostprocessConfig, Turn
from sortformer.estimates import Embeddings, LayerEstimate, Probabilities, layer_estimates
from sortformer.grid import FrameGrid

FRAMES = 50


def heard(emb: np.ndarray) -> Embeddings:
    return Embeddings(emb, FrameGrid(), Probabilities(np.zeros((FRAMES, 2), np.float32), 0.08, FRAMES * 0.08))


def test_probabilities_amount_to_turns_by_any_thresholds():
    probs = Probabilities(np.repeat([[0.0, 0.6], [0.9, 0.0]], 25, axis=0), 0.08, 3.9, uri="meeting")
    found = probs.turns(PostprocessConfig(0.5), names={1: "Ada"})
    assert [(turn.start, turn.end, turn.speaker) for turn in found] == [(0, 2, "Ada"), (2, 3.9, "speaker_0")]
    assert (found.uri, found.duration) == ("meeting", 3.9)
    assert [turn.start for turn in probs.turns(PostprocessConfig(0.7))] == [2]
    assert [turn.start for turn in probs.turns(PostprocessConfig(0.5), slots=[1])] == [0]
    both = Probabilities(np.full((25, 2), 0.9), 0.08, 2.0)
    assert [(turn.start, turn.end) for turn in both.turns(PostprocessConfig(0.5))] == [(0, 1.99), (0, 1.99)]
    assert len(both.turns(PostprocessConfig(0.5), exclusive=True).turns) == 1
    assert probs.turns("none") == probs.turns(PostprocessConfig())
    with pytest.raises(ConfigError, match="there is no post-processing 'x'"):
        probs.turns("x")
    with pytest.raises(InputError, match="must be a PostprocessConfig, or a name, got NoneType"):
        probs.turns(None)  # type: ignore[arg-type]


def test_their_texts_are_short_whatever_their_length():
    emb = heard(np.zeros((FRAMES, 3), np.float32))
    assert repr(emb) == f"Embeddings(uri='audio', data=({FRAMES}, 3))"
    assert repr(emb.output) == f"Probabilities(uri='audio', duration=4.00, data=({FRAMES}, 2), step_s=0.08)"
    data, ranks = np.zeros((FRAMES, 2), np.float32), np.arange(2)
    layers = [LayerEstimate(layer, data, ranks, ranks, data, sure) for layer, sure in ((1, None), (3, 0.98765))]
    assert repr(layers) == (
        f"[LayerEstimate(layer=1, data=({FRAMES}, 2), confidence=None), "
        f"LayerEstimate(layer=3, data=({FRAMES}, 2), confidence=0.9877)]"
    )


def test_a_voice_is_the_direction_of_the_frames_of_one_speaker_alone():
    emb = np.zeros((FRAMES, 3), np.float32)
    emb[:20, 0], emb[20:25, 1], emb[25:, 2] = 5.0, 9.0, np.linspace(1, 100, 25)  # however long each one is
    turns = (Turn(0, 2, "a"), Turn(1.6, 4, "b"), Turn(1.7, 1.9, "never alone"))
    voices = heard(emb).voices(Diarization(turns, 4.0))
    np.testing.assert_allclose(voices["a"], [1, 0, 0], atol=1e-6)
    np.testing.assert_allclose(voices["b"], [0, 0, 1], atol=1e-6)
    assert list(voices) == ["a", "b"]


def test_voices_have_length_one():
    emb = np.random.default_rng(1).normal(size=(FRAMES, 4)).astype(np.float32)
    (voice,) = heard(emb).voices(Diarization((Turn(0, 3, "a"),), 4.0)).values()
    assert np.linalg.norm(voice) == pytest.approx(1)
    assert voice.dtype == np.float32


def test_a_loud_frame_says_no_more_about_a_voice_than_a_quiet_one():
    emb = np.zeros((FRAMES, 2), np.float32)
    emb[:25, 0], emb[25:, 1] = 1.0, 100.0
    (voice,) = heard(emb).voices(Diarization((Turn(0, 4, "a"),), 4.0)).values()
    np.testing.assert_allclose(voice, np.sqrt([0.5, 0.5]), atol=1e-6)


def test_what_is_no_diarization_has_no_voices():
    with pytest.raises(InputError, match=r"got Annotation; Diarization\.from_pyannote converts"):
        heard(np.ones((FRAMES, 3), np.float32)).voices(Diarization((), 4.0).to_pyannote())  # type: ignore[arg-type]


def test_without_turns_there_are_no_voices():
    assert heard(np.ones((FRAMES, 3), np.float32)).voices(Diarization((), 4.0)) == {}


@pytest.mark.parametrize("duration", [6.0, 2.0])
def test_turns_of_another_recording_are_refused(duration):
    with pytest.raises(InputError, match=rf"belong to a recording of {duration:.2f} s, but this one lasts 4.00 s"):
        heard(np.ones((FRAMES, 3), np.float32)).voices(Diarization((), duration))


@pytest.mark.parametrize("duration", [3.6, 4.4])
def test_a_duration_that_is_a_little_off_is_taken(duration):
    alone = heard(np.ones((FRAMES, 3), np.float32)).alone(Diarization((Turn(0, 0.8, "a"),), duration))
    np.testing.assert_array_equal(alone["a"], np.arange(10))


def test_estimates_that_say_the_same_in_another_order_agree():
    said = torch.tensor([[[5.0, -50.0], [5.0, -50.0], [-50.0, 5.0]]])
    output: Any = SimpleNamespace(estimates=(said.flip(2), said), valid=torch.ones(1, 3, dtype=torch.bool))
    first, second = layer_estimates(output, (1, 2))
    assert first.confidence is None
    assert second.confidence == pytest.approx(1)
    np.testing.assert_array_equal(first.ranks, [1, 0])
    np.testing.assert_array_equal(first.ordered, second.ordered)


def test_of_those_who_never_speak_the_ranks_are_those_of_the_order():
    said = torch.tensor([[[-5.0, 5.0, -3.0], [-5.0, 5.0, -3.0]]])
    output: Any = SimpleNamespace(estimates=(said,), valid=torch.ones(1, 2, dtype=torch.bool))
    (found,) = layer_estimates(output, (1,))
    np.testing.assert_array_equal(found.ranks, [2, 0, 1])
    np.testing.assert_array_equal(found.ordered[:, found.ranks], found.data)
