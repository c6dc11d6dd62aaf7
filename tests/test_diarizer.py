"""The main API: the same result for every kind of source, and options that are obeyed or refused."""

import copy
import io
import os
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import sortformer
from sortformer import audio, checkpoint
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
from tests.checkpoint.goldens import GOLDEN
from tests.small_models import small_config, small_model
from tests.streaming.tiny import hearing_model
from tests.tiny import SLOTS, tiny_model


@given(samples=st.integers(1_600, 40_000))
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


def test_a_stream_with_one_chunk_for_all_is_the_whole_recording(diarizer: Diarizer):
    wave = chirp(20.0, 16_000)
    whole = diarizer.probabilities(wave, sample_rate=16_000, preset="offline")
    stream = diarizer.probabilities(wave, sample_rate=16_000, preset="30s")
    np.testing.assert_allclose(stream.data, whole.data, atol=1e-5)
    assert stream.duration == whole.duration == 20.0


def test_a_stream_takes_any_length_and_says_how_far_it_is(diarizer: Diarizer, tmp_path: Path):
    path = write(tmp_path / "long.wav", chirp(25.0, 16_000), 16_000)
    seen: list[tuple[str, float, float | None]] = []
    result = diarizer(path, preset="10s", progress=lambda *report: seen.append(report))
    assert result.duration == 25.0
    assert result.origin is not None
    assert result.origin.settings["preset"] == "10s"
    for stage in ("read", "model"):
        assert [report for report in seen if report[0] == stage] == [(stage, at, 25.0) for at in (10.0, 20.0, 25.0)]


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


def test_as_many_speakers_as_are_told_apart_may_be_more(tmp_path: Path, wav: Path):
    crowded = Diarizer.load(tiny_model(tmp_path / "crowded", speaking=SLOTS))
    with pytest.warns(UserWarning, match="meeting.wav has 4 speakers, the maximum, and any further one is merged"):
        result = crowded(wav)
    assert len(result.speakers) == SLOTS
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for wish in ({"max_speakers": 4}, {"num_speakers": 4}, {"max_speakers": 3}):
            crowded(wav, **wish)
        crowded(wav, preset=StreamConfig(chunk_frames=12, max_speakers=SLOTS))
        told = crowded.stream(max_speakers=SLOTS)
        told.push(audio.read(wav))
        assert len(told.finish().speakers) == SLOTS


def test_the_warning_goes_by_how_a_stream_tells_people_apart(tmp_path: Path, wav: Path):
    by_voice = PostprocessConfig(clustering=ClusteringConfig(0.4, max_speakers=SLOTS))
    crowded = replace(Diarizer.load(tiny_model(tmp_path / "crowded", speaking=SLOTS)), postprocess=by_voice)
    with pytest.warns(
        UserWarning, match=r"is merged with these: give max_speakers=4 if"
    ) as told:  # with slots the limit is fixed
        crowded(wav, preset=StreamConfig(chunk_frames=12))
    assert len(told) == 1


def test_who_may_not_speak_in_a_stream_still_counts_in_how_many_do():
    model = small_model(small_config({}, {"num_slots": 3}))
    with torch.no_grad():
        model.head.out.weight.zero_()
        model.head.out.bias.copy_(torch.tensor([0.1, -0.1, -3.0]))  # a voice split over two slots is one speaker
    torn = Diarizer(model, PostprocessConfig(decision="least_error"), "torn")
    wave = chirp(3.0, 16_000)
    config = StreamConfig(chunk_frames=12, max_speakers=1)
    live = torn.stream(config)
    live.push(wave)
    said = torn(wave, sample_rate=16_000, preset=config), live.finish()
    assert [[(turn.start, turn.end, turn.speaker) for turn in each] for each in said] == 2 * [[(0, 3, "speaker_0")]]


def test_post_processing_goes_by_its_name_wherever_it_is_given(tmp_path: Path):
    diarizer = Diarizer.load(tiny_model(tmp_path / "model"))
    named = replace(diarizer, postprocess="v2-dihard3")  # pyright: ignore[reportArgumentType]
    assert named.postprocess == as_postprocess("v2-dihard3")
    session = Session(diarizer.model, StreamConfig(chunk_frames=12), "v2-dihard3")  # pyright: ignore[reportArgumentType]
    assert session.postprocess == named.postprocess
    with pytest.raises(InputError, match="PostprocessConfig, or a name, got dict"):
        replace(diarizer, postprocess={})  # pyright: ignore[reportArgumentType]


def test_a_model_that_hears_nobody_is_not_silent_success(tmp_path: Path, wav: Path):
    deaf = Diarizer.load(tiny_model(tmp_path / "deaf", speaking=0))
    with pytest.warns(UserWarning, match="no speech found in .*meeting.wav$"):
        assert deaf(wav).turns == ()


