"""Recordings at 8 kHz are recognised by their spectrum, and use a separate subsampling, also in a stream."""

from dataclasses import replace

import numpy as np
import pytest
import soxr
import torch

from sortformer import audio, checkpoint
from sortformer.audio.loudness import UNHEARD, levelled
from sortformer.bandwidth import is_narrow, sounding
from sortformer.config.model import EncoderConfig, FeatureConfig, ModelConfig
from sortformer.config.stream import SpeakerCacheConfig, StreamConfig
from sortformer.errors import ConfigError
from sortformer.features import FIXED_MEAN, FIXED_STD, LogMel, narrow_bands
from sortformer.streaming import Session
from sortformer.streaming.front import hear, next_chunk, start_front
from tests.small_models import SHAPES, small_model
from tests.streaming.tiny import noise

LOG_MEL = LogMel(FeatureConfig(normalize="fixed"))
MODEL = small_model(SHAPES["narrowband"])


def below(hz: float, wave: np.ndarray) -> np.ndarray:
    spectrum = np.fft.rfft(wave)
    spectrum[np.fft.rfftfreq(len(wave), 1 / 16_000) > hz] = 0
    return np.fft.irfft(spectrum, len(wave)).astype(np.float32)


def found_narrow(wave: np.ndarray) -> bool:
    feats, lengths = LOG_MEL(torch.from_numpy(levelled(wave, UNHEARD.after(wave).value))[None])
    return bool(is_narrow(sounding(feats, torch.arange(feats.shape[1]) < lengths[:, None])))


@pytest.mark.parametrize("hz", [3_200, 3_950])
def test_a_meeting_is_wide_and_the_same_by_telephone_is_not(hz: int):
    meeting = audio.read("demos/meeting.wav")
    assert not found_narrow(meeting)
    call = below(hz, meeting)
    assert found_narrow(call)
    assert found_narrow(np.round(call * 2**15).astype(np.float32) / 2**15)  # rounding to 16 bits is no sound
    assert found_narrow(audio.read(soxr.resample(meeting, 16_000, 8_000), sample_rate=8_000))


def test_a_click_makes_no_call_wide_and_a_second_voice_does():
    call = below(3_800, noise(160_000))
    call[80_000] = 1.0
    assert found_narrow(call)
    call[40_000:56_000] = noise(16_000, seed=1)
    assert not found_narrow(call)


def test_frames_are_counted_in_which_each_half_sounds():
    lower, upper = torch.tensor([-14.0, -14.0, -15.0, -14.0]), torch.tensor([-15.0, -14.0, -15.0, -14.0])
    bands = narrow_bands(80)
    log_power = torch.cat([lower[:, None].expand(-1, bands), upper[:, None].expand(-1, 80 - bands)], dim=1)
    valid = torch.tensor([[True, True, True, False]])
    assert sounding(((log_power - FIXED_MEAN) / FIXED_STD)[None], valid).tolist() == [[2, 1]]


def test_a_recording_is_narrow_if_one_frame_in_twenty_sounds_above_at_most():
    assert is_narrow(torch.tensor([[100, 0], [100, 5], [100, 6], [0, 0], [0, 5]])).tolist() == [
        True,
        True,
        *3 * [False],
    ]


def test_silence_is_not_narrow():
    assert not found_narrow(np.zeros(16_000, dtype=np.float32))


def test_rows_of_a_batch_are_heard_each_by_its_own_subsampling():
    wide = noise(48_000)
    rows = [wide, below(3_800, wide)]
    with torch.no_grad():
        both = MODEL(torch.from_numpy(np.stack(rows)))
        for row, wave in enumerate(rows):
            alone = MODEL(torch.from_numpy(wave)[None])
            torch.testing.assert_close(both.logits[row], alone.logits[0])
        feats, lengths = MODEL.features(torch.from_numpy(np.stack(rows)))
        emb, _ = MODEL.encoder.subsample(feats, lengths)
        torch.testing.assert_close(emb[0], MODEL.encoder.pre_encode(feats, lengths)[0][0])
        lower = feats[..., : narrow_bands(16)]
        torch.testing.assert_close(emb[1], MODEL.encoder.narrowband(lower, lengths)[0][1])
        told, _ = MODEL.encoder.subsample(feats, lengths, torch.tensor([True, False]))  # against what it would detect
        torch.testing.assert_close(told[0], MODEL.encoder.narrowband(lower, lengths)[0][0])
        torch.testing.assert_close(told[1], MODEL.encoder.pre_encode(feats, lengths)[0][1])


def test_each_process_that_trains_has_a_gradient_for_both():
    model = small_model(SHAPES["narrowband"]).train()
    model(torch.from_numpy(below(3_800, noise(16_000)))[None]).logits.sum().backward()
    assert all(parameter.grad is not None for parameter in model.encoder.parameters())
    assert not any(parameter.grad.any() for parameter in model.encoder.pre_encode.parameters())
    assert any(parameter.grad.any() for parameter in model.encoder.narrowband.parameters())


def test_a_stream_in_one_chunk_is_heard_as_the_whole_call_is():
    call = below(3_800, noise(32_000))
    front = hear(MODEL.features, start_front(MODEL.features), call, last=True)
    _, chunk = next_chunk(MODEL.features, MODEL.encoder, StreamConfig(chunk_frames=100), front)
    lengths = torch.tensor([front.mel.shape[1]])
    with torch.no_grad():
        whole, _ = MODEL.encoder.subsample(front.mel, lengths)
        assert not torch.allclose(whole, MODEL.encoder.pre_encode(front.mel, lengths)[0], atol=0.01)
    assert chunk is not None
    torch.testing.assert_close(chunk.emb, whole)


def test_a_stream_hears_a_call_alike_however_it_is_cut():
    call, found = below(3_800, noise(96_000)), []
    config = StreamConfig(chunk_frames=6, right_context_frames=1, speaker_cache=SpeakerCacheConfig(frames=14))
    for cuts in ([], [1, 20_000, 71_111], range(1_000, 96_000, 1_000)):
        session = Session(MODEL, config)
        parts = [session.push(part).probs for part in np.split(call, cuts)]
        found.append(np.concatenate([*parts, session.flush().probs]))
    np.testing.assert_array_equal(found[1], found[0])
    np.testing.assert_array_equal(found[2], found[0])


def test_both_subsamplings_are_saved(tmp_path):
    checkpoint.save(tmp_path / "model", MODEL)
    loaded, _ = checkpoint.load(tmp_path / "model")
    for name, weights in MODEL.state_dict().items():
        assert torch.equal(weights, loaded.state_dict()[name]), name


@pytest.mark.parametrize("features", [FeatureConfig(), FeatureConfig(num_mels=4, normalize="fixed")])
def test_features_that_do_not_tell_are_refused(features: FeatureConfig):
    with pytest.raises(ConfigError, match="narrowband_channels"):
        ModelConfig(features, EncoderConfig(narrowband_channels=8))


def test_a_subsampling_without_channels_is_refused():
    with pytest.raises(ConfigError, match="encoder narrowband_channels must be >= 1"):
        replace(EncoderConfig(), narrowband_channels=0)
