"""A recording whole or as a stream: by its preset, its length and what the model can do."""

import copy
import pickle
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from sortformer import audio, checkpoint
from sortformer.config.clustering import ClusteringConfig
from sortformer.config.postprocess import PostprocessConfig
from sortformer.config.stream import StreamConfig
from sortformer.diarizer import Diarizer
from sortformer.errors import Cancelled, ConfigError, InputError
from sortformer.formats import json
from tests.audio.makers import chirp, write
from tests.checkpoint.goldens import GOLDEN
from tests.marks import MAXIMUM_MAY_BE_REACHED
from tests.small_models import small_config, small_model
from tests.streaming.tiny import hearing_model
from tests.tiny import SLOTS, tiny_model


@pytest.fixture
def by_voice(tmp_path: Path) -> Diarizer:
    """A diarizer that finds one voice at all times."""
    alone = Diarizer.load(tiny_model(tmp_path / "alone", speaking=1), device="cpu")
    return replace(alone, postprocess=PostprocessConfig(clustering=ClusteringConfig(1.99)))


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


def test_as_many_speakers_as_are_told_apart_may_be_more(tmp_path: Path, wav: Path):
    crowded = Diarizer.load(tiny_model(tmp_path / "crowded", speaking=SLOTS))
    with pytest.warns(UserWarning, match="meeting.wav has 4 speakers, the maximum, and any further one is merged"):
        result = crowded(wav)
    assert len(result.speakers) == SLOTS
    more = crowded.stream(max_speakers=SLOTS + 1)
    more.push(audio.read(wav))
    for ask in (lambda: crowded(wav, max_speakers=SLOTS + 1), more.finish):
        with pytest.warns(UserWarning, match="has 4 speakers, the maximum, and any further one is merged"):
            assert len(ask().speakers) == SLOTS
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
        UserWarning, match=r"is merged with these: say that there are at most 4 \(max_speakers=4\)"
    ) as told:  # with slots the limit is fixed
        crowded(wav, preset=StreamConfig(chunk_frames=12))
    assert len(told) == 1


def test_who_may_not_speak_in_a_stream_still_counts_in_how_many_do():
    model = hearing_model(0.1, -0.1, -3.0)  # a voice split over two slots is one speaker
    torn = Diarizer(model, PostprocessConfig(decision="least_error"), "torn")
    wave = chirp(3.0, 16_000)
    config = StreamConfig(chunk_frames=12, max_speakers=1)
    live = torn.stream(config)
    live.push(wave)
    said = torn(wave, sample_rate=16_000, preset=config), live.finish()
    assert [[(turn.start, turn.end, turn.speaker) for turn in each] for each in said] == 2 * [[(0, 3, "speaker_0")]]


