"""The main API: the same result for every kind of source, and options that are obeyed or refused."""

import copy
import io
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given

import sortformer
from sortformer import SortformerWarning, audio, checkpoint
from sortformer.annotation import Diarization, TimeAxis
from sortformer.config.clustering import ClusteringConfig
from sortformer.config.postprocess import PostprocessConfig
from sortformer.config.presets import as_postprocess
from sortformer.config.stream import StreamConfig
from sortformer.diarizer import Diarizer
from sortformer.errors import Cancelled, ConfigError, InputError
from sortformer.formats import json
from sortformer.streaming import Session
from tests.audio.makers import chirp, write
from tests.marks import MAXIMUM_MAY_BE_REACHED
from tests.small_models import small_config, small_model
from tests.strategies import spread
from tests.tiny import SLOTS, tiny_model


@given(samples=spread(1_600, 40_000))
def test_frames_cover_the_recording_and_turns_stay_inside_it(diarizer: Diarizer, samples: int):
    wave = chirp(samples / 16_000, 16_000)
    found = diarizer.probabilities(wave, sample_rate=16_000)
    assert found.data.shape == (-(-(samples // 160) // 8), SLOTS)
    assert found.data.dtype == np.float32
    assert ((found.data >= 0) & (found.data <= 1)).all()
    assert (found.start_s, found.step_s, found.duration) == (0.0, 0.08, samples / 16_000)
    result = diarizer(wave, sample_rate=16_000)
    assert all(0 <= turn.start < turn.end <= result.duration == samples / 16_000 for turn in result)


def test_a_path_a_file_object_and_an_array_are_one_recording(diarizer: Diarizer, wav: Path):
    expected = diarizer(wav)
    assert expected.speakers == ("speaker_0", "speaker_1")
    assert (expected.uri, expected.duration) == ("meeting", 2.0)
    assert diarizer(str(wav)) == expected
    assert diarizer(io.BytesIO(wav.read_bytes())).turns == expected.turns
    with wav.open("rb") as file:
        assert diarizer(file) == expected
    samples = audio.read(wav)
    assert diarizer(samples, sample_rate=16_000).turns == expected.turns
    assert diarizer(torch.from_numpy(samples), sample_rate=16_000).uri == "audio"


def test_whatever_a_recording_is_read_from_its_rttm_can_be_written(diarizer: Diarizer, wav: Path):
    spaced = wav.rename(wav.with_name("my talk.wav"))
    with spaced.open("rb") as named, open(os.open(spaced, os.O_RDONLY), "rb") as numbered:
        sources = {spaced: "my_talk", named: "my_talk", numbered: "audio", io.BytesIO(spaced.read_bytes()): "audio"}
        for source, uri in sources.items():
            assert {line.split()[1] for line in diarizer(source).to_rttm().splitlines()} == {uri}


@pytest.mark.parametrize("upsampling", [1, 8])
def test_probabilities_are_those_of_the_model(wav: Path, upsampling: int):
    model = small_model(small_config(head={"upsampling": upsampling, "estimate_layers": ()}))
    with torch.inference_mode():
        expected = model(torch.from_numpy(audio.read(wav))[None]).probs[0].numpy()
    found = Diarizer(model, PostprocessConfig(), "small").probabilities(wav)
    np.testing.assert_allclose(found.data, expected, atol=1e-6)
    assert found.step_s == 0.08 / upsampling


def test_a_channel_is_as_good_as_a_file_of_its_own(diarizer: Diarizer, tmp_path: Path):
    both = np.stack([chirp(1.0, 16_000), np.roll(chirp(1.0, 16_000), 4_000)], axis=1)
    stereo = write(tmp_path / "stereo.wav", both, 16_000)
    mono = write(tmp_path / "mono.wav", both[:, 1], 16_000)
    np.testing.assert_array_equal(diarizer.probabilities(stereo, channel=2).data, diarizer.probabilities(mono).data)
    for look in (diarizer.estimates, diarizer.embeddings):
        np.testing.assert_array_equal(look(stereo, channel=2).output.data, look(mono).output.data)
    clustered = replace(diarizer, postprocess=PostprocessConfig(clustering=ClusteringConfig(0.5)))
    np.testing.assert_array_equal(clustered.embeddings(stereo, channel=2).data, clustered.embeddings(mono).data)


def test_looking_inside_says_how_far_it_is(diarizer: Diarizer, wav: Path):
    clustered = replace(diarizer, postprocess=PostprocessConfig(clustering=ClusteringConfig(0.5)))
    for look in (diarizer.estimates, diarizer.embeddings, clustered.embeddings):
        with pytest.raises(Cancelled, match="model"):
            look(wav, progress=lambda stage, *_: stage != "model")


def test_estimates_show_arrival_by_layer(diarizer: Diarizer, wav: Path):
    found = diarizer.estimates(wav)
    assert [each.layer for each in found.layers] == [0, 1]
    np.testing.assert_array_equal(found.output.data, diarizer.probabilities(wav).data)
    for each in found.layers:
        assert each.data.shape == found.output.data.shape
        assert sorted(each.ranks) == list(range(SLOTS))
        for slot, arrival in enumerate(each.arrival_frames):
            active = np.flatnonzero(each.data[:, slot] > 0.5)
            assert arrival == (active[0] if len(active) else len(each.data))
        assert (np.diff(each.arrival_frames[np.argsort(each.ranks)]) >= 0).all()
        np.testing.assert_array_equal(each.ordered[:, each.ranks], each.data)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64], ids=str)
def test_its_model_may_have_another_precision(diarizer: Diarizer, wav: Path, dtype: torch.dtype):
    other = replace(diarizer, model=copy.deepcopy(diarizer.model).to(dtype))
    assert other(wav).speakers == diarizer(wav).speakers
    looks = (Diarizer.probabilities, Diarizer.embeddings, lambda each, wav: each.estimates(wav).layers[-1])
    by_voice = {"postprocess": PostprocessConfig(clustering=ClusteringConfig(0.5))}
    for options in ({}, by_voice, {"exit_confidence": 0.5}):
        for look in looks:
            found, expected = (look(replace(each, **options), wav).data for each in (other, diarizer))
            assert found.dtype == np.float32
            np.testing.assert_allclose(found, expected, atol=0.05)


@MAXIMUM_MAY_BE_REACHED
def test_with_a_confidence_it_stops_in_the_head_and_says_where(diarizer: Diarizer, wav: Path):
    found = diarizer.estimates(wav)
    assert found.layers[0].confidence is None
    confidence = found.layers[1].confidence
    assert confidence is not None
    early = replace(diarizer, exit_confidence=confidence / 2)
    stopped = early.probabilities(wav)
    np.testing.assert_allclose(stopped.data, found.layers[1].ordered, atol=1e-6)
    assert (stopped.layers, diarizer.probabilities(wav).layers) == (1, 2)
    assert early(wav).origin.settings["exit_confidence"] == confidence / 2
    assert "exit_confidence" not in diarizer(wav).origin.settings


def test_a_confidence_that_cannot_be_reached_or_is_none_is_refused(diarizer: Diarizer):
    with pytest.raises(ConfigError, match="at most 1, got"):
        replace(diarizer, exit_confidence=1.5)
    with pytest.raises(ConfigError, match=r"at most 1, got '0\.9'"):
        replace(diarizer, exit_confidence="0.9")


def test_the_result_says_what_made_it_and_survives_json(diarizer: Diarizer, wav: Path):
    tuned = PostprocessConfig(onset=0.6, offset=0.4)
    result = diarizer(wav, postprocess=tuned, max_speakers=3)
    assert result.origin is not None
    assert result.origin.version == sortformer.__version__
    assert result.origin.model == diarizer.name
    assert result.origin.time_axis is not None
    assert result.origin.time_axis.num_frames == 25
    assert result.origin.settings["preset"] == "offline"
    assert result.origin.settings["max_speakers"] == 3
    assert result.origin.settings["postprocess"]["onset"] == 0.6
    again = json.parse(result.to_json())
    assert again.origin == result.origin
    assert again.to_rttm() == result.to_rttm()


def test_confidence_is_the_mean_probability_of_the_turn(diarizer: Diarizer, wav: Path):
    probs = diarizer.probabilities(wav).data
    for turn, slot in zip(diarizer(wav).turns, (0, 1), strict=True):
        assert turn.confidence == pytest.approx(probs[:, slot].mean(), abs=0.01)


@pytest.mark.parametrize(("wish", "heard"), [({"num_speakers": 1}, 1), ({"max_speakers": 1}, 1), ({}, 2)])
def test_speaker_counts_are_obeyed(diarizer: Diarizer, wav: Path, wish: dict[str, int], heard: int):
    assert len(diarizer(wav, **wish).speakers) == heard


def test_whole_numbers_of_numpy_are_as_good(diarizer: Diarizer, wav: Path):
    one = np.int64(1)
    result = diarizer(wav, num_speakers=one, channel=one)
    assert result == diarizer(wav, num_speakers=1, channel=1)
    assert '"num_speakers": 1,' in result.to_json()
    with pytest.raises(InputError, match=r"got 2\.0"):
        diarizer.stream(max_speakers=2.0)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("word", ["no", "yes", 1, None])
def test_a_switch_takes_no_words(diarizer: Diarizer, wav: Path, word: object):
    with pytest.raises(InputError, match="exclusive must be True or False, got"):
        diarizer(wav, exclusive=word)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("wanted", [False, True])
def test_a_switch_may_be_numpys(diarizer: Diarizer, wav: Path, wanted: bool):
    result = diarizer(wav, exclusive=np.bool_(wanted))  # pyright: ignore[reportArgumentType]
    assert result == diarizer(wav, exclusive=wanted)
    assert f'"exclusive": {str(wanted).lower()},' in result.to_json()


def test_a_diarizer_is_shown_in_a_line(diarizer: Diarizer):
    assert repr(diarizer) == f"Diarizer(name={diarizer.name!r}, num_slots={SLOTS}, device='cpu')"


@pytest.mark.parametrize("wish", [{"num_speakers": 3}, {"min_speakers": 4}])
def test_nobody_is_invented(diarizer: Diarizer, wav: Path, wish: dict[str, int]):
    with pytest.warns(UserWarning, match="but found only 2"):
        assert len(diarizer(wav, **wish).speakers) == 2


@pytest.mark.parametrize(
    ("wish", "reason"),
    [
        ({"num_speakers": 5}, "at most 4"),
        ({"min_speakers": 5}, "at most 4"),
        ({"max_speakers": 0}, "1 or more"),
        ({"num_speakers": 1, "min_speakers": 1}, "not both"),
        ({"min_speakers": 3, "max_speakers": 2}, "above"),
    ],
)
def test_what_cannot_be_obeyed_is_refused(diarizer: Diarizer, wav: Path, wish: dict, reason: str):
    with pytest.raises(InputError, match=reason):
        diarizer(wav, **wish)


def test_an_unknown_preset_is_refused_by_name(diarizer: Diarizer):
    with pytest.raises(ConfigError, match="'psychic'; known: 30s, 10s"):
        diarizer("absent.wav", preset="psychic")
    with pytest.raises(ConfigError, match=r"no streaming preset '\['1s'\]'"):
        diarizer("absent.wav", preset=["1s"])  # type: ignore[arg-type]


def test_a_stream_says_how_its_result_was_made_wherever_it_ends(diarizer: Diarizer):
    session = diarizer.stream("1s", max_speakers=2)
    session.push(chirp(2.0, 16_000))
    moved = Session.restore(diarizer.model, session.snapshot())
    origin = session.finish().origin
    assert origin is not None
    assert (origin.model, origin.version) == (diarizer.name, sortformer.__version__)
    assert (origin.settings["preset"], origin.settings["max_speakers"]) == ("1s", 2)
    assert origin.time_axis == TimeAxis(0.0, 0.08, 25)
    result = moved.finish()
    assert result.origin == origin
    assert json.parse(result.to_json()).origin == origin


def test_a_model_that_is_no_path_is_refused():
    with pytest.raises(InputError, match=r"a model must be a folder, a \.nemo file or an id, got int"):
        Diarizer.load(5)  # pyright: ignore[reportArgumentType]


def test_a_wish_is_refused_before_the_audio_is_touched(diarizer: Diarizer):
    with pytest.raises(InputError, match="at most 4"):
        diarizer("absent.wav", num_speakers=5)


def test_silence_is_no_speech_whatever_the_model_says(diarizer: Diarizer):
    silence = np.zeros(16_000, np.float32)
    with pytest.warns(UserWarning, match="no speech found in the array: it is silent"):
        assert diarizer(silence, sample_rate=16_000).turns == ()
    assert not diarizer.probabilities(silence, sample_rate=16_000).data.any()
    session = diarizer.stream("0.3s")
    assert not session.push(silence).probs.any()
    assert session.push(chirp(1.0, 16_000)).probs.any()
    assert not diarizer.stream().finish().turns


def test_a_model_that_hears_nobody_is_not_silent_success(tmp_path: Path, wav: Path):
    deaf = Diarizer.load(tiny_model(tmp_path / "deaf", speaking=0))
    with pytest.warns(SortformerWarning, match="no speech found in .*meeting.wav$"):
        assert deaf(wav).turns == ()


@pytest.mark.filterwarnings("ignore::sortformer.SortformerWarning")
def test_a_result_tells_its_own_warnings_each_time_and_names_no_folder(diarizer: Diarizer, wav: Path):
    (cut := wav.with_name("cut.wav")).write_bytes(wav.read_bytes()[:-40_000])
    for _ in range(2):
        origin = diarizer(cut, num_speakers=3).origin
        assert origin is not None
        damaged, missing = origin.warnings or ()
        assert damaged.startswith("cut.wav is damaged or truncated")
        assert missing == "asked for 3 speakers, but found only 2"
    (clip := wav.with_name("ann.wav")).write_bytes(wav.read_bytes()[:-17_000])
    origin = diarizer(wav, enroll={"ann": clip}).origin
    assert origin is not None
    assert (origin.warnings or ("",))[0].startswith("ann.wav is damaged or truncated")
    origin = diarizer(wav).origin
    assert origin is not None
    assert origin.warnings == ()


def test_a_live_stream_is_that_of_its_preset(diarizer: Diarizer):
    wave = chirp(2.0, 16_000)
    tuned = PostprocessConfig(onset=0.6)
    session = diarizer.stream("0.3s", postprocess=tuned, max_speakers=1, uri="meeting")
    assert (session.config.max_speakers, session.postprocess) == (1, tuned)
    session.push(wave)
    assert [(turn.end, turn.speaker) for turn in session.finish()] == [(1.99, "speaker_0")]
    assert session.finish().uri == "meeting"
    assert diarizer.stream().config == diarizer.presets["1s"]
    config = StreamConfig(10)
    assert diarizer.stream(config).config == config
    with pytest.raises(InputError, match="1 or more"):
        diarizer.stream(max_speakers=0)


def test_post_processing_goes_by_its_published_name_wherever_it_is_given(diarizer: Diarizer, wav: Path):
    name: Any = "v2-dihard3"
    known = as_postprocess(name)
    assert diarizer(wav, postprocess=name) == diarizer(wav, postprocess=known)
    assert replace(diarizer, postprocess=name).postprocess == known
    assert diarizer.stream(postprocess=name).postprocess == known
    assert Session(diarizer.model, StreamConfig(chunk_frames=12), name).postprocess == known
    with pytest.raises(ConfigError, match="there is no post-processing 'x'"):
        diarizer("absent.wav", postprocess="x")
    wrong: Any = {"onset": 0.5}
    for call in (partial(replace, diarizer), diarizer.stream):
        with pytest.raises(InputError, match="PostprocessConfig, or a name, got dict"):
            call(postprocess=wrong)


def test_turns_of_probabilities_are_those_of_the_recording_by_its_name(diarizer: Diarizer, wav: Path):
    found = diarizer.probabilities(wav).turns(diarizer.postprocess)
    assert (found.uri, found.turns) == ("meeting", diarizer(wav).turns)


def test_a_model_in_training_mode_is_refused():
    with pytest.raises(InputError, match="training mode"):
        Diarizer(small_model(small_config()).train(), PostprocessConfig(), "small")
    with pytest.raises(InputError, match=r"a Sortformer is needed, such as diarizer\.model, got str"):
        Diarizer("small", PostprocessConfig(), "small")  # type: ignore[arg-type]


def test_enrolled_voices_keep_their_names(diarizer: Diarizer, wav: Path):
    result = diarizer(wav, enroll={"chair": chirp(1.0, 16_000)})
    assert [(turn.end, turn.speaker) for turn in result] == [(1.99, "chair"), (1.99, "speaker_0")]
    assert result.origin is not None
    assert (result.origin.settings["preset"], result.origin.settings["enroll"]) == ("30s", ["chair"])
    assert diarizer(wav, enroll=None) == diarizer(wav, enroll={})
    for take in (partial(diarizer, wav, enroll="chair.wav"), partial(diarizer.enrolled, "chair.wav")):
        with pytest.raises(InputError, match="clips to enroll must be a mapping of names to clips, got str"):
            take()
    with pytest.raises(InputError, match="progress must be a function of stage, done and total, got True"):
        diarizer(wav, progress=True)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="without clustering, voices can be enrolled only in a stream"):
        diarizer(wav, preset="offline", enroll={"chair": chirp(1.0, 16_000)})


