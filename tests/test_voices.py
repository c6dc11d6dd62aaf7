"""Stored voices: known ones get their name, others keep their label."""

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sortformer import Diarization, Diarizer, InputError, PostprocessConfig, SortformerWarning, Turn, VoiceStore
from sortformer.annotation import to_pyannote
from sortformer.estimates import Embeddings
from tests.audio.makers import chirp, write
from tests.puppets import DIRECTIONS, Puppet, clip, of
from tests.small_models import small_config, small_model
from tests.tiny import tiny_model

RATE = 16_000


class StereoPuppet(Puppet):
    """A puppet that needs the sample rate of its input, and the channel to use."""

    def embeddings(self, audio, *, sample_rate, channel, **_how) -> Embeddings:
        assert sample_rate == RATE
        return super().embeddings(np.asarray(audio)[:, channel - 1])


@pytest.fixture(scope="module")
def diarizer(tmp_path_factory: pytest.TempPathFactory) -> Diarizer:
    return Diarizer.load(tiny_model(tmp_path_factory.mktemp("voices"), speaking=1), device="cpu")


@st.composite
def meetings(draw) -> np.ndarray:
    """Turns of half a second or more of up to three voices, with silence in between."""
    parts = draw(st.lists(st.tuples(st.integers(0, 2), st.integers(6, 20), st.integers(1, 8)), min_size=1, max_size=8))
    return np.concatenate([np.repeat((who, -1), (spoken, silent)) for who, spoken, silent in parts])


@given(who=meetings(), stored=st.sets(st.sampled_from(sorted(DIRECTIONS)), min_size=1))
def test_who_is_stored_is_named_and_nobody_else(puppet: Puppet, who: np.ndarray, stored: set[str]):
    store = of(puppet, *sorted(stored))
    said = store.diarize(who)
    heard = {name for name, number in DIRECTIONS.items() if number in who}
    assert {name for name in said.speakers if not name.startswith("speaker_")} == stored & heard
    assert len(said.speakers) == len(heard)
    for turn in said:
        middle = who[int((turn.start + turn.end) / 2 / 0.08)]
        assert middle == DIRECTIONS.get(turn.speaker, middle)


@given(who=meetings(), lam=st.floats(0, 1))
def test_the_memory_adds_no_turn_where_it_agrees(puppet: Puppet, who: np.ndarray, lam: float):
    store = of(puppet, *DIRECTIONS)
    assert [(turn.start, turn.end, turn.speaker) for turn in store.diarize(who, lam=lam)] == [
        (turn.start, turn.end, turn.speaker) for turn in store.diarize(who)
    ]


def test_the_memory_decides_where_the_model_is_wrong(puppet: Puppet):
    who = np.repeat((0, -1, 1, -1), (20, 5, 20, 5))
    store = of(puppet, "ada")
    found = puppet.embeddings(who)
    found.data[30:40] = found.data[:10]  # these frames of the second slot sound like the first
    puppet_says = found.output.data.copy()
    fooled = Fixed(puppet.model, PostprocessConfig(), "fixed")
    object.__setattr__(fooled, "found", found)
    fooled_store = VoiceStore(fooled, store.memory, store.names)
    alone = [turn for turn in fooled_store.diarize(who) if turn.speaker == "ada"]
    mixed = [turn for turn in fooled_store.diarize(who, lam=0.8) if turn.speaker == "ada"]
    assert [turn.end for turn in alone] == [1.6]
    assert [(turn.start, turn.end) for turn in mixed] == [(0.0, 1.6), (2.4, 3.2)]
    np.testing.assert_array_equal(found.output.data, puppet_says)  # it was not modified


class Fixed(Puppet):
    """A diarizer with constant output."""

    found: Embeddings

    def embeddings(self, _audio, **_how) -> Embeddings:
        return self.found


def test_no_two_speakers_get_one_name(puppet: Puppet):
    who = np.repeat((0, -1, 1), (20, 5, 20))
    given_turns = Diarization((Turn(0, 0.8, "speaker_0"), Turn(0.8, 1.6, "speaker_1"), Turn(2, 3.6, "speaker_2")), 3.6)
    named = of(puppet, "ada", "bob").name(given_turns, who)
    assert set(named.speakers) in ({"ada", "speaker_0", "bob"}, {"ada", "speaker_1", "bob"})
    assert named.turns[2].speaker == "bob"


