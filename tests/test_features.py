"""The log-mel front end: equal to librosa's in float64, independent of padding and of cuts of the audio."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sortformer import features
from sortformer.config.model import FeatureConfig
from sortformer.features import LogMel, mel_filterbank
from tests.strategies import spread

waves = st.builds(
    lambda seed, count, loudness: loudness * np.random.default_rng(seed).standard_normal(count),
    seed=st.integers(0, 2**32 - 1),
    count=spread(0, 6_000),
    loudness=st.sampled_from([1e-3, 0.1, 1.0]),
)


def _speechlike(samples: int, seed: int = 0) -> np.ndarray:
    """Return coloured noise in bursts over a faint floor: a wide dynamic range in time and frequency."""
    rng = np.random.default_rng(seed)
    noise = np.convolve(rng.standard_normal(samples), [1, 0.9, 0.7, 0.4, 0.2], mode="same")
    bursts = np.repeat(rng.uniform(0, 1, samples // 1_000 + 1) > 0.5, 1_000)[:samples]
    return (0.05 * noise * bursts + 1e-3 * rng.standard_normal(samples)).astype(np.float32)


@pytest.mark.oracle
@pytest.mark.parametrize("num_mels", [40, 80, 128])
def test_the_filterbank_is_librosas_bit_for_bit(num_mels):
    librosa = pytest.importorskip("librosa")
    expected = librosa.filters.mel(sr=16_000, n_fft=512, n_mels=num_mels, fmin=0, fmax=8_000)
    np.testing.assert_array_equal(mel_filterbank(num_mels), expected)


@pytest.mark.oracle
@pytest.mark.parametrize("num_mels", [80, 128])
@pytest.mark.filterwarnings("ignore:n_fft")
@pytest.mark.parametrize("samples", [160, 161, 399, 512, 16_000, 48_123])
def test_features_are_librosas_in_float64(num_mels, samples):
    pytest.importorskip("librosa")
    from tests.oracles.log_mel import log_mel

    wave = _speechlike(samples)
    features, frames = LogMel(FeatureConfig(num_mels))(torch.from_numpy(wave)[None])
    assert frames.tolist() == [samples // 160]
    np.testing.assert_allclose(features[0].numpy(), log_mel(wave, num_mels), atol=2e-4)


@pytest.mark.oracle
@pytest.mark.parametrize("num_mels", [80, 128])
def test_normalised_features_are_librosas_normalised_by_hand(num_mels):
    pytest.importorskip("librosa")
    from tests.oracles.log_mel import log_mel, normalized

    rows = [_speechlike(48_123, seed=1), _speechlike(20_001, seed=2)]
    batch, lengths = _batch(rows, filling=torch.nan)
    features, frames = LogMel(FeatureConfig(num_mels, normalize="per_feature"))(batch, lengths)
    for row, wave in enumerate(rows):
        expected = normalized(log_mel(wave, num_mels))
        np.testing.assert_allclose(features[row, : frames[row]].numpy(), expected, atol=2e-4)
        assert not features[row, frames[row] :].any()


@given(
    rows=st.lists(waves, min_size=1, max_size=4),
    extra=spread(0, 2_000),
    normalize=st.sampled_from(["none", "fixed", "per_feature"]),
)
@settings(max_examples=50)
def test_neither_padding_nor_other_rows_change_a_row(rows, extra, normalize):
    front = LogMel(FeatureConfig(16, normalize=normalize))
    batch, lengths = _batch(rows, filling=torch.nan, extra=extra)
    features, frames = front(batch, lengths)
    assert torch.isfinite(features).all()
    for row, wave in enumerate(rows):
        alone, count = front(torch.as_tensor(wave, dtype=torch.float32)[None])
        assert frames[row] == count[0] == len(wave) // 160
        # Compared as log-mel values: in bins that hardly vary, the deviation amplifies float32 rounding.
        scale = _deviation(wave) + 1e-5 if normalize == "per_feature" else torch.ones(16)
        torch.testing.assert_close(features[row, : frames[row]] * scale, alone[0] * scale, atol=1e-4, rtol=1e-4)
        assert not features[row, frames[row] :].any()


def _deviation(wave: np.ndarray) -> torch.Tensor:
    """The deviation (16,) of each log-mel bin of a recording; 0 where it has one frame or none."""
    plain, frames = LogMel(FeatureConfig(16))(torch.as_tensor(wave, dtype=torch.float32)[None])
    return plain[0].std(dim=0) if frames > 1 else torch.zeros(16)


def _batch(rows: list[np.ndarray], filling: float, extra: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Pad waves (N,) to a batch (B, N), with their lengths (B,)."""
    lengths = torch.tensor([len(row) for row in rows])
    batch = torch.full((len(rows), int(lengths.max()) + extra), filling)
    for row, wave in enumerate(rows):
        batch[row, : len(wave)] = torch.as_tensor(wave, dtype=torch.float32)
    return batch, lengths