def test_what_is_too_long_to_be_taken_whole_is_streamed(diarizer: Diarizer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sortformer.offline.MAX_OFFLINE_S", 60.0)
    wave = np.tile(chirp(1.0, 16_000), 75)
    minute = wave[: 60 * 16_000]
    assert diarizer.probabilities(minute, sample_rate=16_000).duration == 60.0
    seen: list[tuple[str, float, float | None]] = []
    with pytest.warns(UserWarning, match=r"the array exceeds the limit of 1 minutes .* \(preset 30s\)"):
        result = diarizer(wave, sample_rate=16_000, progress=lambda *report: seen.append(report))
    assert result == diarizer(wave, sample_rate=16_000, preset="30s")
    assert result.duration == seen[-2][1] == seen[-2][2] == 75.0
    for refused in (
        lambda: diarizer(wave, sample_rate=16_000, preset="offline"),
        lambda: diarizer.estimates(wave, sample_rate=16_000),
    ):
        with pytest.raises(InputError, match="the array exceeds the limit of 1 minutes"):
            refused()


def test_nvidias_streaming_models_take_files_as_streams(wav: Path):
    model, settings = checkpoint.load(GOLDEN / "tiny_nemotron3")
    diarizer = Diarizer(model, settings, "tiny")
    for preset, used in ((None, "30.4s"), ("1.04s", "1.04s"), ("offline", "offline")):
        result = diarizer(wav, preset=preset)
        assert result.origin is not None
        assert result.origin.settings["preset"] == used


def test_a_model_that_cannot_stream_refuses_what_is_too_long(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sortformer.offline.MAX_OFFLINE_S", 1.0)
    config = small_config()
    config = replace(config, features=replace(config.features, normalize="per_feature"))
    diarizer = Diarizer(small_model(config), PostprocessConfig(), "small")
    assert diarizer.presets == {}
    with pytest.raises(InputError, match="cut it"):
        diarizer(chirp(1.5, 16_000), sample_rate=16_000)
    for wish in (lambda: diarizer.stream(), lambda: diarizer("absent.wav", preset="30s")):
        with pytest.raises(ConfigError, match="cannot stream"):
            wish()


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


def test_a_file_streams_by_a_configuration_as_a_live_stream_does(diarizer: Diarizer, wav: Path):
    config = replace(diarizer.presets["0.3s"], chunk_frames=7)
    session = diarizer.stream(config)
    expected = session.push(audio.read(wav)).probs
    np.testing.assert_array_equal(diarizer.probabilities(wav, preset=config).data[: len(expected)], expected)
    result = diarizer(wav, preset=config, max_speakers=1)
    assert len(result.speakers) == 1
    assert '"chunk_frames": 7' in json.format(result)


def test_post_processing_goes_by_its_published_name_too(diarizer: Diarizer, wav: Path):
    known = as_postprocess("v2-dihard3")
    assert diarizer(wav, postprocess="v2-dihard3") == diarizer(wav, postprocess=known)
    assert diarizer.stream(postprocess="v2-dihard3").postprocess == known
    with pytest.raises(ConfigError, match="there is no post-processing 'x'"):
        diarizer("absent.wav", postprocess="x")
    with pytest.raises(InputError, match="PostprocessConfig, or a name, got dict"):
        diarizer.stream(postprocess={"onset": 0.5})  # type: ignore[arg-type]


def test_turns_of_probabilities_are_those_of_the_recording_by_its_name(diarizer: Diarizer, wav: Path):
    found = diarizer.probabilities(wav).turns(diarizer.postprocess)
    assert (found.uri, found.turns) == ("meeting", diarizer(wav).turns)


def test_probabilities_are_of_slots_where_one_wishes(diarizer: Diarizer, wav: Path):
    by_voice = replace(diarizer, postprocess=PostprocessConfig(clustering=ClusteringConfig(0.4)))
    assert by_voice.probabilities(wav, preset="1s").data.shape[1] == 8
    found = by_voice.probabilities(wav, preset="1s", postprocess=diarizer.postprocess).data
    np.testing.assert_array_equal(found, diarizer.probabilities(wav, preset="1s").data)


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
    with pytest.raises(InputError, match="enroll must be a mapping of names to clips, got str"):
        diarizer(wav, enroll="chair.wav")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="progress must be a function of stage, done and total, got True"):
        diarizer(wav, progress=True)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="without clustering, voices can be enrolled only in a stream"):
        diarizer(wav, preset="offline", enroll={"chair": chirp(1.0, 16_000)})


def test_whoever_is_enrolled_is_known_to_a_stream_by_voice_however_few_are_asked_for():
    voices = Diarizer(hearing_model(3.0, -3.0, -3.0), PostprocessConfig(clustering=ClusteringConfig(0.1)), "by voice")
    low, high = (np.sin(np.arange(32_000) * tone).astype(np.float32) / 2 for tone in (0.2, 1.5))
    wave = np.concatenate([low, high, low])
    streamed = partial(voices, wave, sample_rate=16_000, preset="1s", enroll={"guest": high, "chair": low})
    assert set(streamed().speakers) == {"chair", "guest"}
    assert streamed(max_speakers=1).speakers == ("chair",)


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
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert isinstance(diarizer(wav), Diarization)


def test_a_mapping_names_its_recording(diarizer: Diarizer, wav: Path):
    wave = {"waveform": chirp(2.0, 16_000), "sample_rate": 16_000}
    assert diarizer(wave | {"uri": "monday"}).to_rttm().startswith("SPEAKER monday 1 ")
    assert diarizer(wave).uri == "audio"
    assert diarizer({"audio": wav}) == diarizer(wav)
    assert diarizer({"audio": wav, "uri": "monday"}).uri == "monday"


def test_a_model_that_neither_streams_nor_clusters_knows_no_voices():
    diarizer = Diarizer.load(GOLDEN / "tiny_v1.nemo", device="cpu")
    with pytest.raises(InputError, match="this model does not support enrolment"):
        diarizer(chirp(2.0, 16_000), sample_rate=16_000, enroll={"Ada": chirp(1.0, 16_000)})
