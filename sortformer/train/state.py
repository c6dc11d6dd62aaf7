"""The state of a training run: all that it needs to resume as if it had never stopped."""

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import index
from pathlib import Path

import torch
from torch import Tensor, nn

from sortformer.attention.clusters import rescale
from sortformer.config.train import OptimizerConfig
from sortformer.draft import drafted
from sortformer.errors import ConfigError, InputError
from sortformer.grid import SAMPLE_RATE
from sortformer.model import Sortformer
from sortformer.train.teacher import VoiceTeacher

__all__ = ["TrainState", "parameter_groups"]

_OF_START = ("model.", "seed", "init", "simulation.num_slots")  # settings of a recipe that determine the initial model
_BY_RECIPE = ("weight_decay", "betas")  # optimiser settings that are not loaded; the learning rate is set in each step


@dataclass(slots=True)
class TrainState:
    """The weights, their average, the optimiser, the number of steps done and the lowest dev DER so far."""

    model: Sortformer
    average: Sortformer
    teacher: VoiceTeacher | None
    optimizer: torch.optim.AdamW
    step: int = 0
    lowest_der: float = math.inf
    begun_as: str = ""
    """Identifies the initial model; a resumed run must have the same."""

    @classmethod
    def start(
        cls,
        model: Sortformer,
        config: OptimizerConfig,
        teacher: VoiceTeacher | None,
        device: torch.device,
        begun_as: str = "",
        frozen: Sequence[str] = (),
    ) -> "TrainState":
        """Return the initial state of a run, with the weights of ``model``; its ``frozen`` parts are not trained.

        Raises:
            ConfigError: if the model has no part of such a name, or nothing is left to train.
        """
        model.to(device).train()
        for name in frozen:
            _freeze(model, name)
        if not any(parameter.requires_grad for parameter in model.parameters()):
            raise ConfigError("the whole model is frozen: leave a part of it to train")
        average = copy.deepcopy(model).eval().requires_grad_(False)
        modules = [model] if teacher is None else [model, teacher.to(device)]
        optimizer = torch.optim.AdamW(parameter_groups(modules, config), config.learning_rate, config.betas)
        return cls(model, average, teacher, optimizer, begun_as=begun_as)

    @torch.no_grad()
    def update_average(self, decay: float) -> None:
        """Update the average of the weights; in the first steps the decay is lower, so that the initial ones fade."""
        rate = 1 - min(decay, (1 + self.step) / (10 + self.step))
        for mean, now in zip(self.average.state_dict().values(), self.model.state_dict().values(), strict=True):
            if mean.is_floating_point():
                mean.lerp_(now, rate)
            else:
                mean.copy_(now)
        rescale(self.average)

    @torch.inference_mode()
    def answers(self) -> bool:
        """Return whether the averaged model's output for a second of silence is finite; after divergence it is not."""
        silence = torch.zeros(1, SAMPLE_RATE, device=self.average.device)
        return bool(torch.isfinite(self.average(silence).logits).all())

    def save(self, path: Path) -> None:
        """Write the state atomically."""
        values = {
            "model": self.model.state_dict(),
            "average": self.average.state_dict(),
            "teacher": self.teacher.state_dict() if self.teacher is not None else None,
            "optimizer": self.optimizer.state_dict(),
            "step": self.step,
            "lowest_der": self.lowest_der,
            "begun_as": self.begun_as,
            "trained": self._trained(),
        }
        with drafted(path) as draft, draft.open("wb") as file:
            try:
                torch.save(values, file)
            except RuntimeError as error:
                # On a full disk torch raises an error about a position in the file; the cause is the error before.
                raise (error.__context__ if isinstance(error.__context__, OSError) else error) from None

    def load(self, path: Path, changed: Sequence[str] = ()) -> None:
        """Load a saved state, but keep the optimiser settings of this run.

        ``changed`` are the names of the recipe's settings that have changed, for the error.

        Raises:
            InputError: if the file is damaged, of another model, or of a run that began from another model or trained
                other parts of it.
        """
        try:
            found = torch.load(path, map_location="cpu", weights_only=True)
        except Exception as error:  # a damaged pickle can raise nearly anything
            raise InputError(f"cannot resume from {path}, which is damaged; move it away to start again") from error
        values = found if isinstance(found, dict) else {}  # which lacks the keys below
        if values.get("begun_as", self.begun_as) != self.begun_as:
            other = [name for name in changed if name.startswith(_OF_START)]
            why = f"its recipe had another {', '.join(other)}" if other else "other weights, post-processing or licence"
            raise InputError(
                f"the run in {path.parent} did not start from the model of this recipe ({why}): continue with its "
                "own recipe, or give another folder"
            )
        if values.get("trained", self._trained()) != self._trained():
            raise InputError(
                f"the run in {path.parent} trained other parts of the model than 'frozen' leaves here: continue with "
                "its own recipe, or give another folder"
            )
        try:
            self.model.load_state_dict(values["model"])
            self.average.load_state_dict(values["average"])
            if self.teacher is not None:
                self.teacher.load_state_dict(values["teacher"])
            wanted = [{name: group[name] for name in _BY_RECIPE} for group in self.optimizer.param_groups]
            self.optimizer.load_state_dict(values["optimizer"])
            for group, settings in zip(self.optimizer.param_groups, wanted, strict=True):
                group.update(settings)
            self.step, self.lowest_der = index(values["step"]), float(values.get("lowest_der", math.inf))
        except (KeyError, RuntimeError, TypeError, ValueError) as error:
            raise InputError(
                f"cannot resume from {path}, which belongs to another model or recipe; move it away to start again"
            ) from error

    def _trained(self) -> list[str]:
        """Return the names of the trained parameters; the optimiser identifies them by order alone."""
        return [name for name, parameter in self.model.named_parameters() if parameter.requires_grad]


def _freeze(model: Sortformer, name: str) -> None:
    """Freeze a part: its weights and its running statistics."""
    parts = dict(model.named_modules())
    if not name or name not in parts:
        below = ", ".join(parent for parent, _ in model.named_children())
        raise ConfigError(f"the model has no part '{name}' to freeze; its parts are {below}, and their parts")
    parts[name].requires_grad_(False).eval()


def parameter_groups(modules: Sequence[nn.Module], config: OptimizerConfig) -> list[dict[str, list[Tensor] | float]]:
    """Return two groups: matrices with weight decay, and vectors (biases, norms, gates) without."""
    parameters = [parameter for module in modules for parameter in module.parameters() if parameter.requires_grad]
    return [
        {"params": [p for p in parameters if p.ndim > 1], "weight_decay": config.weight_decay},
        {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
    ]
