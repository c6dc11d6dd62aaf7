"""Known voices: each speaker gets the nearest name within the threshold, and no name is given twice."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sortformer.enrolled import mean_voice, names_of_voices, no_voice, read_clip, warn_of_likeness
from sortformer.errors import InputError

DIM = 16


def recording(seed: int, voices: int, noise: float = 0.05) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return probabilities (T, K), embeddings (T, DIM) and directions (K, DIM) of voices in turns of 20 frames."""
    rng = np.random.default_rng(seed)
    who = np.repeat(rng.permutation(np.arange(3 * voices) % voices), 20)
    directions = np.linalg.qr(rng.normal(size=(DIM, DIM)))[0][:voices]
    emb = 3.0 * directions[who] + noise * rng.normal(size=(len(who), DIM))
    return np.eye(voices, dtype=np.float32)[who] * 0.9, emb, directions


@given(seed=st.integers(0, 1000), voices=st.integers(1, 5), data=st.data())
@settings(max_examples=50)
def test_voices_that_are_known_get_their_names_and_others_none(seed, voices, data):
    probs, emb, directions = recording(seed, voices)
    known = data.draw(st.permutations([*range(voices), *range(voices, voices + 2)]))[
        : data.draw(st.integers(0, voices))
    ]
    absent = np.linalg.qr(np.random.default_rng(seed + 1).normal(size=(DIM, DIM)))[0]
    absent -= absent @ directions.T @ directions  # people who are not in the recording
    clips = {f"person {k}": directions[k] if k < voices else absent[k] / np.linalg.norm(absent[k]) for k in known}
    assert names_of_voices(probs, emb, clips, 0.4) == {k: f"person {k}" for k in known if k < voices}


def test_one_name_is_given_once_and_to_the_nearest():
    probs, emb, directions = recording(0, 2)
    between = 0.9 * directions[0] + np.sqrt(1 - 0.81) * directions[1]
    assert names_of_voices(probs, emb, {"Ada": between}, 0.4) == {0: "Ada"}
    # Both are nearest to the first speaker, but the total is least if the second clip is of the second speaker.
    close = 0.75 * directions[0] + np.sqrt(1 - 0.75**2) * directions[1]
    assert names_of_voices(probs, emb, {"Bob": close, "Ada": between}, 0.4) == {0: "Ada", 1: "Bob"}


def test_a_name_that_is_left_over_decides_nothing_between_the_others():
    probs, emb, directions = recording(0, 2, noise=0.0)
    ada = 0.8 * directions[0] + 0.6 * directions[1]
    far = 0.5 * directions[0] - 0.5 * directions[1]
    assert names_of_voices(probs, emb, {"Ada": ada, "Bob": far}, 0.45) == {0: "Ada"}


def test_a_clip_is_of_nobody_who_is_as_far_from_it_as_two_voices_are():
    probs, emb, directions = recording(0, 2)
    near = 0.7 * directions[0] + np.sqrt(1 - 0.49) * np.linalg.qr(directions.T, mode="complete")[0][:, -1]
    assert [names_of_voices(probs, emb, {"Ada": near}, distance) for distance in (0.32, 0.28)] == [{0: "Ada"}, {}]


def test_clips_that_sound_like_one_voice_are_named(recwarn):
    first, second, third = np.eye(3)
    near = 0.8 * first + 0.6 * second
    warn_of_likeness("Cem", third, {"Ada": first, "Bob": second}, 0.38, stacklevel=2)
    warn_of_likeness("Bob", near, {"Ada": first}, 0.19, stacklevel=2)
    assert not recwarn
    warn_of_likeness("Bob", near, {"Ada": first, "Cem": third}, 0.21, stacklevel=2)
    (said,) = recwarn
    assert str(said.message).startswith("the clips of 'Ada' and 'Bob' sound like one voice (distance 0.20")
    assert said.filename == __file__


def test_who_is_never_alone_has_no_voice():
    probs, emb, directions = recording(0, 2)
    probs[:, 1] = 0.9
    assert mean_voice(probs, emb, 0) is None
    assert names_of_voices(np.ones_like(probs), emb, {"Ada": directions[0]}, 0.4) == {}
    np.testing.assert_allclose(mean_voice(probs[:, ::-1], 5 * emb, 0), mean_voice(probs[:, ::-1], emb, 0), atol=1e-6)


def test_clips_without_sound_or_too_short_are_refused():
    with pytest.raises(InputError, match=r"clip of 'Ada' lasts 0\.50 s"):
        read_clip("Ada", np.ones(8_000, np.float32) / 2)
    with pytest.raises(InputError, match="no voice was found in the clip of 'Ada'"):
        read_clip("Ada", np.zeros(32_000, np.float32))
    assert len(read_clip("Ada", np.full(16_000, 0.5, np.float32), 8_000)) == 32_000
    assert "Ada" in str(no_voice("Ada"))


def test_of_a_clip_that_is_too_long_little_is_read():
    clip = np.random.default_rng(0).uniform(-0.1, 0.1, 60 * 16_000).astype(np.float32)
    taken = read_clip("Ada", clip, longest_s=15)
    assert 15 < len(taken) / 16_000 < 30
    np.testing.assert_array_equal(taken, clip[: len(taken)])
    assert len(read_clip("Ada", clip)) == len(clip)