def test_turns_by_hand_are_named_and_learned(puppet: Puppet):
    who = np.repeat((0, 1, 2), (25, 25, 25))
    turns = (Turn(0, 2, "speaker_0"), Turn(2, 4, "Bob"), Turn(4, 6, "speaker_1"))
    store = VoiceStore(puppet).learn(Diarization(turns, 6.0), who)
    assert store.names == ("Bob",)
    assert (store.memory.label == 0).all()
    assert len(store.memory.key) == 25
    again = store.name(Diarization((Turn(0, 2, "a"), Turn(2, 4, "b"), Turn(4, 6, "c")), 6.0), who)
    assert again.speakers == ("a", "Bob", "c")
    with pytest.raises(InputError, match="already has a speaker called 'Bob'"):
        store.name(Diarization(turns, 6.0), who)


def test_turns_of_another_recording_are_refused(puppet: Puppet):
    other = Diarization((Turn(0, 2, "Ada"),), 6.0)
    store = of(puppet, "bob")
    for use in (store.name, store.learn):
        with pytest.raises(InputError, match=r"belong to a recording of 6.00 s, but this one lasts 4.00 s"):
            use(other, clip("ada", 50))


def test_a_store_is_shown_in_a_line(puppet: Puppet):
    assert re.fullmatch(r"VoiceStore\(names=\('ada',\), frames=\d+\)", repr(of(puppet, "ada")))


def test_whoever_has_no_name_of_their_own_is_not_learned_and_that_is_said(puppet: Puppet):
    found = Diarization((Turn(0.0, 4.0, "speaker_0"),), 4.0, "talk")
    with pytest.warns(UserWarning, match="no speaker of talk has a name"):
        assert VoiceStore(puppet).learn(found, clip("ada", 50)).names == ()


def test_a_name_that_no_clip_may_have_is_not_learned(puppet: Puppet):
    with pytest.raises(InputError, match="the name ' Ada' begins or ends with white space"):
        VoiceStore(puppet).learn(Diarization((Turn(0, 2, " Ada"),), 2.4), clip("ada"))


def test_where_two_speak_nothing_is_learned(puppet: Puppet):
    turns = (Turn(0, 2, "Ada"), Turn(1, 3, "Bob"))
    store = VoiceStore(puppet).learn(Diarization(turns, 4.0), clip("ada", 50))
    assert store.names == ("Ada", "Bob")
    assert store.memory.label.bincount().tolist() == [12, 13]  # frames of which one speaker alone covers half or more


def test_who_is_never_alone_keeps_the_label(puppet: Puppet):
    found = Diarization((Turn(0, 2, "speaker_0"), Turn(0.8, 1.6, "speaker_1")), 2.4)
    assert of(puppet, "ada").name(found, clip("ada")).speakers == ("ada", "speaker_1")


def test_a_certainty_that_nobody_reaches_names_nobody(puppet: Puppet):
    doubtful = of(puppet, "ada").add("bob", clip("ada"))
    assert doubtful.diarize(clip("ada"), confidence=0.9).speakers == ("speaker_0",)
    assert doubtful.diarize(clip("ada"), confidence=0.1).speakers in {("ada",), ("bob",)}


def test_who_threw_the_store_with_the_voice_away_is_told(puppet: Puppet):
    store = VoiceStore(puppet)
    store.add("ada", clip("ada"))
    with pytest.warns(UserWarning, match="add and learn return a new store"):
        assert store.diarize(clip("ada")).speakers == ("speaker_0",)


def test_without_strangers_the_only_voice_is_everybodys(puppet: Puppet):
    assert of(puppet, "ada", stranger=float("inf")).diarize(clip("eve")).speakers == ("ada",)
    assert of(puppet, "ada").diarize(clip("eve")).speakers == ("speaker_0",)


def test_names_that_differ_in_white_space_alone_are_one(puppet: Puppet):
    store = VoiceStore(puppet).add("Ann B", clip("ada"))
    known = store.learn(Diarization((Turn(0, 2, "Ann_B"), Turn(2, 2.4, "speaker 1")), 2.4), clip("ada"))
    assert (known.names, len(known.memory.label)) == (("Ann B",), 55)
    assert known.name(Diarization((Turn(0, 2, "speaker_0"),), 2.4), clip("ada")).speakers == ("Ann B",)
    with pytest.raises(InputError, match="already has a speaker called 'Ann_B'"):
        known.name(Diarization((Turn(0, 2, "Ann_B"),), 2.4), clip("ada"))


def test_more_clips_of_a_name_join(puppet: Puppet):
    store = of(puppet, "ada", "bob").add("ada", clip("eve"))
    assert store.names == ("ada", "bob")
    assert store.diarize(clip("eve")).speakers == ("ada",)


