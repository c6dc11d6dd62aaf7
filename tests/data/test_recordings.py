"""Crops of real recordings: their samples and turns, in order of arrival, with a slot for every speaker."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sortformer import audio
from sortformer.annotation import Diarization, Turn
from sortformer.audio.loudness import alike_loud
from sortformer.config.data import DataConfig, RecordingsConfig
from sortformer.config.model import FeatureConfig, HeadConfig, ModelConfig
from sortformer.config.simulation import ChannelConfig
from sortformer.data import Crop, Crops, Recordings
from sortformer.data.sources import Sources
from sortformer.errors import InputError
from sortformer.losses import align
from sortformer.manifests.entry import SLACK_S
from sortformer.simulate.channel import CLEAN
from sortformer.simulate.rerecord import rerecord
from tests.audio.makers import fading_aac
from tests.data.corpora import corpus

MODEL = ModelConfig(head=HeadConfig(num_slots=2))
MEETING = ((0.5, 4.0, "ann"), (3.0, 6.0, "bob"), (5.5, 9.0, "ann"), (9.5, 11.0, "cec"), (10.0, 11.9, "bob"))
SHORT = ((0.0, 1.0, "dan"), (0.0, 1.5, "eve"))


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Recordings:
    folder = tmp_path_factory.mktemp("corpus")
    return Recordings.read(corpus(folder, {"meeting": (12.0, MEETING), "short": (2.0, SHORT)}))


def labelled(turns, start_s: float, num_frames: int) -> dict[str, list[int]]:
    """Return the activity of frames from a time on, by definition: half of 80 ms or more, counted in samples."""
    found = {}
    for speaker in sorted({turn[2] for turn in turns}):
        frames = []
        for frame in range(num_frames):
            samples = [round(start_s * 16_000) + 1280 * frame + sample for sample in range(0, 1280, 16)]
            covered = sum(
                any(name == speaker and start <= sample / 16_000 < end for start, end, name in turns)
                for sample in samples
            )
            frames.append(int(2 * covered >= len(samples)))
        if any(frames):
            found[speaker] = frames
    return found


@settings(max_examples=10)
@given(seed=st.integers(0, 10**6))
@example(seed=572)  # a turn begins where the crop ends
def test_a_crop_is_what_is_there(recordings, seed):
    crops = Crops(recordings, 3.0, 2, MODEL)
    crop = crops.draw(np.random.default_rng(seed))
    batch = crops.read(crop)
    first = round(crop.start_s * 16_000)
    whole = audio.read(recordings.entries[crop.recording].audio)
    count = int(batch.num_samples)
    np.testing.assert_array_equal(batch.wave[0, :count], whole[first : first + 48_000])
    assert not batch.wave[0, count:].any()
    end = crop.start_s + crop.duration_s  # the last frame extends past the crop, without speech that begins there
    turns = [(start, min(stop, end), speaker) for start, stop, speaker in (MEETING, SHORT)[crop.recording]]
    expected = labelled(turns, crop.start_s, 38)
    columns = [column.tolist() for column in batch.activity[0].T if column.any()]
    assert sorted(columns) == sorted(expected.values())
    arrivals = [column.index(1) for column in columns]
    assert arrivals == sorted(arrivals)
    assert (batch.voice == -1).all()
    assert batch.voice.shape == (1, 2)


def test_speakers_at_the_start_of_a_crop_arrive_together_and_may_take_either_slot(recordings):
    batch = Crops(recordings, 3.0, 2, MODEL).read(Crop(0, 3.2, 0.8))
    assert batch.activity[0, 0].tolist() == [1, 1]
    flipped = batch.activity.flip(2)
    valid = torch.ones(batch.activity.shape[:2], dtype=torch.bool)
    for answer in (batch.activity, flipped):
        assert align(9 * answer - 4, batch.activity, valid, by_arrival=True).equal(answer)


turns = st.lists(
    st.tuples(st.integers(0, 90), st.integers(1, 30), st.sampled_from("abcd")), min_size=1, max_size=12
).map(lambda drawn: tuple(Turn(start / 10, (start + length) / 10, name) for start, length, name in drawn))


@settings(max_examples=25)
@given(
    turns=turns,
    begin=st.integers(0, 60),
    duration=st.integers(5, 150),
    most=st.integers(1, 4),
    seed=st.integers(0, 10**6),
)
def test_nobody_is_ever_without_a_slot_and_nothing_else_is_left_out(recordings, turns, begin, duration, most, seed):
    reference = Diarization(turns, 10.0)
    alone = Recordings("made up", recordings.entries[:1], (reference,), (((begin / 10, 10.0),),))
    length = min(duration, 100 - begin) / 10
    times = [(turn.speaker, turn.start, turn.end) for turn in reference]

    def heard(start_s: float) -> int:
        return len({name for name, a, b in times if a < start_s + length - 1e-9 and b > start_s + 1e-9})

    possible = {hop for hop in range(10 * begin, round((10 - length) * 100) + 1) if heard(hop / 100) <= most}
    if not possible:
        with pytest.raises(InputError, match=r"^no stretch of .* s of the recordings in made up has at most"):
            Crops(alone, duration / 10, most, MODEL)
        return
    crops = Crops(alone, duration / 10, most, MODEL)
    rng = np.random.default_rng(seed)
    drawn = [crops.draw(rng) for _ in range(40 + 5 * len(possible) * (len(possible) < 30))]
    starts = {round(crop.start_s * 100) for crop in drawn}
    assert starts <= possible
    assert len(possible) > 5 or starts == possible
    assert all(crop.duration_s == pytest.approx(length) for crop in drawn)


def test_a_crop_of_one_slot_ends_before_and_begins_behind_another_turn_however_it_lies_between_hops(recordings):
    turns = (Turn(0.0, 10.0, "ann"), Turn(5.006, 6.004, "bob"))
    alone = Recordings("made up", recordings.entries[:1], (Diarization(turns, 10.0),), (((0.0, 10.0),),))
    crops, rng = Crops(alone, 1.0, 1, MODEL), np.random.default_rng(0)
    starts = {round(100 * crops.draw(rng).start_s) for _ in range(8000)}
    assert max(start for start in starts if start < 500) == 400
    assert min(start for start in starts if start > 500) == 601


def test_every_second_is_as_likely_as_any_other(tmp_path):
    found = Recordings.read(corpus(tmp_path, {"a": (30.0, MEETING[:1]), "b": (10.0, ()), "c": (1.0, SHORT)}))
    crops, rng = Crops(found, 2.0, 2, MODEL), np.random.default_rng(0)
    counts = np.bincount([crops.draw(rng).recording for _ in range(4000)]) / 4000
    assert counts == pytest.approx([30 / 41, 10 / 41, 1 / 41], abs=0.025)


def test_crops_stay_inside_the_uem(tmp_path):
    parts = {"a": [(1.004, 4.006), (8.0, 8.5)]}
    found = Recordings.read(corpus(tmp_path, {"a": (12.0, MEETING)}, parts=parts))
    crops, rng = Crops(found, 2.0, 2, MODEL), np.random.default_rng(0)
    drawn = [crops.draw(rng) for _ in range(1000)]
    assert all(
        any(a <= crop.start_s and crop.start_s + crop.duration_s <= b + 1e-6 for a, b in parts["a"]) for crop in drawn
    )
    assert {round(crop.duration_s, 6) for crop in drawn} == {2.0, 0.5}


def test_no_hop_of_a_uem_is_lost_to_floating_point(tmp_path):
    found = Recordings.read(corpus(tmp_path, {"a": (2.0, SHORT)}, parts={"a": [(0.07, 0.57)]}))
    crop = Crops(found, 2.0, 2, MODEL).draw(np.random.default_rng(0))
    assert (crop.start_s, crop.duration_s) == pytest.approx(
        (0.07, 0.5)
    )  # in hops: 7.000000000000001, 56.99999999999999


def test_a_window_outside_its_uem_has_nothing_to_draw_and_no_second_counts_twice(tmp_path):
    manifest = corpus(tmp_path, {"a": (12.0, MEETING)}, parts={"a": [(1.0, 4.0), (2.0, 4.5)]})
    assert Recordings.read(manifest).parts == (((1.0, 4.5),),)
    manifest.write_text(
        manifest.read_text().replace('"offset": 0.0, "duration": 12.0', '"offset": 6.0, "duration": 5.0')
    )
    outside = Recordings.read(manifest)
    assert outside.parts == ((),)
    with pytest.raises(InputError, match="no stretch"):
        Crops(outside, 2.0, 2, MODEL)


def test_windows_of_a_recording_and_other_rates(tmp_path):
    manifest = corpus(tmp_path, {"a": (12.0, MEETING)}, rate=8_000)
    whole = Recordings.read(manifest)
    text = manifest.read_text().replace('"offset": 0.0, "duration": 12.0', '"offset": 5.0, "duration": null')
    manifest.write_text(text)
    window = Recordings.read(manifest)
    assert window.entries[0].duration == 7.0
    expected = Crops(whole, 2.0, 2, MODEL).read(Crop(0, 6.0, 2.0))
    found = Crops(window, 2.0, 2, MODEL).read(Crop(0, 1.0, 2.0))
    torch.testing.assert_close(found.wave, expected.wave, atol=1e-4, rtol=0)
    assert found.activity.equal(expected.activity)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"rttm/a.rttm"', "null", r"names no RTTM .* for 'a', .*a\.wav: name one, or remove the entry"),
        ('"a.wav"', '"absent.wav"', "absent.wav does not exist"),
        ('"rttm/a.rttm"', '"absent.rttm"', "absent.rttm"),
        ('"duration": 2.0', '"duration": 2.2', r"a.wav lasts until 2\.20 s, but it ends at 2\.00 s"),
        ('"duration": 2.0', '"offset": 2.0', r"starts .*a.wav at 2\.00 s, but it ends at 2\.00 s"),
        ('"duration": 2.0', '"offset": 3.0', r"starts .*a.wav at 3\.00 s, but it ends at 2\.00 s"),
    ],
)
def test_what_is_missing_is_one_sentence_before_training(tmp_path, old, new, message):
    manifest = corpus(tmp_path, {"a": (2.0, SHORT)})
    manifest.write_text(manifest.read_text().replace(old, new))
    with pytest.raises(InputError, match=message):
        Recordings.read(manifest)


def test_the_duration_in_a_manifest_may_be_rounded_up(tmp_path):
    manifest = corpus(tmp_path, {"a": (2.0, SHORT)})
    manifest.write_text(manifest.read_text().replace('"duration": 2.0', f'"duration": {2.0 + 0.9 * SLACK_S}'))
    assert len(Recordings.read(manifest).entries) == 1


def test_models_of_ours_hear_crops_as_loud_as_diarize_does_whatever_their_level(tmp_path: Path):
    ours = replace(MODEL, features=FeatureConfig(normalize="fixed"))
    manifest = corpus(tmp_path, {"a": (4.0, SHORT)})
    loud = Crops(Recordings.read(manifest), 3.0, 2, ours).read(Crop(0, 2.0, 2.0))
    heard = audio.crop(tmp_path / "a.wav", 2.0, 2.0)
    np.testing.assert_array_equal(loud.wave[0, :32_000], alike_loud(heard))
    assert not loud.wave[0, 32_000:].any()
    wave, rate = soundfile.read(tmp_path / "a.wav", dtype="float32")
    soundfile.write(tmp_path / "a.wav", 0.05 * wave + 0.1, rate, subtype="FLOAT")
    soft = Crops(Recordings.read(manifest), 3.0, 2, ours).read(Crop(0, 2.0, 2.0))
    torch.testing.assert_close(soft.wave, loud.wave, atol=0.02, rtol=0)


def test_a_header_that_only_estimates_the_duration_is_not_believed(tmp_path: Path):
    manifest = corpus(tmp_path, {"a": (8.0, SHORT)})
    fading_aac(tmp_path / "fading.aac").replace(tmp_path / "a.wav")
    assert Recordings.read(manifest).entries[0].duration == 8.0
    manifest.write_text(manifest.read_text().replace('"duration": 8.0', '"duration": null'))
    assert Recordings.read(manifest).entries[0].duration == pytest.approx(8.1, abs=0.1)


def test_a_recording_that_has_become_shorter(tmp_path: Path):
    crops = Crops(Recordings.read(corpus(tmp_path, {"a": (60.0, SHORT)})), 2.0, 2, MODEL)
    corpus(tmp_path, {"a": (2.0, SHORT)})
    assert crops.read(Crop(0, 1.5, 2.0)).num_samples.tolist() == [8_000]
    with pytest.raises(InputError, match=r"ends before 30\.00 s"):
        crops.read(Crop(0, 30.0, 2.0))


def test_another_channel_leaves_labels_and_padding(recordings):
    crops = Crops(recordings, 3.0, 2, MODEL)
    batch = crops.read(Crop(1, 0.0, 2.0))
    noisy = ChannelConfig(clean_probability=0.0, noise_probability=1.0, snr_db=(10.0, 10.0))
    one, other = (rerecord(batch, noisy, np.random.default_rng(seed)) for seed in (0, 1))
    assert rerecord(batch, noisy, np.random.default_rng(0)).wave.equal(one.wave)
    assert not one.wave.equal(other.wave)
    assert not one.wave.equal(batch.wave)
    assert not one.wave[0, 32_000:].any()
    assert one.activity.equal(batch.activity)
    silent = replace(batch, activity=torch.zeros_like(batch.activity))
    assert torch.isfinite(rerecord(silent, noisy, np.random.default_rng(0)).wave).all()
    clean = ChannelConfig(clean_probability=1.0, level_dbfs=(-20.0, -20.0))
    wave = rerecord(batch, clean, np.random.default_rng(0)).wave[0, 1_000:31_000]
    gain = (wave * batch.wave[0, 1_000:31_000]).sum() / batch.wave[0, 1_000:31_000].square().sum()
    torch.testing.assert_close(wave, gain * batch.wave[0, 1_000:31_000], atol=1e-3, rtol=0)


@pytest.mark.parametrize(("spoken", "snr_db"), [(0.0, 10.0), (1.0, 10.0), (0.5, 7.0)])
def test_noise_is_measured_against_speech_and_where_there_is_none_against_the_recording(recordings, spoken, snr_db):
    noisy = replace(CLEAN, noise_probability=1.0, snr_db=(10.0, 10.0), noise_swing_db=(0.0, 0.0))
    batch = Crops(recordings, 3.0, 2, MODEL).read(Crop(0, 1.0, 3.0))
    active = (torch.arange(batch.activity.shape[1]) < spoken * batch.activity.shape[1]).float()
    batch = replace(batch, activity=torch.stack([active, torch.zeros_like(active)], dim=1)[None])
    wave = rerecord(batch, noisy, np.random.default_rng(0)).wave
    gain = (wave * batch.wave).sum() / batch.wave.square().sum()
    rest = wave - gain * batch.wave
    measured = 10 * ((gain * batch.wave).square().sum() / rest.square().sum()).log10()
    assert float(measured) == pytest.approx(snr_db, abs=0.5)


def test_sources_are_the_same_wherever_they_lie_and_others_with_another_border(tmp_path: Path):
    def content(folder: str, end_s: float) -> str:
        manifest = corpus(tmp_path / folder, {"a": (9.0, ((0.5, end_s, "ann"), (3.0, 6.0, "bob")))})
        return Sources.load(DataConfig(recordings=(RecordingsConfig(str(manifest)),))).content

    assert content("one", 4.0) == content("another", 4.0) != content("moved", 4.01)


def test_another_window_or_region_without_a_turn_is_another_source(tmp_path: Path):
    def content(offset: str, end_s: float = 9.0) -> str:
        manifest = corpus(tmp_path, {"a": (9.0, ())}, parts={"a": [(0.0, end_s)]})
        text = manifest.read_text()
        manifest.write_text(text.replace('"offset": 0.0, "duration": 9.0', f'"offset": {offset}, "duration": 5.0'))
        return Sources.load(DataConfig(recordings=(RecordingsConfig(str(manifest)),))).content

    assert content("1.0") == content("1.0") != content("2.0")
    assert content("1.0") != content("1.0", end_s=5.0)
