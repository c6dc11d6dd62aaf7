"""From dry voices to a recording: all linear paths in one overlap-add convolution, then the recorder."""

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from sortformer.grid import SAMPLE_RATE
from sortformer.simulate.bursts import bursts as make_bursts
from sortformer.simulate.channel import FILTER_BINS, ChannelPlan
from sortformer.simulate.pauses import Pauses
from sortformer.simulate.rooms import ROOM_SAMPLES, Rooms

__all__ = ["BLOCK_SAMPLES", "FILTER_DELAY", "mu_law", "padded_samples", "recorded_between", "render"]

_FFT = 32768
_FILTER = 2 * (FILTER_BINS - 1)
FILTER_DELAY = _FILTER // 2  # delay of the linear-phase filters, in samples; removed at the end
BLOCK_SAMPLES = _FFT - ROOM_SAMPLES - _FILTER
_TAIL = _FFT - BLOCK_SAMPLES
_SWELL_SAMPLES = SAMPLE_RATE // 2
_MU = 255.0
_SILENCE = 1e-10  # power below which a conversation counts as silent
_SILENT_NOISE_DBFS = -60.0  # stands for the level of speech in a silent conversation, which scales its noise


def padded_samples(num_samples: int) -> int:
    """Return the length of the tracks for a recording of ``num_samples``: whole blocks, with room for the delay."""
    return -(-(num_samples + FILTER_DELAY) // BLOCK_SAMPLES) * BLOCK_SAMPLES


def render(
    tracks: Tensor,
    occupied: np.ndarray,
    active_samples: Tensor,
    plan: ChannelPlan,
    rooms: Rooms | None,
    num_samples: int,
    generators: Sequence[torch.Generator],
    pauses: Pauses | None = None,
    bursts: Tensor | None = None,
) -> Tensor:
    """Mix the voices of each conversation through its channel.

    Args:
        tracks: (B, S + 1, K * BLOCK_SAMPLES) dry voices and, last, the babble.
        occupied: (B, S + 1, K) bool, blocks that are not silent.
        active_samples: (B,) float number of samples with speech.
        plan: the channels, stacked.
        rooms: the rooms that ``plan.response`` indexes.
        num_samples: length of the result, at most K * BLOCK_SAMPLES - FILTER_DELAY.
        generators: one per conversation, for its noise, on the device of ``tracks``.
        pauses: the source of bursts that are pauses.
        bursts: (B, num_samples) bursts of unit power (None: they are made here).

    Returns:
        (B, num_samples) float32. No sample exceeds 0.99 before the recorder's band limit and quantisation, which
        together may raise a peak by some percent.
    """
    batch, paths, length = tracks.shape
    device = tracks.device
    blocks = tracks.view(batch, paths, length // BLOCK_SAMPLES, BLOCK_SAMPLES)
    filters = _filters(torch.from_numpy(plan.magnitude).to(device))
    transfer = torch.fft.rfft(filters, n=_FFT)
    speech_path = _through_rooms(transfer[:, :paths], plan, rooms)
    spectrum = torch.zeros(batch, blocks.shape[2], _FFT // 2 + 1, dtype=torch.complex64, device=device)
    for path in range(paths - 1):
        _add_path(spectrum, blocks[:, path], occupied[:, path], speech_path[:, path])
    power = _energy(spectrum) / active_samples.clamp(min=1)
    power = torch.where(power > _SILENCE, power, torch.full_like(power, 10 ** (_SILENT_NOISE_DBFS / 10)))
    if occupied[:, -1].any():
        babble = torch.zeros_like(spectrum)
        _add_path(babble, blocks[:, -1], occupied[:, -1], speech_path[:, -1])
        # Babble is continuous: its power is averaged over the recording. A bystander's is averaged over where it talks.
        sounding = tracks[:, -1].count_nonzero(dim=1)
        samples = torch.where(torch.from_numpy(plan.bystander).to(device), sounding, num_samples).clamp(min=1)
        scale = _scale(power, _energy(babble) / samples, plan.babble_snr_db)
        spectrum += babble * scale[:, None, None]
    shape = blocks.shape[2:]
    noise = torch.stack([torch.randn(shape, generator=generator, device=device) for generator in generators])
    noise *= _swell(noise.shape, plan, generators)
    scale = _scale(power, filters[:, -1].square().sum(-1), plan.snr_db)
    spectrum += torch.fft.rfft(noise, n=_FFT) * (transfer[:, -1] * scale[:, None])[:, None]
    wave = _overlap_add(spectrum, num_samples).contiguous()
    if bursts is None:
        _add_bursts(wave, power, plan, pauses)
    else:
        wave += bursts * _scale(power, torch.ones_like(power), plan.burst_snr_db)[:, None]
    return _record(wave, power, plan)


def _filters(magnitude: Tensor) -> Tensor:
    """Turn magnitudes (..., FILTER_BINS) into linear-phase filters (..., 2 * FILTER_BINS - 2)."""
    centred = torch.fft.irfft(magnitude.to(torch.complex64), n=_FILTER).roll(FILTER_DELAY, -1)
    return centred * torch.hann_window(_FILTER, device=magnitude.device)


def _through_rooms(transfer: Tensor, plan: ChannelPlan, rooms: Rooms | None) -> Tensor:
    wet_rows = np.flatnonzero(plan.wet)
    if rooms is None or len(wet_rows) == 0:
        return transfer
    place = plan.response[wet_rows]
    responses = torch.from_numpy(rooms.responses[place[..., 0], place[..., 1]]).to(transfer.device)
    wet = torch.from_numpy(plan.wet[wet_rows]).to(transfer.device)[:, None, None]
    direct = torch.from_numpy(plan.direct[wet_rows]).to(transfer.device)[:, None, None]
    combined = transfer.clone()
    combined[torch.from_numpy(wet_rows)] *= torch.fft.rfft(responses, n=_FFT) * wet + direct
    return combined


def _add_path(spectrum: Tensor, blocks: Tensor, occupied: np.ndarray, transfer: Tensor) -> None:
    """Add the filtered blocks (B, K, BLOCK_SAMPLES) of one path where they are occupied."""
    row, block = (torch.from_numpy(index).to(spectrum.device) for index in np.nonzero(occupied))
    if len(row):
        spectrum[row, block] += torch.fft.rfft(blocks[row, block], n=_FFT) * transfer[row]


def _energy(spectrum: Tensor) -> Tensor:
    """Return the energy of each row, by Parseval's theorem (tails of blocks taken as independent)."""
    return torch.view_as_real(spectrum).flatten(1).square().sum(-1) * (2 / _FFT)


def _swell(shape: torch.Size, plan: ChannelPlan, generators: Sequence[torch.Generator]) -> Tensor:
    """Return a slowly varying gain for the noise, (B, K, BLOCK_SAMPLES), of unit mean power."""
    _, count, samples = shape
    size = (1, count * samples // _SWELL_SAMPLES)
    knots = torch.stack([torch.randn(size, generator=generator, device=generator.device) for generator in generators])
    gain = 10 ** (knots * torch.from_numpy(plan.noise_swing_db).to(knots.device)[:, None, None] / 20)
    gain = gain / gain.square().mean(dim=-1, keepdim=True).sqrt()
    return torch.nn.functional.interpolate(gain, size=count * samples, mode="linear").view(shape)


def _scale(speech_power: Tensor, power: Tensor, snr_db: np.ndarray) -> Tensor:
    ratio = torch.from_numpy(10 ** (-snr_db / 10)).to(power.device)
    return (speech_power * ratio / power.clamp(min=1e-12)).sqrt()


def _overlap_add(spectrum: Tensor, num_samples: int) -> Tensor:
    signal = torch.fft.irfft(spectrum, n=_FFT)
    batch, count, _ = signal.shape
    signal[:, 1:, :_TAIL] += signal[:, :-1, BLOCK_SAMPLES:]
    joined = signal[:, :, :BLOCK_SAMPLES].reshape(batch, count * BLOCK_SAMPLES)
    return joined[:, FILTER_DELAY : FILTER_DELAY + num_samples]


def _add_bursts(wave: Tensor, power: Tensor, plan: ChannelPlan, pauses: Pauses | None) -> None:
    for row in np.flatnonzero(plan.burst_hz):
        rng = np.random.default_rng(int(plan.burst_seed[row]))
        sound = make_bursts(rng, wave.shape[1], float(plan.burst_hz[row]), plan.burst_shares[row], pauses)
        wave[row] += torch.from_numpy(sound).to(wave.device) * (
            power[row].sqrt() * 10 ** (-float(plan.burst_snr_db[row]) / 20)
        )


def _record(wave: Tensor, power: Tensor, plan: ChannelPlan) -> Tensor:
    """Apply the recorder: hum, level, clipping, mu-law, band limit and quantisation."""
    for row in np.flatnonzero(np.isfinite(plan.hum_snr_db)):
        wave[row] += _hum(wave.shape[1], float(plan.hum_hz[row]), wave.device) * (
            power[row].sqrt() * 10 ** (-float(plan.hum_snr_db[row]) / 20)
        )
    peak = wave.abs().amax(dim=1).clamp(min=1e-6)
    level = torch.from_numpy(10 ** (plan.level_dbfs / 20)).to(wave.device)
    gain = torch.minimum(level / power.sqrt(), 0.99 / peak)
    wave *= gain[:, None]
    for row in np.flatnonzero(plan.clip_share < 1):
        limit = float(plan.clip_share[row]) * peak[row] * gain[row]
        wave[row] = wave[row].clamp(-limit, limit)
    for row in np.flatnonzero(plan.mu_law):
        wave[row] = mu_law(wave[row])
    for row in np.flatnonzero(np.isfinite(plan.recorded_hz[:, 1])):
        wave[row] = recorded_between(wave[row], *map(float, plan.recorded_hz[row]))
    for row in np.flatnonzero(plan.step):
        step = float(plan.step[row])
        wave[row] = (wave[row] / step).round() * step
    return wave


def recorded_between(wave: Tensor, first_hz: float, last_hz: float) -> Tensor:
    """Band-pass a wave (N,) between two frequencies; transition bands are a third of an octave below, 5 % above."""
    spectrum = torch.fft.rfft(wave)
    frequency = torch.linspace(0, SAMPLE_RATE / 2, len(spectrum), device=wave.device)
    kept = ((last_hz - frequency) / (0.05 * last_hz) + 1).clamp(0, 1)
    if first_hz:
        kept *= (frequency.clamp(min=1).log2() - math.log2(first_hz)).mul(3).add(1).clamp(0, 1)
    return torch.fft.irfft(spectrum * kept, n=len(wave))


def _hum(num_samples: int, mains_hz: float, device: torch.device) -> Tensor:
    """Return mains hum of unit power: the fundamental and three harmonics."""
    phase = torch.arange(num_samples, device=device, dtype=torch.float64).mul_(2 * math.pi * mains_hz / SAMPLE_RATE)
    parts = [(1, 1.0), (2, 0.7), (3, 0.5), (5, 0.3)]
    hum = sum(amplitude * torch.sin(harmonic * phase) for harmonic, amplitude in parts)
    return torch.as_tensor(hum, dtype=torch.float32) * math.sqrt(2 / sum(amplitude**2 for _, amplitude in parts))


def mu_law(wave: Tensor) -> Tensor:
    """Compress, quantise to 8 bits and expand (ITU-T G.711, continuous form)."""
    compressed = wave.sign() * torch.log1p(_MU * wave.abs()) / math.log1p(_MU)
    coarse = (compressed * 127).round() / 127
    return coarse.sign() * torch.expm1(coarse.abs() * math.log1p(_MU)) / _MU
