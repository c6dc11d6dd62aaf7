"""Merged stores of voices: as one store of all clips, each frame once."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortformer import InputError, PostprocessConfig, VoiceStore
from sortformer.config.labels import LabelConfig
from sortformer.memory import LabelMemory
from tests.puppets import DIRECTIONS, Puppet, clip, of
from tests.small_models import small_config, small_model

CLIPS = st.lists(st.tuples(st.sampled_from(sorted(DIRECTIONS)), st.integers(13, 40)), unique=True, max_size=6)


def filled(puppet: Puppet, clips: list[tuple[str, int]]) -> VoiceStore:
    store = VoiceStore(puppet)
    for name, frames in clips:
        store = store.add(name, clip(name, frames))
    return store


def held(store: VoiceStore) -> list[tuple[str, bytes]]:
    """Return the name and the content of each frame, in an order of their own."""
    labels = store.memory.label.tolist()
    return sorted(
        (store.names[label], key.numpy().tobytes()) for label, key in zip(labels, store.memory.key, strict=True)
    )


@given(clips=CLIPS, first=st.integers(0, 6))
def test_merged_stores_hold_what_one_store_of_all_clips_does(puppet: Puppet, clips: list[tuple[str, int]], first: int):
    one, other, whole = filled(puppet, clips[:first]), filled(puppet, clips[first:]), filled(puppet, clips)
    before = held(one), held(other)
    merged = one.merge(other)
    assert (merged.names, held(merged)) == (whole.names, held(whole))
    assert held(other.merge(one)) == held(whole)
    assert (held(one), held(other)) == before


@given(clips=CLIPS, cuts=st.tuples(st.integers(0, 6), st.integers(0, 6)))
def test_what_merged_stores_have_in_common_is_stored_once(puppet: Puppet, clips: list[tuple[str, int]], cuts):
    end, start = sorted(cuts, reverse=True)
    one, other, whole = filled(puppet, clips[:end]), filled(puppet, clips[start:]), filled(puppet, clips)
    assert held(one.merge(other)) == held(whole)
    assert held(one.merge(one)) == held(one)
    assert held(one.merge(other).merge(one)) == held(one.merge(other.merge(one))) == held(whole)


def test_a_store_keeps_its_thresholds_and_its_spelling_when_another_is_merged(puppet: Puppet, tmp_path: Path):
    ours = VoiceStore(puppet, LabelMemory(LabelConfig(neighbours=3))).add("Ann B", clip("ada"))
    of(puppet, "eve").add("Ann_B", clip("ada", 40)).save(tmp_path / "voices")
    merged = ours.merge(VoiceStore.load(tmp_path / "voices", puppet))
    assert (merged.names, merged.memory.config) == (("Ann B", "eve"), ours.memory.config)
    assert merged.memory.label.bincount().tolist() == [70, 30]
    meeting = np.concatenate([clip("eve"), clip("ada")])
    assert merged.diarize(meeting).speakers == ("eve", "Ann B")
    assert merged.without("eve").diarize(meeting).speakers == ("speaker_0", "Ann B")


def test_stores_of_different_encoders_are_not_merged(puppet: Puppet):
    other = Puppet(small_model(small_config(), seed=1), PostprocessConfig(), "other")
    with pytest.raises(InputError, match="made with different models, so their voices cannot be compared"):
        of(puppet, "ada").merge(of(other, "ada"))
    other.model.encoder.load_state_dict(puppet.model.encoder.state_dict())
    assert of(puppet, "ada").merge(of(other, "bob")).names == ("ada", "bob")


def test_what_is_merged_is_a_store(puppet: Puppet):
    with pytest.raises(InputError, match=r"another voice store is needed, got str: VoiceStore\.load\(path, diarizer\)"):
        of(puppet, "ada").merge("voices.safetensors")  # pyright: ignore[reportArgumentType]
