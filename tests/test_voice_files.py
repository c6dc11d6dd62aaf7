"""Files of stored voices: read back they are the same, and what is none is refused."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from sortformer import Diarizer, InputError, PostprocessConfig, VoiceStore
from tests.puppets import Puppet, clip, of
from tests.small_models import small_config, small_model
from tests.tiny import tiny_model


def test_saved_and_loaded_it_is_the_same(puppet: Puppet, tmp_path: Path):
    store = of(puppet, "ada", "bob", neighbours=3, stranger=float("inf"))
    store.save(tmp_path / "voices.safetensors")
    again = VoiceStore.load(tmp_path / "voices.safetensors", puppet)
    assert (again.names, again.memory.config) == (store.names, store.memory.config)
    assert torch.equal(again.memory.key, store.memory.key)
    assert torch.equal(again.memory.label, store.memory.label)
    with pytest.raises(InputError, match="exists already"):
        store.save(tmp_path / "voices.safetensors")
    VoiceStore(puppet).save(tmp_path / "voices.safetensors", overwrite=True)
    assert VoiceStore.load(tmp_path / "voices.safetensors", puppet).add("ada", clip("ada")).names == ("ada",)


def test_a_loaded_store_does_not_change_with_its_file(puppet: Puppet, tmp_path: Path):
    """Nor does it hold the file, which on Windows could not be replaced by a store with one more voice."""
    path = tmp_path / "voices.safetensors"
    store = of(puppet, "ada", "bob")
    store.save(path)
    again = VoiceStore.load(path, puppet)
    path.write_bytes(bytes(path.stat().st_size))  # over what is there, as `cp` writes
    assert torch.equal(again.memory.key, store.memory.key)


def test_voices_of_another_encoder_are_refused_and_of_another_head_are_not(puppet: Puppet, tmp_path: Path):
    of(puppet, "ada").save(tmp_path / "voices.safetensors")
    other, features = small_model(small_config(), seed=1), small_model(small_config(normalize="fixed"))
    features.encoder.load_state_dict(puppet.model.encoder.state_dict())
    for model in (other, features):
        with pytest.raises(InputError, match=r"voices\.safetensors were stored with another model: load that one"):
            VoiceStore.load(tmp_path / "voices.safetensors", Diarizer(model, PostprocessConfig(), "other"))
    other.encoder.load_state_dict(puppet.model.encoder.state_dict())
    assert VoiceStore.load(tmp_path / "voices.safetensors", Diarizer(other, PostprocessConfig(), "tuned")).names == (
        "ada",
    )


def test_what_is_no_store_is_refused_in_a_sentence(puppet: Puppet, tmp_path: Path):
    path = tmp_path / "voices.safetensors"
    with pytest.raises(InputError, match="no such file"):
        VoiceStore.load(path, puppet)
    of(puppet, "ada").save(path)
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(InputError, match="damaged, or not a voice store"):
        VoiceStore.load(path, puppet)
    weights = tmp_path / "model" / "model.safetensors"
    tiny_model(weights.parent)
    with pytest.raises(InputError, match="is not a voice store"):
        VoiceStore.load(weights, puppet)
    VoiceStore(puppet, of(puppet, "ada").memory, ("ada", "bob")).save(path, overwrite=True)
    with pytest.raises(InputError, match="frames and names do not match"):
        VoiceStore.load(path, puppet)
    for names in (5, ("ada", None)):
        replace(of(puppet, "ada"), names=names).save(path, overwrite=True)
        with pytest.raises(InputError, match="is damaged: store the voices again"):
            VoiceStore.load(path, puppet)


@pytest.mark.parametrize(
    "change",
    [
        {"key": torch.zeros(29, 4)},
        {"key": torch.zeros(30)},
        {"key": torch.zeros(())},
        {"key": torch.full((30, 4), torch.nan)},
        {"key": torch.zeros(30, 4, dtype=torch.float16)},
        {"label": torch.zeros(30)},
        {"label": torch.zeros(30, 1, dtype=torch.int64)},
    ],
)
def test_frames_that_no_store_has_are_refused(puppet: Puppet, tmp_path: Path, change: dict[str, torch.Tensor]):
    path = tmp_path / "voices.safetensors"
    of(puppet, "ada").save(path)
    with safe_open(path, framework="pt") as file:
        described, tensors = file.metadata(), {name: file.get_tensor(name).clone() for name in ("key", "label")}
    save_file(tensors | change, path, described)
    with pytest.raises(InputError, match="is damaged, its frames and names do not match: store the voices again"):
        VoiceStore.load(path, puppet)


@pytest.mark.parametrize("names", [("ada", "speaker_0"), ("ada", "ada"), ("ada", "bob\nspoke")])
def test_names_that_no_store_has_are_refused(puppet: Puppet, tmp_path: Path, names: tuple[str, ...]):
    path = tmp_path / "voices.safetensors"
    replace(of(puppet, "ada", "bob"), names=names).save(path)
    with pytest.raises(InputError, match="is damaged: store the voices again"):
        VoiceStore.load(path, puppet)
