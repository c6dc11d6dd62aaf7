"""Whole recordings: clustering by voice if enabled, windows that join without a seam, loudness normalisation."""

import warnings
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sortformer.annotation import Diarization, last_end
from sortformer.audio import AudioSource
from sortformer.audio.loudness import UNHEARD, Level, alike_loud
from sortformer.config.clustering import ClusteringConfig
from sortformer.config.postprocess import PostprocessConfig
from sortformer.diarizer import Diarizer
from sortformer.enrolled import read_clip
from sortformer.errors import InputError
from sortformer.model import Sortformer
from sortformer.offline import Whole, at_once, clip_voice, in_windows
from tests.audio.makers import chirp
from tests.small_models import small_config, small_model
from tests.streaming.tiny import hearing_model
from tests.tiny import SLOTS, tiny_model


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Diarizer:
    """A diarizer that finds one speaker at all times."""
    return Diarizer.load(tiny_model(tmp_path_factory.mktemp("alone"), speaking=1), device="cpu")


def grouped(diarizer: Diarizer, threshold: float = 0.5) -> Diarizer:
    return replace(diarizer, postprocess=replace(diarizer.postprocess, clustering=ClusteringConfig(threshold)))


def test_speech_is_given_to_voices_where_the_postprocessing_says_so(alone: Diarizer, wav: Path):
    voices = grouped(alone)
    assert voices.probabilities(wav).data.shape[1] != SLOTS
    streamed = [each.probabilities(wav, preset="1s").data for each in (voices, alone)]
    assert [each.shape[1] for each in streamed] == [8, SLOTS]
    assert not streamed[0][-1, 1:].any()  # by slot only while there is too little to cluster
    assert streamed[1][:, 1:].all()
    slots = voices(wav, postprocess=alone.postprocess)
    assert slots.turns == alone(wav).turns
    assert np.array_equal(voices.estimates(wav).output.data, alone.probabilities(wav).data)
    assert np.array_equal(voices.embeddings(wav).output.data, voices.probabilities(wav).data)


