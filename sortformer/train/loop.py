"""The training loop."""

import json
import math
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from sortformer.checkpoint.files import read_config
from sortformer.config.model import ModelConfig
from sortformer.config.strict import differences, to_dict
from sortformer.config.train import TrainConfig
from sortformer.data import Sources, batches, killed_workers
from sortformer.draft import drafted
from sortformer.errors import ConfigError, InputError
from sortformer.precision import finest
from sortformer.train.count_teacher import CountTeacher
from sortformer.train.evaluation import content_of, dev_conversations, dev_der
from sortformer.train.initial import initial_checkpoint
from sortformer.train.keeper import BEST, MODEL, MODELS, STATE, Keeper
from sortformer.train.lock import locked
from sortformer.train.log import Report, RunLog
from sortformer.train.processes import Processes, joined
from sortformer.train.state import TrainState
from sortformer.train.step import take_step
from sortformer.train.streamed import check_streams
from sortformer.train.teacher import VoiceTeacher
from sortformer.warned import warn

__all__ = ["train"]

# In the saved config: no settings of the recipe, but hashes of the data that it names, and of who speaks when in the
# dev conversations. DERs of simulated ones are comparable while all of _EVALUATION is unchanged, and those of crops
# of a dev manifest while the hash is.
_CONTENT, _DEV_CONTENT = "data.content", "data.dev_content"
_EVALUATION = (_DEV_CONTENT, "data.rooms", "data.bursts", "simulation.")


def train(
    config: TrainConfig,
    out: str | Path,
    *,
    device: str | torch.device = "cpu",
    stop: Callable[[int], bool] | None = None,
    report: Report | None = None,
) -> Path:
    """Train a model, or resume the run in ``out``, and return the folder of its averaged weights.

    ``out`` gets ``log.jsonl`` (a line per step and per evaluation), ``state.pt`` (to resume from), ``model/`` (with the
    post-processing of the initial checkpoint), ``best/`` (the model of the evaluation with the lowest DER), and the
    models of ``keep_every``. A run that was stopped and resumed ends with the same bits as one that was not (on a CPU,
    with the same number of threads), and its log has no line twice. Values that are not finite are null in the log.

    Started by ``torchrun``, each process takes its share of every batch. The weights are those of a single process,
    up to rounding (see ``TrainConfig.accumulate``), and the first process writes. An error in one process ends all.

    On a CPU, call ``torch.set_flush_denormal(True)`` before anything else of torch, as the command does: optimiser
    moments that decay to denormal numbers slow training down many times. It changes the arithmetic of the whole
    process, so it is not done here.

    Args:
        device: as for ``Diarizer.load``; a ``torch.device`` may be of any kind.
        stop: called before and after each step with the number of steps done; if it returns true, the state is saved,
            and the run can be resumed later. If one of several processes is told to stop, all do.
        report: called with every line of the log.

    Raises:
        InputError: if ``config`` is no ``TrainConfig``; if there is no such device; if data, initial weights, or the
            state or log to resume from cannot be read; if ``out`` holds something else than a run, a run in progress,
            or one that began from another model; if the recipe's model is not that of its initial weights; or if
            training diverges or stands still.
        ConfigError: if the model cannot be trained with a teacher, or as streamed, and the recipe asks for it, or if a
            batch has too few conversations to be shared.
        Cancelled: if another process failed; that one raises the error.

    Warns:
        SortformerWarning: if all steps of the recipe have been done before, a run is resumed with other settings or
            data, or all steps are warm-up.
    """
    if not isinstance(config, TrainConfig):
        raise InputError(
            f"train needs a TrainConfig, got {type(config).__name__}: TrainConfig.read(path) reads a recipe"
        )
    with joined(device) as processes, killed_workers(), ExitStack() as held:
        out = Path(out)
        with processes.all_or_none():
            _check_place(out)
            if processes.lead:
                held.enter_context(locked(out))
            sources = Sources.load(config.data)
            initial, begun_as = initial_checkpoint(config)
            model = initial.model
            config = replace(config, model=model.config)
            _check_trainable(config, model.config)
            told = to_dict(config)
            dev = dev_conversations(config, model.config)
            told["data"] |= {"content": sources.content, "dev_content": content_of(dev)}
            changed = _changed(out / "config.json", told)
            teacher = _teacher(config, sources, model.config)
            state = TrainState.start(model, config.optimizer, teacher, processes.device, begun_as, config.frozen)
            if (out / STATE).exists():
                state.load(out / STATE, changed)
            counting = None
            if config.count_teacher is not None:
                counting = CountTeacher.read(config.count_teacher.network).to(processes.device)
            # On a CPU the workers make whole batches; an accelerator renders their drafts, many times as fast, if it
            # has float64, which positions in a recording need.
            place = processes.device
            if place.type == "cpu" or finest(place) is not torch.float64:
                place = None
            made = batches(sources, config, model.config, state.step, processes.rank, processes.count, place)
            dev = dev[processes.rank :: processes.count]
        with processes.all_or_none():
            processes.check_same(state.step, f"the state in {out}")
            log = RunLog(out / "log.jsonl" if processes.lead else None, state.step, report)
        kept = None if config.init is None else initial.postprocess
        keeper = Keeper(out, kept, initial.licence, state.step, processes.lead)
        if processes.lead:
            _warn(config, out, state.step, changed)
            if state.step < config.steps:
                decisive = _EVALUATION if config.data.dev is None else _DEV_CONTENT
                if state.lowest_der < math.inf and any(name.startswith(decisive) for name in changed):
                    state.lowest_der = math.inf  # earlier DERs are of other conversations
                    state.save(out / STATE)  # before the config, according to which nothing will have changed
                with drafted(out / "config.json") as draft:
                    draft.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
            elif not (out / MODEL).is_dir():
                keeper.write(state, MODEL)

        def evaluate() -> None:
            found = dev_der(state.average, dev, processes)
            log.write({"step": state.step} | found)
            keeper.look(state, found["der"])

        if config.evaluate_conversations and config.init is not None and not state.step:
            evaluate()
        passed_over = 0
        while not _stopping(stop, state.step, processes) and state.step < config.steps:
            with processes.all_or_none():
                parts = next(made)
            line = take_step(state, parts, config, processes, counting)
            passed_over = 0 if math.isfinite(line["grad_norm"]) else passed_over + 1
            log.write(line)
            if config.evaluate_conversations and (
                state.step % config.evaluate_every == 0 or state.step == config.steps
            ):
                evaluate()
            if config.keep_every and state.step % config.keep_every == 0:
                keeper.write(state, f"{MODELS}/step_{state.step}")
            if state.step % config.checkpoint_every == 0:
                keeper.keep(state, passed_over)
        if state.step > keeper.step:
            keeper.keep(state, passed_over)
    return out / MODEL


