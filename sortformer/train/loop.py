"""The training loop."""

import json
import math
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor, nn

from sortformer import checkpoint
from sortformer.config.strict import to_dict
from sortformer.config.train import TrainConfig
from sortformer.data import Sources, batches
from sortformer.errors import ConfigError
from sortformer.model import SortformerOutput
from sortformer.simulate import Conversations
from sortformer.train.evaluation import dev_conversations, dev_der
from sortformer.train.initial import initial_checkpoint
from sortformer.train.objective import objective
from sortformer.train.schedule import learning_rate, teacher_weight
from sortformer.train.state import TrainState
from sortformer.train.streamed import check_streams, draw_stream, streamed
from sortformer.train.teacher import VoiceTeacher

__all__ = ["train"]

Report = Callable[[dict[str, float]], None]


def train(
    config: TrainConfig,
    out: str | Path,
    *,
    device: str = "cpu",
    stop_after: int | None = None,
    report: Report | None = None,
) -> Path:
    """Train a model, or go on with the run in ``out``, and return the folder of its averaged weights.

    ``out`` gets ``log.jsonl`` (a line a step; the evaluations too), ``state.pt`` (to resume from) and ``model/``. A run
    that was stopped after N steps and resumed ends with the same bits as one that was not (on a CPU, with the same
    number of threads), and its log has no step twice. What is not finite is null in the log.

    On a CPU, call ``torch.set_flush_denormal(True)`` before anything else of torch, as the command does: moments that
    fade to denormal numbers slow it down many times. It changes the arithmetic of the whole process, which is why it is
    not done here.

    Args:
        stop_after: stop when so many steps are done in all, as if interrupted.
        report: called with every line of the log.

    Raises:
        InputError: if data, initial weights or the state to resume from cannot be read, or the recipe asks for another
            model than that of its initial weights.
        ConfigError: if the model has no use for a teacher, or cannot be trained as streamed where the recipe asks for
            that.
    """
    out, place = Path(out), torch.device(device)
    out.mkdir(parents=True, exist_ok=True)
    sources = Sources.load(config.data)
    initial = initial_checkpoint(config)
    model = initial.model.config
    config = replace(config, model=model)
    teacher = None
    if config.teacher is not None:
        if model.head.upsampling > 1:
            raise ConfigError("a teacher compares frames of 80 ms, and the output of this model is finer")
        if sources.bank is None:
            raise ConfigError("a teacher knows the voices of a bank: name one in [data]")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(config.seed)
            teacher = VoiceTeacher.read(config.teacher.table, sources.bank, model.encoder.dim, config.teacher.scale)
    if any(stage.streamed_probability for stage in config.stages):
        check_streams(model)
    state = TrainState.start(initial.model, config.optimizer, teacher, place)
    if (out / "state.pt").exists():
        state.load(out / "state.pt")
    _forget_after(out / "log.jsonl", state.step)
    (out / "config.json").write_text(json.dumps(to_dict(config), indent=2) + "\n", encoding="utf-8")
    dev = dev_conversations(config, model)
    last = min(config.steps, stop_after or config.steps)

    with (out / "log.jsonl").open("a", encoding="utf-8") as log:

        def write(line: dict[str, float]) -> None:
            finite = {key: value if math.isfinite(value) else None for key, value in line.items()}
            log.write(json.dumps(finite) + "\n")
            log.flush()
            if report is not None:
                report(line)

        for batch in batches(sources, config, model, state.step):
            if state.step >= last:
                break
            write(_step(state, _to(batch, place), config))
            if dev and (state.step % config.evaluate_every == 0 or state.step == config.steps):
                write({"step": state.step} | dev_der(state.average, dev, place))
            if state.step % config.checkpoint_every == 0 or state.step == last:
                state.save(out / "state.pt")
                checkpoint.save(out / "model", state.average, licence=initial.licence)
    return out / "model"


def _forget_after(log: Path, step: int) -> None:
    """Drop what a run logged between its last saved state and its end: those steps are taken again."""
    if log.exists():
        lines = log.read_text(encoding="utf-8").splitlines(keepends=True)
        kept = [line for line in lines if line.endswith("\n") and json.loads(line)["step"] <= step]
        log.write_text("".join(kept), encoding="utf-8")


def _step(state: TrainState, batch: Conversations, config: TrainConfig) -> dict[str, float]:
    """Take one optimisation step and return its line of the log."""
    started = time.perf_counter()
    rate = learning_rate(config.optimizer, state.step, config.steps)
    for group in state.optimizer.param_groups:
        group["lr"] = rate
    guidance = teacher_weight(config.teacher, state.step, config.steps) if config.teacher is not None else 0.0
    device = batch.wave.device
    # Dropout draws from the global generator; seeding it by step makes a resumed run draw the same.
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(config.seed * 1_000_003 + state.step)
        with torch.no_grad():
            feats, lengths = state.model.features(batch.wave, batch.num_samples)
        with torch.autocast(device.type, torch.bfloat16, enabled=config.precision == "bf16"):
            output, activity = _forward(state, feats, lengths, batch.activity, config)
        parts = objective(output, replace(batch, activity=activity), config.loss, state.teacher, guidance)
        state.optimizer.zero_grad(set_to_none=True)
        parts.loss.backward()
    parameters = [parameter for group in state.optimizer.param_groups for parameter in group["params"]]
    norm = nn.utils.clip_grad_norm_(parameters, config.optimizer.clip_norm)
    # One bad batch must not end a run of hours: its gradient is not finite, and it is passed over.
    if torch.isfinite(norm):
        state.optimizer.step()
    state.step += 1
    state.update_average(config.optimizer.ema_decay)
    return {
        "step": state.step,
        "loss": parts.loss.item(),
        "output": parts.output.item(),
        "estimates": parts.estimates.item(),
        "voices": parts.voices.item(),
        **{name: loss.item() for name, loss in parts.others.items()},
        "grad_norm": float(norm),
        "learning_rate": rate,
        "audio_s": float(batch.num_samples.sum()) / 16_000,
        "seconds": time.perf_counter() - started,
    }


def _forward(
    state: TrainState, feats: Tensor, lengths: Tensor, activity: Tensor, config: TrainConfig
) -> tuple[SortformerOutput, Tensor]:
    """What the model makes of a batch, whole or as a stream shows it, and the labels of the frames that it saw."""
    generator = torch.Generator().manual_seed(config.seed * 1_000_003 + state.step)
    if float(torch.rand((), generator=generator)) >= config.stage(state.step).streamed_probability:
        return state.model.forward_features(feats, lengths), activity
    stream, device = draw_stream(generator), activity.device
    heard = torch.rand(len(activity), generator=generator).to(device)
    order = torch.randperm(activity.shape[2], generator=generator).to(device)
    return streamed(state.model, feats, lengths, activity, stream, heard, order)


def _to(batch: Conversations, device: torch.device) -> Conversations:
    return Conversations(
        batch.wave.to(device), batch.activity.to(device), batch.num_samples.to(device), batch.voice.to(device)
    )
