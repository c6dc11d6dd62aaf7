"""Simulation of conversations from single voices: cast, script, voices, channel, labels."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from sortformer.config.model import ModelConfig
from sortformer.config.simulation import SimulationConfig
from sortformer.errors import InputError, counted
from sortformer.simulate.burst_pool import BurstPool
from sortformer.simulate.casting import Caster, VoiceTape
from sortformer.simulate.channel import ChannelPlan, draw_channel, stack_plans
from sortformer.simulate.conversations import Conversations
from sortformer.simulate.events import Delivery, Events, Note, noted, played
from sortformer.simulate.outline import Outline, parametric_outline
from sortformer.simulate.pauses import Pauses
from sortformer.simulate.render import BLOCK_SAMPLES, padded_samples, render
from sortformer.simulate.rooms import Rooms
from sortformer.simulate.stage import Stage
from sortformer.simulate.targets import arrival_targets, bridged
from sortformer.simulate.turn_patterns import TurnPatterns
from sortformer.simulate.voice_bank import VoiceBank

__all__ = ["Script", "Simulator"]

_SHORTEST_TURN = 15  # hops
_OURS = ModelConfig()


@lru_cache(maxsize=4)
def _audio_on(sounds: VoiceBank | BurstPool, device: torch.device) -> Tensor:
    """Return sounds on a device, cached there for all simulators that use them."""
    return torch.from_numpy(np.array(sounds.audio)).to(device)  # copied: a memory-mapped array is read-only


def _audio(sounds: VoiceBank | BurstPool, device: torch.device) -> np.ndarray | Tensor:
    """Return sounds as ``played`` takes them: on the CPU, the array, which may be memory-mapped."""
    return sounds.audio if device.type == "cpu" else _audio_on(sounds, device)


@dataclass(frozen=True, slots=True, eq=False)
class Script:
    """A batch of conversations before it is rendered: who says what when, and through which channel.

    Attributes:
        events: sounds from the bank, on the tracks that ``render`` takes.
        bursts: sounds from a pool, on one track; empty without a pool, when ``render`` makes the bursts.
        active_samples, plan, num_samples: arguments of ``render``.
        noise_seeds: seed of the noise of each conversation.
        activity, voice: as in ``Conversations``.
    """

    events: Events
    bursts: Events
    active_samples: Tensor
    plan: ChannelPlan
    num_samples: int
    noise_seeds: tuple[int, ...]
    activity: Tensor
    voice: Tensor


class Simulator:
    """Simulates batches of conversations from a bank of voices.

    Args:
        bank: the voices.
        config: the settings of the simulation.
        turn_patterns: real turn-taking to replay; without it all turn-taking is parametric.
        rooms: impulse responses; without them all voices are dry.
        bursts: the pool that bursts are drawn from; without it they are made for each conversation.
        model: the model whose frame grid and labelling the targets follow.

    Raises:
        InputError: if the bank has fewer speakers than a conversation may need.
    """

    def __init__(
        self,
        bank: VoiceBank,
        config: SimulationConfig,
        turn_patterns: TurnPatterns | None = None,
        rooms: Rooms | None = None,
        model: ModelConfig = _OURS,
        bursts: BurstPool | None = None,
    ) -> None:
        self.bank = bank
        self.config = config
        self._patterns = turn_patterns
        self._rooms = rooms
        self._bursts = bursts
        self._pauses = Pauses(bank)
        self._caster = Caster(bank, config.casting)
        self._grid = model.grid
        self._model = model
        most = len(config.speaker_weights)
        if self._caster.num_speakers < most:
            raise InputError(
                f"the bank has {counted(self._caster.num_speakers, 'speaker')}, but conversations need up to {most}; "
                "shorten speaker_weights or add voices"
            )

    def batch(self, generator: torch.Generator, batch_size: int, duration_s: float) -> Conversations:
        """Make ``batch_size`` conversations of ``duration_s`` seconds, on the CPU: a script, rendered."""
        return self.render(self.script(generator, batch_size, duration_s))

    def script(
        self, generator: torch.Generator, batch_size: int, duration_s: float, rows: Sequence[int] | None = None
    ) -> Script:
        """Draw ``batch_size`` conversations of ``duration_s`` seconds, or only some ``rows`` of them: the cheap part.

        All randomness comes from ``generator`` (on the CPU): the same state gives the same bits on the same device. A
        row does not depend on which other rows are drawn, so that processes can share a batch.
        """
        num_samples = self._grid.samples(duration_s)
        num_hops = self._grid.feature_frames(num_samples)
        if batch_size < 1 or num_hops < 1:
            raise InputError(f"a batch needs at least one conversation of 10 ms, got {batch_size} of {duration_s} s")
        seeds = torch.randint(2**62, (batch_size, 2), generator=generator).tolist()
        seeds = seeds if rows is None else [seeds[row] for row in rows]
        stage = Stage(self.bank, len(seeds), self.config.num_slots, num_hops)
        voices = np.full((len(seeds), self.config.num_slots), -1, dtype=np.int64)
        plans: list[ChannelPlan] = []
        bursts: list[Note] = []
        for row, (seed, _) in enumerate(seeds):
            rng = np.random.default_rng(seed)
            plan = draw_channel(rng, self.config.channel, self.config.num_slots, self._rooms)
            plans.append(plan)
            self._perform(rng, stage, row, voices[row])
            if np.isfinite(plan.babble_snr_db):
                self._murmur(rng, stage, row, set(voices[row].tolist()), bool(plan.bystander))
            if self._bursts is not None and plan.burst_hz:
                own = np.random.default_rng(int(plan.burst_seed))
                bursts += self._bursts.draw(own, row, num_samples, float(plan.burst_hz), plan.burst_shares)
        spoken = bridged(stage.activity, self._grid.feature_frames(self._grid.samples(self.config.shortest_pause_s)))
        activity, order = arrival_targets(spoken, self._grid, self._model.labelling)
        speaking = stage.activity.any(axis=1).sum(axis=1)
        return Script(
            events=noted(stage.notes),
            bursts=noted(bursts),
            active_samples=torch.from_numpy(speaking * float(self._grid.hop_samples)).float(),
            plan=stack_plans(plans),
            num_samples=num_samples,
            noise_seeds=tuple(seed for _, seed in seeds),
            activity=torch.from_numpy(activity),
            voice=torch.from_numpy(np.where(activity.any(axis=1), np.take_along_axis(voices, order, axis=1), -1)),
        )

    def render(self, script: Script, device: str | torch.device = "cpu") -> Conversations:
        """Render a script: the expensive part, on any device."""
        device = torch.device(device)
        rows, paths, length = len(script.voice), self.config.num_slots + 1, padded_samples(script.num_samples)
        bursts = None
        if self._bursts is not None:
            bursts = played(script.bursts, _audio(self._bursts, device), rows, 1, script.num_samples)[:, 0]
        wave = render(
            played(script.events, _audio(self.bank, device), rows, paths, length),
            script.events.occupied(rows, paths, length // BLOCK_SAMPLES, BLOCK_SAMPLES),
            script.active_samples.to(device),
            script.plan,
            self._rooms,
            script.num_samples,
            [torch.Generator(device=device).manual_seed(seed) for seed in script.noise_seeds],
            self._pauses,
            bursts,
        )
        return Conversations(
            wave=wave,
            activity=script.activity.to(device),
            num_samples=torch.full((len(wave),), script.num_samples, device=device),
            voice=script.voice.to(device),
        )

    def _perform(self, rng: np.random.Generator, stage: Stage, row: int, voices: np.ndarray) -> None:
        """Cast one conversation, lay it out on the stage, and set the voices of its slots."""
        if self.config.speechless_probability and rng.random() < self.config.speechless_probability:
            return
        weights = np.array(self.config.speaker_weights)
        count = 1 + int(rng.choice(len(weights), p=weights / weights.sum()))
        cast = self._caster.choose(rng, count)
        voices[:count] = cast
        outline = self._outline(rng, count, stage.num_hops)
        tapes = [VoiceTape(self.bank, int(voice), rng) for voice in cast]
        casting = self.config.casting
        voice_gain_db = rng.uniform(-casting.voice_gain_db, casting.voice_gain_db, count)
        free = np.zeros(count, dtype=np.int64)
        for turn in np.argsort(outline.start, kind="stable"):
            slot = int(outline.speaker[turn])
            end = min(int(outline.start[turn] + outline.length[turn]), stage.num_hops)
            start = max(int(outline.start[turn]), int(free[slot]))
            if end - start < _SHORTEST_TURN:
                continue
            gain = 10 ** ((voice_gain_db[slot] + casting.turn_gain_db * rng.normal()) / 20)
            # Drawn only if enabled: otherwise the result of a seed would change.
            tilt = rng.uniform(-casting.turn_tilt, casting.turn_tilt) if casting.turn_tilt else 0.0
            speed = 1 + rng.uniform(-casting.turn_speed, casting.turn_speed) if casting.turn_speed else 1.0
            delivery = Delivery(gain, tilt, speed)
            for piece in tapes[slot].read(round((end - start) * speed)):
                stage.play(row, slot, piece.source, start + round(piece.at / speed), piece.length, delivery)
            free[slot] = end

    def _outline(self, rng: np.random.Generator, count: int, num_hops: int) -> Outline:
        replay, lively = rng.random(2)
        if self._patterns is not None and replay < self.config.replay_probability:
            return self._patterns.window(rng, count, num_hops, lively < self.config.lively_probability)
        return parametric_outline(rng, count, num_hops, self.config.turn_taking)

    def _murmur(self, rng: np.random.Generator, stage: Stage, row: int, taken: set[int], bystander: bool) -> None:
        """Lay out the background voices: continuous babble of many, or a bystander who talks now and then."""
        if bystander and taken == {-1}:
            return
        low, high = (1, 1) if bystander else self.config.channel.babble_voices
        for voice in rng.integers(len(self.bank.voices), size=int(rng.integers(low, high + 1))):
            if int(voice) not in taken:
                tape = VoiceTape(self.bank, int(voice), rng)
                for start, length in self._remarks(rng, stage.num_hops) if bystander else [(0, stage.num_hops)]:
                    for piece in tape.read(length):
                        stage.murmur(row, piece.source, start + piece.at, piece.length)

    def _remarks(self, rng: np.random.Generator, num_hops: int) -> list[tuple[int, int]]:
        """Return about half of the turns of one speaker, each with its start and length."""
        outline = parametric_outline(rng, 1, num_hops, self.config.turn_taking)
        said = rng.random(len(outline.start)) < 0.5
        return list(zip(outline.start[said].tolist(), outline.length[said].tolist(), strict=True))
