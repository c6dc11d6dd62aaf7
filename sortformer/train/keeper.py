"""What a run leaves in its folder: the last state, its model, and others on the way."""

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
    """Writes what a run leaves in ``out``.

    Attributes:
        postprocess: of the models, None for none.
        licence: of the models.
        step: at which the state was saved last.
        writes: whether this process does; of several that train together the first one.
    """

    out: Path
    postprocess: PostprocessConfig | None
    licence: str | None
    step: int
    writes: bool

    def keep(self, state: TrainState, passed_over: int) -> None:
        """Save the state, and its averaged weights as ``model``.

        Args:
            passed_over: how many of the last steps changed no weight.

        Raises:
            InputError: when the model has diverged, or none of two or more steps has changed it.
        """
        if not state.answers():
            raise InputError(
                f"training has diverged: what the model of step {state.step} gives is not finite; {self.out} keeps "
                "what was saved before. Lower the learning rate, or look for broken data"
            )
        # One bad batch may be all that there was since the last state; of several, one at least should be good.
        if passed_over >= max(2, state.step - self.step):
            raise InputError(
                f"training stands still: the gradients of the last {passed_over} steps are not finite, and changed no "
                f"weight; {self.out} keeps what was saved before. Look for broken data, or lower the weights of the "
                "losses"
            )
        self.step = state.step
        # The state last: what was interrupted between the two takes these steps again, and writes both anew.
        self.write(state, MODEL)
        if self.writes:
            state.save(self.out / STATE)

    def look(self, state: TrainState, der: float) -> None:
        """Keep the averaged weights as ``best`` where their DER is lower than all before."""
        if der < state.lowest_der and state.answers():
            state.lowest_der = der
            self.write(state, BEST)

    def write(self, state: TrainState, name: str) -> None:
        """Write the averaged weights as a model in a folder of this name."""
        if self.writes:
            checkpoint.save(self.out / name, state.average, self.postprocess, licence=self.licence)