def test_the_number_of_voices_is_not_that_of_the_slots(alone: Diarizer, wav: Path):
    voices = grouped(alone)
    assert (alone.speaker_limit(), voices.speaker_limit(), voices.speaker_limit("1s")) == (SLOTS, 8, 8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # two seconds may have fewer speakers than requested
        for preset in (None, "1s"):
            for number in (SLOTS + 1, 9):
                voices(wav, num_speakers=number, preset=preset)
            with pytest.raises(InputError, match="at most 40"):
                voices(wav, num_speakers=41, preset=preset)
            voices(wav, max_speakers=41, preset=preset)
        with pytest.raises(InputError, match=f"at most {SLOTS}"):
            alone(wav, num_speakers=SLOTS + 1, preset="1s")


def test_enrolled_voices_are_looked_for_among_the_voices_of_a_whole_recording(alone: Diarizer, wav: Path):
    voices, wave = grouped(alone), chirp(2.0, 16_000)
    named = voices(wav, enroll={"chair": wave})  # the voice of the recording itself
    assert set(named.speakers) == {"chair"} | set(voices(wav).speakers) - {"speaker_0"}
    assert [turn[:2] for turn in _times(named)] == [turn[:2] for turn in _times(voices(wav))]
    assert named.origin is not None
    assert (named.origin.settings["preset"], named.origin.settings["enroll"]) == ("offline", ["chair"])
    for name, clip, reason in (
        ("speaker_1", wave, "is a label of the toolkit"),
        ("chair", wave[:8_000], "lasts 0.50 s"),
        ("chair", np.zeros(32_000, np.float32), "no voice was found in the clip of 'chair'"),
        ("chair", "absent.wav", "absent.wav does not exist"),
    ):
        with pytest.raises(InputError, match=reason):
            voices(wav, enroll={name: clip})
    with pytest.raises(InputError, match="'the_chair' is given twice"):  # RTTM writes both the same
        voices(wav, enroll={"the chair": wave, "the_chair": wave})


def test_a_voice_that_is_two_by_the_distance_of_clustering_is_not_named(alone: Diarizer, wav: Path):
    clip = chirp(2.0, 16_000)[::-1].copy()
    named = [grouped(alone, threshold)(wav, enroll={"chair": clip}).speakers for threshold in (1.99, 1e-6)]
    assert ["chair" in speakers for speakers in named] == [True, False]


def test_where_there_are_as_many_clips_as_speakers_everybody_is_named(alone: Diarizer, wav: Path):
    clip, other = chirp(2.0, 16_000)[::-1].copy(), chirp(3.0, 16_000)[16_000:]
    distant = partial(grouped(alone, 1e-6), wav, enroll={"chair": clip})
    assert distant(max_speakers=1).speakers == distant(num_speakers=1).speakers == ("chair",)
    assert "chair" not in distant(max_speakers=2).speakers
    both = grouped(alone, 1e-6)(wav, enroll={"chair": clip, "guest": other}, max_speakers=1)
    assert both.speakers == ("speaker_0",)  # one of them is absent, or both are


@pytest.mark.parametrize("preset", [None, "1s"])
def test_where_there_are_as_many_clips_as_speakers_no_two_are_merged(preset: str | None):
    low, high = (np.sin(np.arange(32_000) * tone).astype(np.float32) / 2 for tone in (0.2, 1.5))
    merging = Diarizer(hearing_model(3.0, -3.0, -3.0), PostprocessConfig(clustering=ClusteringConfig(1.99)), "merging")
    wave = np.concatenate([low, high, low])
    heard = partial(merging, wave, sample_rate=16_000, preset=preset, enroll={"guest": high, "chair": low})
    with pytest.warns(UserWarning, match="sound like one voice"):
        assert set(heard(max_speakers=2).speakers) == {"chair", "guest"}


def test_where_there_are_as_many_clips_as_speakers_a_stream_takes_others_for_them():
    low, high, other = (np.sin(np.arange(32_000) * tone).astype(np.float32) / 2 for tone in (0.2, 1.5, 0.7))
    parting = Diarizer(hearing_model(3.0, -3.0, -3.0), PostprocessConfig(clustering=ClusteringConfig(0.05)), "parting")
    wave, clips = np.concatenate([low, high, other[:16_000]]), {"guest": high, "chair": low}
    found = parting(wave, sample_rate=16_000, preset="1s", enroll=clips, max_speakers=2)
    assert (found.speakers, last_end(found.turns)) == (("chair", "guest"), 5.0)


def test_the_voices_of_clips_are_found_once_for_many_recordings(
    alone: Diarizer, wav: Path, monkeypatch: pytest.MonkeyPatch
):
    heard, voices, clip = list[str](), grouped(alone, 1.99), chirp(2.0, 16_000)

    def hearing(model: Sortformer, name: str, *rest: Any) -> np.ndarray:
        heard.append(name)
        return clip_voice(model, name, *rest)

    monkeypatch.setattr("sortformer.inference.clip_voice", hearing)
    with pytest.warns(match="the clips of 'chair' and 'guest' sound like one voice") as caught:
        known = voices.enrolled({"chair": clip, "guest": clip})
    for _ in range(2):
        result = voices(wav, enroll=known)
        assert result.speakers == ("chair",)
        assert [str(each.message) for each in caught] == list(getattr(result.origin, "warnings", ()))
    assert heard == ["chair", "guest"]
    with pytest.warns(match="sound like one voice") as again:  # without them, by each call
        voices(wav, enroll=dict(known))
    assert heard == ["chair", "guest"] * 2
    assert {each.filename for each in (*caught, *again)} == {__file__}
    only = {"chair": clip}
    assert voices(wav, enroll=voices.enrolled(only, preset="1s"), preset="1s") == voices(wav, enroll=only, preset="1s")


@pytest.mark.parametrize(("frames", "enough"), [(7, True), (6, False)])
def test_a_clip_has_half_a_second_of_speech(monkeypatch: pytest.MonkeyPatch, frames: int, enough: bool):
    model, probs = small_model(small_config()), np.zeros((25, 3), np.float32)
    probs[:frames, 1] = 0.9
    monkeypatch.setattr("sortformer.offline.in_windows", lambda *_: Whole(probs, np.eye(25, dtype=np.float32), 1))
    if enough:
        expected = np.where(np.arange(25) < frames, frames**-0.5, 0.0)
        found = clip_voice(model, "Ada", chirp(2.0, 16_000), ClusteringConfig(0.5))
        np.testing.assert_allclose(found, expected, atol=1e-6)
    else:
        with pytest.raises(InputError, match="no voice was found in the clip of 'Ada'"):
            clip_voice(model, "Ada", chirp(2.0, 16_000), ClusteringConfig(0.5))


@pytest.mark.parametrize("preset", [None, "1s"])
def test_a_clip_that_is_an_array_is_at_the_rate_of_the_call(
    alone: Diarizer, wav: Path, preset: str | None, monkeypatch: pytest.MonkeyPatch
):
    heard = list[int]()

    def reading(name: str, audio: AudioSource, sample_rate: int | None) -> np.ndarray:
        heard.append(len(read_clip(name, audio, sample_rate)))
        return read_clip(name, audio, sample_rate)

    monkeypatch.setattr("sortformer.inference.read_clip", reading)
    monkeypatch.setattr("sortformer.streaming.session.read_clip", reading)
    wave = chirp(2.0, 8_000)
    for clip in (wave, wav, {"waveform": wave, "sample_rate": 8_000}):
        grouped(alone)(wave, sample_rate=8_000, preset=preset, enroll={"chair": clip})
    assert heard == [32_000, 32_000, 32_000]


def _times(result: Diarization) -> list[tuple[float, float, str]]:
    return [(turn.start, turn.end, turn.speaker) for turn in result]


def test_windows_that_see_everything_give_what_the_whole_gives(alone: Diarizer, monkeypatch: pytest.MonkeyPatch):
    wave = chirp(9.97, 16_000)
    expected = alone.embeddings(wave, sample_rate=16_000)
    monkeypatch.setattr("sortformer.offline.by_voice", lambda probs, *_, **__: probs)
    monkeypatch.setattr("sortformer.offline.WINDOW_FRAMES", 25)
    monkeypatch.setattr("sortformer.offline.MARGIN_FRAMES", 1000)
    found = grouped(alone).embeddings(wave, sample_rate=16_000)
    assert found.output.data.shape == expected.output.data.shape
    np.testing.assert_allclose(found.output.data, expected.output.data, atol=1e-5)
    np.testing.assert_allclose(found.data, expected.data, atol=2e-3)  # kept in float16


def test_hours_are_taken_in_windows(alone: Diarizer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sortformer.offline.MAX_OFFLINE_S", 1.0)
    monkeypatch.setattr("sortformer.offline.WINDOW_FRAMES", 12)
    monkeypatch.setattr("sortformer.offline.MARGIN_FRAMES", 6)
    wave = chirp(4.0, 16_000)
    found = grouped(alone).probabilities(wave, sample_rate=16_000)
    assert found.data.shape[0] == 50
    with pytest.warns(UserWarning, match="streaming it instead"):
        alone.probabilities(wave, sample_rate=16_000)


@pytest.mark.parametrize("upsampling", [1, 8])
def test_windows_lie_where_their_frames_do(upsampling: int, monkeypatch: pytest.MonkeyPatch):
    def at_once(model: Sortformer, blocks: list[np.ndarray], *_: object, **__: object) -> Whole:
        (samples,) = blocks
        return Whole(samples[:: model.config.grid.step_samples, None], samples[::1280, None], 1)

    monkeypatch.setattr("sortformer.offline.at_once", at_once)
    monkeypatch.setattr("sortformer.offline.WINDOW_FRAMES", 12)
    monkeypatch.setattr("sortformer.offline.MARGIN_FRAMES", 6)
    model = small_model(small_config(head={"upsampling": upsampling, "estimate_layers": ()}))
    wave = np.arange(64_481, dtype=np.float32) / 2**16
    found, grid = in_windows(model, [wave]), model.config.grid
    count = grid.output_frames(len(wave))
    np.testing.assert_array_equal(found.probs[:, 0], wave[:: grid.step_samples][:count])
    np.testing.assert_array_equal(found.emb[:, 0], wave[::1280][: -(-count // upsampling)])
    np.testing.assert_array_equal(found.fine_emb, found.emb.repeat(upsampling, axis=0)[: len(found.probs)])


def test_windows_leave_the_head_early_as_well(monkeypatch: pytest.MonkeyPatch):
    config = small_config()
    model = small_model(replace(config, features=replace(config.features, normalize="fixed")))
    monkeypatch.setattr("sortformer.offline.WINDOW_FRAMES", 25)
    monkeypatch.setattr("sortformer.offline.MARGIN_FRAMES", 0)
    wave = chirp(4.0, 16_000)
    blocks = [np.concatenate([wave[:32_000], 0.01 * wave[32_000:]])]
    assert in_windows(model, blocks, 1e-6).layers == 2
    whole, found = in_windows(model, blocks), in_windows(model, blocks, 1.0)
    assert found.layers == whole.layers == 3
    np.testing.assert_allclose(found.probs, whole.probs, atol=1e-5)  # at the level of the audio so far
    looked = grouped(Diarizer(model, PostprocessConfig(), "early", exit_confidence=1e-6))
    assert looked.embeddings(blocks[0], sample_rate=16_000).output.layers == 2


def test_a_recording_takes_as_many_layers_as_its_hardest_window(monkeypatch: pytest.MonkeyPatch):
    model, layers = small_model(small_config()), iter([2, 3, 2])
    monkeypatch.setattr("sortformer.offline.WINDOW_FRAMES", 12)
    monkeypatch.setattr("sortformer.offline.MARGIN_FRAMES", 0)
    monkeypatch.setattr(
        "sortformer.offline.at_once", lambda *args, **named: replace(at_once(*args, **named), layers=next(layers))
    )
    assert in_windows(model, [chirp(2.4, 16_000)], 0.5).layers == 3


def test_as_many_voices_are_looked_for_as_are_asked_for():
    who = np.repeat([0, 1, 2], [60, 60, 7])
    whole = Whole(np.tile([0.7, 0.0], (len(who), 1)), np.eye(3)[who], 1)
    assert [whole.voices(ClusteringConfig(0.4), *count).shape[1] for count in ((), (3,), (1, 1))] == [2, 3, 1]


@pytest.mark.parametrize("wish", [{"num_speakers": 2}, {"min_speakers": 2}])
@pytest.mark.parametrize(("heard", "speakers"), [((1, 2), 2), ((1, 1, 3), 3), ((1, 0), 1)])
def test_voices_of_whom_nothing_is_heard_are_no_answer_to_how_many(
    alone: Diarizer, wav: Path, monkeypatch: pytest.MonkeyPatch, wish: dict, heard: tuple[int, ...], speakers: int
):
    asked = []

    def voices(whole: Whole, _: ClusteringConfig, fewest: int, most: int, __: object) -> np.ndarray:
        asked.append((fewest, most))
        speaking = heard[min(len(asked), len(heard)) - 1]
        return np.repeat([[0.9] * speaking + [0.0] * (3 - speaking)], len(whole.probs), axis=0)

    monkeypatch.setattr(Whole, "voices", voices)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = grouped(alone)(wav, **wish)
    assert len(found.speakers) == min(speakers, wish.get("num_speakers", 3))
    # If no attempt finds as many, fewer are tried, and finally any number.
    assert [fewest for fewest, _ in asked] == ([2, 3, 4][: len(heard)] if speakers > 1 else [2, 3, 4, 5, 1, 0])
    assert all(fewest <= most for fewest, most in asked)
    assert any("but found" in str(each.message) for each in caught) == (speakers < 2)


@pytest.mark.parametrize("take", ["turns", "probabilities", "channels"])
def test_where_nobody_asks_how_many_nobody_else_is_looked_for(
    alone: Diarizer, monkeypatch: pytest.MonkeyPatch, take: str
):
    asked = []

    def voices(whole: Whole, _: ClusteringConfig, fewest: int, *__: object) -> np.ndarray:
        asked.append(fewest)
        return np.zeros((len(whole.probs), 2), np.float32)

    monkeypatch.setattr(Whole, "voices", voices)
    wave, voiced = np.stack([chirp(2.0, 16_000)] * 2, axis=1), grouped(alone)
    if take == "probabilities":
        assert not voiced.probabilities(wave, sample_rate=16_000).data.any()
    else:
        with pytest.warns(UserWarning, match="no speech"):
            voiced(wave, sample_rate=16_000, channel="each" if take == "channels" else None)
    assert asked == [0] * (2 if take == "channels" else 1)


@pytest.mark.parametrize("frames", [127, 124])
def test_a_finer_output_is_of_the_voices_that_its_mean_is_of(frames: int):
    who, rng = np.repeat([0, 1, 2], [60, 60, 7]), np.random.default_rng(0)
    emb = np.eye(8)[who] + 0.1 * rng.normal(size=(len(who), 8))
    probs = np.zeros((8 * len(who), 2), np.float32)
    probs[:, 0] = rng.uniform(0.5, 0.9, len(probs))
    fine = Whole(probs[: 8 * frames - 3], emb[:frames], 1, 8)
    coarse = Whole(np.stack([part.mean(axis=0) for part in np.split(probs[: 8 * frames], frames)]), emb[:frames], 1)
    found, expected = (whole.voices(ClusteringConfig(0.4)) for whole in (fine, coarse))
    assert expected.shape[1] == 2
    np.testing.assert_allclose(found.sum(axis=1), fine.probs.sum(axis=1), atol=1e-5)
    assert (found.argmax(axis=1) == expected.argmax(axis=1).repeat(8)[: len(found)]).all()
    np.testing.assert_array_equal(fine.fine_emb, emb[:frames].repeat(8, axis=0)[: len(found)])


def test_a_stream_has_as_many_slots_as_speakers_are_asked_for(alone: Diarizer):
    voices = grouped(alone)
    assert [voices.stream("1s", max_speakers=most).num_slots for most in (None, 3, 12, 100)] == [8, 8, 12, 40]
    fixed = voices.stream(voices.presets["1s"], max_speakers=12)
    assert (fixed.num_slots, fixed.postprocess) == (8, voices.postprocess)


def test_more_than_eight_are_found_where_more_are_asked_for(alone: Diarizer, monkeypatch: pytest.MonkeyPatch):
    emb = np.repeat(np.eye(12), 30, axis=0)
    probs = np.tile(np.float32([0.9, 0.0]), (len(emb), 1))

    def heard(_: Sortformer, blocks: Iterable[np.ndarray], *__: object) -> Whole:
        assert len(list(blocks)) > 1
        return Whole(probs, emb, 1)

    monkeypatch.setattr("sortformer.inference.in_windows", heard)
    wave = chirp(28.8, 16_000)
    with pytest.warns(UserWarning, match=r"how many there may be at most \(max_speakers\), up to 40"):
        grouped(alone)(wave, sample_rate=16_000)
    for asked, count in (({}, 8), ({"num_speakers": 12}, 12), ({"max_speakers": 10}, 10), ({"min_speakers": 9}, 12)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the limit on speakers
            assert len(grouped(alone)(wave, sample_rate=16_000, **asked).speakers) == count


@pytest.mark.parametrize("voices", [False, True])
def test_models_of_ours_hear_recordings_alike_loud_and_nvidias_as_they_are(voices: bool):
    wave = chirp(3.0, 16_000)
    quiet = wave * np.float32(0.01 / np.abs(wave).max())
    for normalize, same in (("fixed", True), ("none", False)):
        config = small_config()
        model = small_model(replace(config, features=replace(config.features, normalize=normalize)))
        diarizer = Diarizer(model, PostprocessConfig(), "small")
        diarizer = grouped(diarizer) if voices else diarizer
        for factor in (10, 90):
            louder, found = (diarizer.embeddings(each, sample_rate=16_000).data for each in (quiet * factor, quiet))
            assert np.allclose(louder, found, atol=0.01) is same  # levels are known to 0.2 dB


def test_how_loud_a_recording_is_is_what_was_heard_of_it_and_not_what_a_window_holds(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sortformer.offline.WINDOW_FRAMES", 25)
    monkeypatch.setattr("sortformer.offline.MARGIN_FRAMES", 0)
    config = small_config()
    model = small_model(replace(config, features=replace(config.features, normalize="fixed")))
    diarizer = grouped(Diarizer(model, PostprocessConfig(), "small"))
    wave = chirp(4.0, 16_000)
    fading = np.concatenate([wave[:32_000], 0.01 * wave[32_000:]])
    level = UNHEARD.after(fading[:32_000])
    found = diarizer.embeddings(fading, sample_rate=16_000).data
    with monkeypatch.context() as patch:
        patch.setattr("sortformer.offline.alike_loud", lambda samples, _: alike_loud(samples, level.value))
        np.testing.assert_allclose(found, diarizer.embeddings(fading, sample_rate=16_000).data, atol=0.05)
    alone = diarizer.embeddings(fading[32_000:], sample_rate=16_000).data
    assert not np.allclose(found[25:], alone[: len(found) - 25], atol=0.05)


def test_what_two_windows_hold_is_heard_once(monkeypatch: pytest.MonkeyPatch):
    heard, after = list[np.ndarray](), Level.after

    def counting(level: Level, samples: np.ndarray) -> Level:
        heard.append(samples)
        return after(level, samples)

    monkeypatch.setattr(Level, "after", counting)
    monkeypatch.setattr("sortformer.offline.WINDOW_FRAMES", 12)
    monkeypatch.setattr("sortformer.offline.MARGIN_FRAMES", 6)
    wave = chirp(4.0, 16_000)
    in_windows(small_model(small_config()), np.array_split(wave, 7))
    np.testing.assert_array_equal(np.concatenate(heard), wave)
    assert len(heard) > 3
