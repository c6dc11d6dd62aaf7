"""One optimisation step, with the gradient of the whole batch over all micro-batches and processes."""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from sortformer.attention import redraw
from sortformer.config.train import TrainConfig
from sortformer.data import part_rows
from sortformer.grid import SAMPLE_RATE
from sortformer.model import SortformerOutput
from sortformer.seeds import mixed_seed, seed_of
from sortformer.simulate import Conversations
from sortformer.train.count_teacher import CountTeacher
from sortformer.train.objective import FrameCounts, frame_counts, objective
from sortformer.train.processes import Processes
from sortformer.train.schedule import learning_rate, teacher_weight
from sortformer.train.state import TrainState
from sortformer.train.streamed import draw_stream, streamed

__all__ = ["take_step"]


def take_step(
    state: TrainState,
    parts: Sequence[Conversations],
    config: TrainConfig,
    processes: Processes,
    count_teacher: CountTeacher | None = None,
) -> dict[str, float]:
    """Take one optimisation step and return its line of the log, which is for all processes together.

    ``parts`` are the micro-batches of this process. Losses are averaged over the frames of all parts of all processes,
    so the gradient is that of the whole batch, up to rounding.
    """
    started = time.perf_counter()
    # Before the step, not after it: so the random features that a run saves are those that it was last trained with.
    # The average gets the same ones, because a mean of random features is not a valid draw.
    for model in (state.model, state.average):
        redraw(model, config.seed, state.step)
    rate = learning_rate(config.optimizer, state.step, config.steps)
    for group in state.optimizer.param_groups:
        group["lr"] = rate
    counted = [frame_counts(part, state.model.config.grid) for part in parts]
    samples = sum(int(part.num_samples.sum()) for part in parts)
    valid, speech, samples = processes.sum_numbers(
        sum(frames.valid for frames in counted), sum(frames.speech for frames in counted), samples
    )
    frames = FrameCounts(round(valid), round(speech))
    state.optimizer.zero_grad(set_to_none=True)
    stage, count = config.stage(state.step), len(parts) * processes.count
    measured: Counter[str] = Counter()
    for number, part in enumerate(parts, processes.rank * len(parts)):
        rows = part_rows(stage.batch_size, number, count)
        measured.update(_descend(state, part.to(processes.device), rows, config, frames, count_teacher))
    parameters = [parameter for group in state.optimizer.param_groups for parameter in group["params"]]
    processes.sum_gradients(parameters)
    losses = dict(zip(measured, processes.sum_numbers(*measured.values()), strict=True))
    # A streamed step has other frames than the batch, and their number is known only now. The teacher's loss, which is
    # averaged over speech, is scaled alike: it has more weight if the speaker cache has a higher share of speech.
    scale = frames.valid / max(1.0, losses.pop("shown"))
    if scale != 1:
        for parameter in parameters:
            if parameter.grad is not None:
                parameter.grad *= scale
    norm = nn.utils.clip_grad_norm_(parameters, config.optimizer.clip_norm)
    # One bad batch must not end a run of hours: if the gradient is not finite, the step is skipped.
    if torch.isfinite(norm):
        state.optimizer.step()
    state.step += 1
    state.update_average(config.optimizer.ema_decay)
    return {
        "step": state.step,
        **{name: scale * loss for name, loss in losses.items()},
        "grad_norm": float(norm),
        "learning_rate": rate,
        "audio_s": samples / SAMPLE_RATE,
        "seconds": time.perf_counter() - started,
    }


def _descend(
    state: TrainState,
    batch: Conversations,
    rows: range,
    config: TrainConfig,
    frames: FrameCounts,
    count_teacher: CountTeacher | None,
) -> dict[str, float]:
    """Add the gradient of one part, the ``rows`` of a batch; return its frames as "shown", and its losses by name."""
    device = batch.wave.device
    # Dropout draws from the global generator; seeding it by step and row makes a resumed run draw the same.
    with torch.random.fork_rng([] if device.type == "cpu" else [device], device_type=device.type):
        torch.manual_seed(mixed_seed(config.seed, state.step, rows.start))
        output, activity, counts = _forward(state, batch, rows, config, count_teacher)
        losses = objective(
            output,
            replace(batch, activity=activity),
            config.loss,
            state.teacher,
            teacher_weight(config.teacher, state.step, config.steps),
            frames,
            counts,
            teacher_weight(config.count_teacher, state.step, config.steps),
        )
        losses["loss"].backward()
    return {"shown": float(output.valid.sum()), **{name: loss.item() for name, loss in losses.items()}}


def _forward(
    state: TrainState, batch: Conversations, rows: range, config: TrainConfig, count_teacher: CountTeacher | None
) -> tuple[SortformerOutput, Tensor, Tensor | None]:
    """Run the model on a part, whole or as a step of a stream; return output, labels and counts of its frames."""
    model, activity, device = state.model, batch.activity, batch.wave.device
    with torch.no_grad():
        feats, lengths = model.features(batch.wave, batch.num_samples)
        counts = None if count_teacher is None else count_teacher(batch.wave, activity.shape[1], model.config.grid)
    generator = torch.Generator().manual_seed(seed_of(config.seed, state.step))
    stage = config.stage(state.step)
    with torch.autocast(device.type, torch.bfloat16, enabled=config.precision == "bf16"):
        if float(torch.rand((), generator=generator)) >= stage.streamed_probability:
            return model.forward_features(feats, lengths), activity, counts
        stream = draw_stream(generator, activity.shape[2])
        heard = torch.rand(stage.batch_size, generator=generator)[list(rows)].to(device)
        order = torch.randperm(activity.shape[2], generator=generator).to(device)
        return streamed(model, feats, lengths, activity, stream, heard, order, counts)
