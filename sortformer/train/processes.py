"""Data-parallel training in several processes, as ``torchrun`` starts them: one per GPU, or per group of cores.

Each has the whole model and its share of every batch. Gradients are summed, not averaged: the losses are already
averaged over the whole batch. As all take the same step on the same sums, their weights stay equal without being sent.
"""

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

from sortformer.device import device_named
from sortformer.errors import Cancelled, InputError

__all__ = ["Processes", "joined"]


@dataclass(frozen=True, slots=True)
class Processes:
    """This process among all that train together; a single one by default."""

    device: torch.device
    rank: int = 0
    count: int = 1

    @property
    def lead(self) -> bool:
        """Whether this is the process that writes log and state."""
        return self.rank == 0

    def sum_numbers(self, *numbers: float) -> list[float]:
        """Return the sums of some numbers over all processes."""
        if self.count == 1:
            return list(numbers)
        sums = torch.tensor(numbers, dtype=torch.float64, device=self.device)
        dist.all_reduce(sums)
        return sums.tolist()

    def check_same(self, number: int, what: str) -> None:
        """Check that a number is the same in all processes; all of them must call this.

        Raises:
            InputError: if it is not.
        """
        shares = self.sum_numbers(*(float(number) * (rank == self.rank) for rank in range(self.count)))
        if len(set(shares)) > 1:
            raise InputError(f"{what} differs between processes: put it on a disk that all of them share")

    def sum_gradients(self, parameters: Sequence[Tensor]) -> None:
        """Sum the gradients over all processes, as one array: that is faster than hundreds of small ones.

        A parameter that only some processes have used gets a gradient in all; one that none has used keeps None, so
        that the optimiser skips it.
        """
        if self.count == 1:
            return
        used = self.sum_numbers(*(float(parameter.grad is not None) for parameter in parameters))
        shared = [parameter for parameter, count in zip(parameters, used, strict=True) if count]
        gradients = [torch.zeros_like(each) if each.grad is None else each.grad for each in shared]
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        dist.all_reduce(flat)
        for parameter, total in zip(shared, flat.split([each.numel() for each in shared]), strict=True):
            parameter.grad = total.view_as(parameter)

    @contextlib.contextmanager
    def all_or_none(self) -> Iterator[None]:
        """Let all processes fail if one does, so that none waits for it.

        Raises:
            Cancelled: if another process failed; that one raises the error.
        """
        error = None
        try:
            yield
        except Exception as caught:
            error = caught
        failed = [float(error is not None and rank == self.rank) for rank in range(self.count)]
        culprits = [rank for rank, count in enumerate(self.sum_numbers(*failed)) if count]
        if culprits and error is not None and self.rank == culprits[0]:
            raise error
        if culprits:
            raise Cancelled(f"process {culprits[0]} of {self.count} failed")


@contextlib.contextmanager
def joined(device: str | torch.device) -> Iterator[Processes]:
    """Join the processes that ``torchrun`` has started; without it, be a single process.

    They communicate by NCCL on CUDA, where each uses the device of its local rank, and by Gloo on CPUs.

    Raises:
        InputError: if there is no such device, there are more processes than CUDA devices, or the device of several is
            of another kind.
    """
    place = device if isinstance(device, torch.device) else device_named(device)
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if count == 1:
        yield Processes(place)
        return
    if place.type not in ("cpu", "cuda"):
        raise InputError(f"training in several processes needs CPUs or CUDA devices, not {device}: start one only")
    if place.type == "cuda":
        number = int(os.environ.get("LOCAL_RANK", "0"))
        if number >= torch.cuda.device_count():
            raise InputError(
                f"there are {torch.cuda.device_count()} CUDA devices, none for process {number}: start fewer processes"
            )
        place = torch.device("cuda", number)
        torch.cuda.set_device(place)
    dist.init_process_group("nccl" if place.type == "cuda" else "gloo")
    try:
        yield Processes(place, dist.get_rank(), count)
    finally:
        dist.destroy_process_group()