def test_what_is_too_long_to_be_taken_whole_is_streamed(diarizer: Diarizer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sortformer.offline.MAX_OFFLINE_S", 60.0)
    wave = np.tile(chirp(1.0, 16_000), 75)
    minute = wave[: 60 * 16_000]
    assert diarizer.probabilities(minute, sample_rate=16_000).duration == 60.0
    seen: list[tuple[str, float, float | None]] = []
    with pytest.warns(UserWarning, match=r"the array exceeds the limit of 1 minutes .* \(preset 30s\)"):
        result = diarizer(wave, sample_rate=16_000, progress=lambda *report: seen.append(report))
    assert result == diarizer(wave, sample_rate=16_000, preset="30s").warned(result.origin.warnings)
    assert result.duration == seen[-2][1] == seen[-2][2] == 75.0
    for refused in (
        lambda: diarizer(wave, sample_rate=16_000, preset="offline"),
        lambda: diarizer.estimates(wave, sample_rate=16_000),
    ):
        with pytest.raises(InputError, match="the array exceeds the limit of 1 minutes"):
            refused()


@MAXIMUM_MAY_BE_REACHED
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


def test_a_file_streams_by_a_configuration_as_a_live_stream_does(diarizer: Diarizer, wav: Path):
    config = replace(diarizer.presets["0.3s"], chunk_frames=7)
    session = diarizer.stream(config)
    expected = session.push(audio.read(wav)).probs
    np.testing.assert_array_equal(diarizer.probabilities(wav, preset=config).data[: len(expected)], expected)
    result = diarizer(wav, preset=config, max_speakers=1)
    assert len(result.speakers) == 1
    assert '"chunk_frames": 7' in json.format(result)


def test_probabilities_are_of_slots_where_one_wishes(diarizer: Diarizer, wav: Path):
    by_voice = replace(diarizer, postprocess=PostprocessConfig(clustering=ClusteringConfig(0.4)))
    assert by_voice.probabilities(wav, preset="1s").data.shape[1] == 8
    found = by_voice.probabilities(wav, preset="1s", postprocess=diarizer.postprocess).data
    np.testing.assert_array_equal(found, diarizer.probabilities(wav, preset="1s").data)


def test_enrolled_clips_are_read_once_and_do_not_change(by_voice: Diarizer, wav: Path, tmp_path: Path):
    clip = write(tmp_path / "chair.wav", chirp(2.0, 16_000), 16_000)
    clips = {"chair": clip}
    expected = [by_voice(wav, enroll=clips, preset=preset) for preset in (None, "1s")]
    known = [by_voice.enrolled(clips, preset=preset) for preset in (None, "1s")]
    clip.unlink()
    clips["guest"] = clip
    assert [
        by_voice(wav, enroll=each, preset=preset) for each, preset in zip(known, (None, "1s"), strict=True)
    ] == expected
    assert [dict(each) for each in known] == [{"chair": clip}] * 2
    with pytest.raises(TypeError):
        known[0]["guest"] = clip  # type: ignore[index]


def test_enrolled_clips_are_refused_where_they_have_other_voices(by_voice: Diarizer, wav: Path):
    known, live = (by_voice.enrolled({"chair": wav}, preset=preset) for preset in (None, "1s"))
    own = by_voice.postprocess
    assert by_voice(wav, enroll=known, postprocess=replace(own, onset=0.6), max_speakers=12).speakers == ("chair",)
    calls = (
        partial(replace(by_voice, model=copy.deepcopy(by_voice.model).bfloat16()), enroll=known),
        partial(replace(by_voice, exit_confidence=0.9), enroll=known),
        partial(by_voice, enroll=known, postprocess=replace(own, clustering=ClusteringConfig(0.5))),
        partial(by_voice, enroll=known, postprocess=replace(own, clustering=None)),
        partial(by_voice, enroll=known, preset="1s"),
        partial(by_voice, enroll=live),
    )
    for call in calls:
        with pytest.raises(InputError, match="the clips were enrolled for another model, preset, clustering or exit_"):
            call(wav)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_enrolled_clips_can_be_copied_and_sent_to_another_process(by_voice: Diarizer, wav: Path, copied):
    known = by_voice.enrolled({"chair": chirp(2.0, 16_000)})
    expected, other = by_voice(wav, enroll=known), copied(known)
    assert by_voice(wav, enroll=other) == copied(by_voice)(wav, enroll=known) == expected
    assert b"sortformer.model" not in pickle.dumps(known)
    assert other != known  # by identity: clips may be arrays, which cannot be compared so
    assert repr(other) == "Enrolled(names=['chair'])"


@pytest.mark.parametrize("clustering", [ClusteringConfig(0.5), None])
def test_a_preset_that_is_not_there_is_refused_before_clips_are_read(
    by_voice: Diarizer, clustering: ClusteringConfig | None
):
    diarizer = replace(by_voice, postprocess=PostprocessConfig(clustering=clustering))
    with pytest.raises(ConfigError, match="this model has no streaming preset 'nosuch'"):
        diarizer.enrolled({"chair": "absent.wav"}, preset="nosuch")


@pytest.mark.parametrize("preset", ["offline", "1s"])
def test_a_name_that_cannot_be_used_is_refused_before_clips_are_read(by_voice: Diarizer, preset: str):
    with pytest.raises(InputError, match="the name 'speaker_0' is a label of the toolkit"):
        by_voice.enrolled({"speaker_0": "absent.wav"}, preset=preset)


@pytest.mark.parametrize("preset", ["offline", "1s"])
def test_what_is_cancelled_while_clips_are_enrolled_hears_no_more_of_them(preset: str):
    diarizer = Diarizer(hearing_model(3.0, -3.0), PostprocessConfig(clustering=ClusteringConfig(0.5)), "by voice")
    clips, answers = {"Ada": chirp(2.0, 16_000), "Bob": "absent.wav"}, iter((True, False))
    with pytest.raises(Cancelled, match="read"):
        diarizer("meeting.wav", preset=preset, enroll=clips, progress=lambda *_: next(answers))


def test_whoever_is_enrolled_is_known_to_a_stream_by_voice_however_few_are_asked_for():
    voices = Diarizer(hearing_model(3.0, -3.0, -3.0), PostprocessConfig(clustering=ClusteringConfig(0.1)), "by voice")
    low, high = (np.sin(np.arange(32_000) * tone).astype(np.float32) / 2 for tone in (0.2, 1.5))
    wave = np.concatenate([low, high, low])
    streamed = partial(voices, wave, sample_rate=16_000, preset="1s", enroll={"guest": high, "chair": low})
    assert set(streamed().speakers) == {"chair", "guest"}
    assert streamed(max_speakers=1).speakers == ("chair",)


def test_a_model_that_neither_streams_nor_clusters_knows_no_voices():
    diarizer = Diarizer.load(GOLDEN / "tiny_v1.nemo", device="cpu")
    with pytest.raises(InputError, match="this model does not support enrolment"):
        diarizer(chirp(2.0, 16_000), sample_rate=16_000, enroll={"Ada": chirp(1.0, 16_000)})