def test_threads_share_a_diarizer(diarizer: Diarizer):
    waves = [np.roll(chirp(1.0, 16_000), 500 * shift) for shift in range(8)]
    expected = [diarizer.probabilities(wave, sample_rate=16_000).data for wave in waves]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda wave: diarizer.probabilities(wave, sample_rate=16_000).data, waves))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_loading_keeps_the_post_processing_of_the_model(tmp_path: Path):
    folder = tiny_model(tmp_path / "model")
    network, _ = checkpoint.load(folder)
    checkpoint.save(folder, network, PostprocessConfig(onset=0.7))
    loaded = Diarizer.load(folder)
    assert loaded.postprocess == PostprocessConfig(onset=0.7)
    assert (loaded.name, loaded.num_slots, loaded.device.type) == (str(folder), SLOTS, "cpu")


def test_a_plain_recording_raises_no_warning(diarizer: Diarizer, wav: Path):
    assert isinstance(diarizer(wav), Diarization)


def test_a_mapping_names_its_recording(diarizer: Diarizer, wav: Path):
    wave = {"waveform": chirp(2.0, 16_000), "sample_rate": 16_000}
    assert diarizer(wave | {"uri": "monday"}).to_rttm().startswith("SPEAKER monday 1 ")
    assert diarizer(wave).uri == "audio"
    assert diarizer({"audio": wav}) == diarizer(wav)
    assert diarizer({"audio": wav, "uri": "monday"}).uri == "monday"
