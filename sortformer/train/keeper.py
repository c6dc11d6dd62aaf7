"""The files of a run: the last state, its model, and the best and intermediate models."""

from dataclasses import dataclass
from pathlib import Path

from sortformer import checkpoint
from sortformer.config.postprocess import PostprocessConfig
from sortformer.errors import InputError
from sortformer.train.state import TrainState

__all__ = ["BEST", "MODEL", "MODELS", "STATE", "Keeper"]

MODEL, BEST, MODELS, STATE = "model", "best", "models", "state.pt"


@dataclass(slots=True)
class Keeper:
    """Writes the state and the models of a run to ``out``.

    Attributes:
        postprocess: the post-processing of the models, None for none.
        licence: the licence of the models.
        step: the step at which the state was last saved.
        writes: whether this process writes; of several that train together, only the first does.
    """

    out: Path
    postprocess: PostprocessConfig | None
    licence: str | None
    step: int
    writes: bool

    def keep(self, state: TrainState, passed_over: int) -> None:
        """Save the state, and its averaged weights as ``model``.

        Args:
            passed_over: the number of last steps in a row that were skipped.

        Raises:
            InputError: if the model has diverged, or all steps since the last state, two or more, were skipped.
        """
        if not state.answers():
            raise InputError(
                f"training has diverged: the output of the model at step {state.step} is not finite; {self.out} keeps "
                "what was saved before. Lower the learning rate, or look for broken data"
            )
        # A single step since the last state may have had a bad batch; of several, at least one should be good.
        if passed_over >= max(2, state.step - self.step):
            raise InputError(
                f"training is stuck: the gradients of the last {passed_over} steps are not finite, and changed no "
                f"weight; {self.out} keeps what was saved before. Lower the learning rate or the weights of the losses"
                ", or look for broken data"
            )
        self.step = state.step
        # The state last: a run that is interrupted between the two repeats these steps, and writes both again.
        self.write(state, MODEL)
        if self.writes:
            state.save(self.out / STATE)

    def look(self, state: TrainState, der: float) -> None:
        """Save the averaged weights as ``best`` if their DER is the lowest so far."""
        if der < state.lowest_der and state.answers():
            state.lowest_der = der
            self.write(state, BEST)

    def write(self, state: TrainState, name: str) -> None:
        """Write the averaged weights as a model to the folder ``name``."""
        if self.writes:
            checkpoint.save(self.out / name, state.average, self.postprocess, licence=self.licence)
