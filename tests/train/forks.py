"""Processes as ``torchrun`` starts them, without the seconds of importing torch: forks of the test process."""

import contextlib
import os
import socket
from collections.abc import Callable
from typing import Any

import torch
from torch import multiprocessing

__all__ = ["forked"]


def forked(count: int, *works: Callable[[], Any]) -> list[tuple[int, Any]]:
    """Do each work in turn in ``count`` processes that can find each other; return rank and result of each."""
    with contextlib.ExitStack() as stack:
        free = [stack.enter_context(socket.socket()) for _ in works]
        for each in free:
            each.bind(("127.0.0.1", 0))
        ports = [each.getsockname()[1] for each in free]
    context = multiprocessing.get_context("fork")
    said = context.SimpleQueue()

    def process(rank: int) -> None:
        torch.set_num_threads(1)
        for port, work in zip(ports, works, strict=True):
            told = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": count}
            told |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
            os.environ.update({name: str(value) for name, value in told.items()})
            said.put((rank, work()))

    children = [context.Process(target=process, args=(rank,)) for rank in range(count)]
    for child in children:
        child.start()
    for child in children:
        child.join(timeout=60)
        code = child.exitcode
        child.kill()
        assert code == 0
    found = []
    while not said.empty():
        found.append(said.get())
    return sorted(found, key=lambda each: each[0])