def test_whatever_hears_a_recording_hears_the_channel_that_is_meant(puppet: Puppet):
    call, ours = np.stack([clip("bob"), clip("ada")], axis=1), {"sample_rate": RATE, "channel": 2}
    nobody = VoiceStore(StereoPuppet(puppet.model, PostprocessConfig(), "stereo"))
    store = nobody.add("ada", call, **ours)
    named = store.diarize(call, **ours)
    assert (named.speakers, store.diarize(call, sample_rate=RATE, channel=1).speakers) == (("ada",), ("speaker_0",))
    assert store.name(named.relabel({"ada": "speaker_0"}), call, **ours).speakers == ("ada",)
    assert nobody.learn(named, call, **ours).diarize(call, **ours).speakers == ("ada",)


def test_a_clip_is_of_who_speaks_most_in_it(puppet: Puppet):
    talk = np.concatenate([clip("bob", 15), clip("ada", 40), clip("eve", 15)])
    store = VoiceStore(puppet).add("ada", talk)
    assert store.diarize(talk).speakers == ("speaker_0", "ada", "speaker_1")


def test_one_at_a_time_is_heard_where_that_is_asked_for(puppet: Puppet):
    found = puppet.embeddings(np.repeat((0, 1, -1), (25, 20, 5)))
    found.output.data[20:30, :2] = (0.7, 0.9)
    both = Fixed(puppet.model, PostprocessConfig(), "both")
    object.__setattr__(both, "found", found)
    store = VoiceStore(both, of(puppet, "ada").memory, ("ada",))
    assert [(turn.start, turn.end) for turn in store.diarize("talk.wav")] == [(0.0, 2.4), (1.6, 3.6)]
    turns = [(turn.start, turn.end, turn.speaker) for turn in store.diarize("talk.wav", exclusive=True)]
    assert turns == [(0.0, 1.6, "ada"), (1.6, 3.6, "speaker_0")]


def test_whoever_is_forgotten_is_a_stranger_again(puppet: Puppet, tmp_path: Path):
    store = of(puppet, "ada", "bob", "eve").without("bob")
    assert store.names == ("ada", "eve")
    meeting = np.concatenate([clip(name) for name in ("ada", "bob", "eve")])
    assert set(store.diarize(meeting).speakers) == {"ada", "speaker_0", "eve"}
    store.save(tmp_path / "voices")
    assert VoiceStore.load(tmp_path / "voices", puppet).names == ("ada", "eve")
    with pytest.raises(InputError, match="no voice called 'bob'; it has 'ada', 'eve'"):
        store.without("bob")
    with pytest.raises(InputError, match="no voice called 3"):
        store.without(3)  # pyright: ignore[reportArgumentType]
    assert of(puppet, "ada").without("ada").names == ()


@pytest.mark.parametrize("name", ["Ada  Lu", "Ada_Lu", "Ada\u2009Lu", "Jose\u0301"])
def test_whoever_is_forgotten_may_be_written_as_when_added(puppet: Puppet, name: str):
    store = VoiceStore(puppet).add("Ada Lu", clip("ada")).add("Jos\u00e9", clip("bob"))
    assert len(store.add(name, clip("eve")).names) == 2
    assert len(store.without(name).names) == 1


@pytest.mark.parametrize("name", ["", "speaker_3", "7"])
def test_a_name_that_is_none_is_refused_before_the_clip_is_read(puppet: Puppet, name: str):
    with pytest.raises(InputError, match="choose another"):
        VoiceStore(puppet).add(name, "absent.wav")


@pytest.mark.parametrize("clip", [np.full(30, -1), np.full(10, 0)], ids=["silent", "short"])
def test_a_clip_without_a_voice_is_refused(puppet: Puppet, clip: np.ndarray):
    with pytest.raises(InputError, match=r"has less than 1 s of one voice alone: .* of 'Ada'"):
        VoiceStore(puppet).add("Ada", clip)


def test_a_store_is_made_with_a_diarizer(puppet: Puppet):
    for other in ("voices.safetensors", puppet.model):
        with pytest.raises(InputError, match=r"needs a Diarizer, got \w+: VoiceStore\.load\(path, diarizer\) reads"):
            VoiceStore(other)  # pyright: ignore[reportArgumentType]
        with pytest.raises(InputError, match="needs a Diarizer, got"):
            VoiceStore.load(other, "voices.safetensors")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan"), None, "0.5", 80])
def test_a_share_that_is_none_is_refused(puppet: Puppet, share: Any):
    store, found = VoiceStore(puppet), Diarization((), 2.4)
    with pytest.raises(InputError, match="lam, the weight of the memory, must be a number from 0 to 1, got"):
        store.diarize(clip("ada"), lam=share)
    for take in (store.diarize, partial(store.name, found)):
        with pytest.raises(InputError, match="confidence must be a number from 0 to 1, got"):
            take(clip("ada"), confidence=share)