@given(wave=waves, rows=st.integers(1, 3), normalize=st.sampled_from(["none", "fixed"]), data=st.data())
def test_any_cut_of_the_audio_gives_the_frames_of_the_whole(wave, rows, normalize, data):
    cuts = sorted(data.draw(st.lists(spread(0, len(wave)), max_size=10)))
    front = LogMel(FeatureConfig(16, normalize=normalize))
    batch = torch.stack([torch.as_tensor(wave, dtype=torch.float32).roll(row) for row in range(rows)])
    whole, _ = front(batch)
    state, frames = front.start(rows), []
    pieces = torch.tensor_split(batch, cuts, dim=1)
    for index, piece in enumerate(pieces):
        state, part = front.step(state, piece, last=index == len(pieces) - 1)
        frames.append(part)
    stepped = torch.cat(frames, dim=1)
    assert stepped.shape == whole.shape
    torch.testing.assert_close(stepped, whole, atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize("more", [0, 1, 159, 160, 161, 351, 352, 511, 512])
@pytest.mark.parametrize("parts", [1, 2])
def test_long_recordings_in_parts_give_what_they_give_at_once(more, parts, monkeypatch):
    wave, front = torch.from_numpy(_speechlike(parts * 10 * 160 + more))[None], LogMel(FeatureConfig(16))
    at_once, frames = front(wave)
    monkeypatch.setattr(features, "PART_FRAMES", 10)
    seen, stft = [], torch.stft
    monkeypatch.setattr(
        torch, "stft", lambda wave, *rest, **kept: seen.append(wave.shape[1]) or stft(wave, *rest, **kept)
    )
    in_parts, counted = front(wave)
    assert max(seen) == 9 * 160 + 512
    assert counted.tolist() == frames.tolist()
    torch.testing.assert_close(in_parts, at_once, atol=1e-5, rtol=0)


def test_fixed_normalisation_is_one_shift_and_one_scale():
    wave = torch.from_numpy(_speechlike(3_000))[None]
    plain, fixed = LogMel(FeatureConfig(16))(wave)[0], LogMel(FeatureConfig(16, normalize="fixed"))(wave)[0]
    torch.testing.assert_close(fixed, (plain + 9.5) / 3.5)


@given(count=spread(0, 4_000))
def test_a_frame_is_given_as_soon_as_its_window_is_complete(count):
    front = LogMel(FeatureConfig(16))
    _, frames = front.step(front.start(), torch.zeros(1, count))
    complete = sum(1 for frame in range(count) if frame * 160 + 256 <= count)
    assert frames.shape[1] == complete


def test_a_long_stream_remembers_less_than_a_window_and_a_hop():
    front = LogMel(FeatureConfig(16))
    state = front.start()
    for _ in range(200):
        state, _ = front.step(state, torch.zeros(1, 123))
    assert state.tail.shape[1] <= 512 + 160


def test_a_step_does_not_change_the_state_it_starts_from():
    front = LogMel(FeatureConfig(16))
    wave = torch.from_numpy(_speechlike(3_000))[None]
    state, _ = front.step(front.start(), wave[:, :1_000])
    _, first = front.step(state, wave[:, 1_000:])
    _, again = front.step(state, wave[:, 1_000:])
    torch.testing.assert_close(first, again, atol=0, rtol=0)
    assert first.any()


def test_normalised_features_cannot_be_stepped():
    front = LogMel(FeatureConfig(80, normalize="per_feature"))
    with pytest.raises(ValueError, match="normalised over the whole recording"):
        front.step(front.start(), torch.zeros(1, 160))


@pytest.mark.parametrize("samples", [0, 1, 159])
@pytest.mark.parametrize("normalize", ["none", "per_feature"])
def test_less_than_a_hop_has_no_frames(samples, normalize):
    features, frames = LogMel(FeatureConfig(80, normalize=normalize))(torch.zeros(2, samples))
    assert features.shape == (2, 0, 80)
    assert frames.tolist() == [0, 0]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
def test_samples_may_be_of_any_type(dtype):
    wave = 0.1 * torch.randn(1, 3_200, generator=torch.Generator().manual_seed(0))
    features = LogMel(FeatureConfig(80))
    torch.testing.assert_close(features(wave.to(dtype))[0], features(wave.to(dtype).float())[0])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_half_precision_of_a_model_is_not_that_of_its_features(dtype):
    wave = 0.1 * torch.randn(1, 3_200, generator=torch.Generator().manual_seed(0))
    config = FeatureConfig(80, normalize="fixed", tilt_range=(-9.0, -5.0))
    expected, features = LogMel(config)(wave)[0], LogMel(config).to(dtype)
    torch.testing.assert_close(features(wave)[0], expected, atol=0, rtol=0)
    assert features.double()(wave)[0].dtype is torch.float64
    torch.testing.assert_close(features.float()(wave)[0], expected, atol=0, rtol=0)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_autocast_does_not_reach_the_features(dtype):
    wave = torch.from_numpy(_speechlike(16_000))[None]
    features = LogMel(FeatureConfig(80, normalize="fixed", tilt_range=(-9.0, -5.0)))
    expected, stepped = features(wave)[0], features.step(features.start(), wave)[1]
    with torch.autocast("cpu", dtype):
        torch.testing.assert_close(features(wave)[0], expected, atol=0, rtol=0)
        torch.testing.assert_close(features.step(features.start(), wave)[1], stepped, atol=0, rtol=0)


def test_silence_is_the_logarithm_of_the_guard():
    features, _ = LogMel(FeatureConfig(80))(torch.zeros(1, 1_600))
    torch.testing.assert_close(features, torch.full((1, 10, 80), float(np.log(2.0**-24))))


def test_a_single_frame_normalises_to_zero():
    features, _ = LogMel(FeatureConfig(80, normalize="per_feature"))(torch.linspace(-1, 1, 200)[None])
    assert features.shape == (1, 1, 80)
    assert not features.any()