def _warn(config: TrainConfig, out: Path, step: int, changed: list[str]) -> None:
    """Warn about what may not be intended."""
    if step >= config.steps:
        other = ", although the contents of [data] have changed" if _CONTENT in changed else ""
        warn(
            f"the run in {out} had already done {step} of {config.steps} steps: there was nothing to train{other}",
            stacklevel=3,
        )
        return
    if step and changed:
        warn(
            f"the run in {out} continues from step {step} with a changed recipe: {', '.join(changed)}",
            stacklevel=3,
        )
    if (warm := config.optimizer.warmup_steps) >= config.steps:
        warn(
            f"all {config.steps} steps of the recipe are warm-up (warmup_steps of [optimizer] is {warm}): the "
            "learning rate rises to the end",
            stacklevel=3,
        )


def _stopping(stop: Callable[[int], bool] | None, step: int, processes: Processes) -> bool:
    """Return whether any process is asked to stop, so that all stop after the same step."""
    return stop is not None and any(processes.sum_numbers(stop(step)))


def _changed(config: Path, now: Mapping[str, Any]) -> list[str]:
    """Return the names of the settings that differ from those in the file."""
    try:
        before = read_config(config)
    except InputError:  # without a readable config nothing counts as changed
        return []
    return sorted(name for name, *_ in differences(before, now))


def _check_place(out: Path) -> None:
    """Refuse a folder with a model, or a config, that is not of a run."""
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file: give a folder for the run")
    config = out / "config.json"
    with suppress(InputError):
        if "steps" in read_config(config):
            return
    for there in (config, *(out / name for name in ("model.safetensors", MODEL, BEST, MODELS))):
        if there.exists() and not (out / STATE).exists():
            raise InputError(f"{there} is not from a run, and would be replaced: give another folder for the run")


def _check_trainable(config: TrainConfig, model: ModelConfig) -> None:
    """Refuse a model that cannot be trained as streamed, or with a teacher, if the recipe asks for it."""
    if any(stage.streamed_probability for stage in config.stages):
        check_streams(model)
    of_frames = config.teacher is not None or config.count_teacher is not None or config.loss.voice_pairs_weight > 0
    if model.head.upsampling > 1 and of_frames:
        raise ConfigError(
            "teachers and voice_pairs_weight compare frames of 80 ms, but the output frames of this "
            "model are shorter: leave them out"
        )


def _teacher(config: TrainConfig, sources: Sources, model: ModelConfig) -> VoiceTeacher | None:
    if config.teacher is None:
        return None
    if sources.bank is None:
        raise ConfigError("a teacher needs a bank of voices: name one in [data]")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        return VoiceTeacher.read(config.teacher.table, sources.bank, model.encoder.dim, config.teacher.scale)