def test_numbers_of_numpy_can_be_written_with_the_result(puppet: Puppet):
    store = VoiceStore(StereoPuppet(puppet.model, puppet.postprocess, "puppet")).add(
        "Ada", clip("ada")[:, None], sample_rate=RATE, channel=1
    )
    named = store.diarize(
        clip("ada")[:, None],
        lam=np.float32(0.25),  # pyright: ignore[reportArgumentType]
        confidence=np.float32(0.5),  # pyright: ignore[reportArgumentType]
        sample_rate=RATE,
        channel=np.int64(1),  # pyright: ignore[reportArgumentType]
    )
    settings = json.loads(named.to_json())["settings"]
    assert (settings["lam"], settings["confidence"], settings["channel"]) == (0.25, 0.5, 1)


def test_an_annotation_of_pyannote_is_refused_with_the_way_out(puppet: Puppet):
    annotation = to_pyannote([Turn(0, 1, "Ada")])
    for take in (VoiceStore(puppet).learn, VoiceStore(puppet).name):
        with pytest.raises(InputError, match=r"got Annotation; Diarization\.from_pyannote converts"):
            take(annotation, clip("ada"))


def test_with_a_real_model_lam_0_is_the_diarizer_with_a_name(diarizer: Diarizer, tmp_path: Path):
    wav = write(tmp_path / "ada.wav", chirp(2.0, RATE), RATE)
    store = VoiceStore(diarizer).add("Ada", wav)
    expected = diarizer(wav).relabel({"speaker_0": "Ada"})
    assert store.diarize(wav).turns == expected.turns
    assert store.name(diarizer(wav), wav).turns == expected.turns
    assert store.diarize(wav).uri == store.name(diarizer(wav), wav).uri == "ada"
    stages: list[str] = []
    with pytest.raises(InputError, match="exclusive must be True or False, got 'no'"):
        store.diarize(wav, exclusive="no")  # pyright: ignore[reportArgumentType]
    named = store.diarize(wav, exclusive=True, progress=lambda stage, *_: stages.append(stage))
    assert "read" in stages
    origin = named.origin
    assert origin is not None
    assert expected.origin is not None
    assert (origin.model, origin.settings["voices"], origin.settings["exclusive"]) == (diarizer.name, ["Ada"], True)
    assert origin.time_axis == expected.origin.time_axis
    with torch.inference_mode():
        emb = diarizer.model(torch.from_numpy(chirp(2.0, RATE))[None]).emb[0].numpy()
    np.testing.assert_allclose(diarizer.embeddings(chirp(2.0, RATE), sample_rate=RATE).data, emb, atol=1e-5)


@pytest.mark.filterwarnings("ignore::sortformer.SortformerWarning")
def test_a_result_tells_its_warnings_and_names_no_folder(diarizer: Diarizer, tmp_path: Path):
    wav = write(tmp_path / "ada.wav", chirp(2.0, RATE), RATE)
    wav.write_bytes(wav.read_bytes()[:-40_000])
    origin = VoiceStore(diarizer).diarize(wav).origin
    assert origin is not None
    damaged, empty = origin.warnings or ()
    assert damaged.startswith("ada.wav is damaged or truncated")
    assert empty.startswith("this store has no voices")


@pytest.mark.filterwarnings("ignore:this store has no voices")
def test_that_nobody_speaks_is_said(puppet: Puppet, tmp_path: Path):
    deaf = Diarizer.load(tiny_model(tmp_path / "deaf", speaking=0), device="cpu")
    with pytest.warns(SortformerWarning, match="^no speech found in the array$"):
        result = VoiceStore(deaf, names=()).diarize(chirp(2.0, RATE), sample_rate=RATE)
    assert result.turns == ()
    assert "no speech found in the array" in getattr(result.origin, "warnings", ())
    with pytest.warns(SortformerWarning, match="^no speech found in the array$"):
        assert of(puppet, "ada").diarize(np.full(30, -1)).turns == ()


def test_finer_output_takes_the_memory_of_its_80_ms():
    finer = small_model(small_config(head={"upsampling": 8, "estimate_layers": ()}))
    with torch.no_grad():
        finer.head.out.bias.copy_(torch.tensor([9.0, -9.0, -9.0]))
    store = VoiceStore(Diarizer(finer, PostprocessConfig(), "finer")).add("Ada", chirp(2.05, RATE), sample_rate=RATE)
    assert store.diarize(chirp(2.05, RATE), lam=0.5, sample_rate=RATE).speakers[0] == "Ada"
