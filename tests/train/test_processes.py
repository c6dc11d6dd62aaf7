"""Sums over processes, and errors that end all of them."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch

from sortformer.errors import InputError
from sortformer.train.processes import Processes, joined
from tests.train.forks import forked


def _answer(act: Callable[[Processes], Any]) -> Any:
    with joined("cpu") as processes:
        try:
            return act(processes)
        except Exception as error:  # any, as in a run
            return f"{type(error).__name__}: {error}"


def in_processes(count: int, *acts: Callable[[Processes], Any]) -> list[Any]:
    """Return what each act returns, or its error, in each process, by rank."""
    return [said for _, said in forked(count, *(partial(_answer, act) for act in acts))]


def test_sums_are_exact_in_large_numbers():
    found = in_processes(2, lambda processes: processes.sum_numbers(2**24 + 1, processes.rank))
    assert found == [[2**25 + 2, 1]] * 2


def test_what_has_to_be_the_same_everywhere_is_checked_everywhere():
    assert in_processes(3, lambda processes: processes.check_same(7, "the state")) == [None] * 3
    found = in_processes(3, lambda processes: processes.check_same(7 + processes.rank // 2, "the state"))
    assert found == ["InputError: the state differs between processes: put it on a disk that all of them share"] * 3


def test_gradients_are_summed_over_the_processes_that_have_them():
    def act(processes: Processes) -> list[Any]:
        everywhere, once, nowhere = (torch.zeros(2, 2, requires_grad=True) for _ in range(3))
        everywhere.grad = torch.tensor([[1.0, 2.0], [3.0, 4.0]]) * 10**processes.rank
        if processes.rank == 1:
            once.grad = torch.ones(2, 2)
        processes.sum_gradients([once, nowhere, everywhere])
        return [None if each.grad is None else each.grad.tolist() for each in (everywhere, once, nowhere)]

    assert in_processes(3, act) == [[[[111.0, 222.0], [333.0, 444.0]], [[1.0, 1.0], [1.0, 1.0]], None]] * 3


def test_the_first_process_that_fails_says_why_and_the_others_name_it():
    def act(processes: Processes) -> None:
        with processes.all_or_none():
            if processes.rank:
                raise OSError(f"disk {processes.rank} is gone")

    cancelled = "Cancelled: process 1 of 3 failed"
    assert in_processes(3, act) == [cancelled, "OSError: disk 1 is gone", cancelled]


def test_a_process_alone_needs_no_others():
    alone = Processes(torch.device("cpu"))
    assert alone.lead
    assert alone.sum_numbers(3, 0.5) == [3, 0.5]
    alone.check_same(7, "the state")
    with pytest.raises(InputError, match="the disk is gone"), alone.all_or_none():
        raise InputError("the disk is gone")
