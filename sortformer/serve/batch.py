"""Batching of the streams of many clients."""

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from sortformer.annotation import Diarization
from sortformer.errors import InputError
from sortformer.streaming import Session, SessionPool, Update
from sortformer.warned import warned

__all__ = ["Batch"]


class Batch:
    """A session pool in a thread of its own, for the tasks of an event loop.

    A chunk that arrives while the pool is idle is processed at once, and those that arrive while it is busy form the
    next batch: no chunk waits for others, or for more than the current step. A clip takes longer than many steps and
    is nobody's live audio, so clips have a thread of their own.
    """

    def __init__(self, pool: SessionPool) -> None:
        self.pool = pool
        self._thread = ThreadPoolExecutor(1)
        self._clips = ThreadPoolExecutor(1)
        self._waiting: dict[Session, tuple[np.ndarray, asyncio.Future[Update]]] = {}
        self._steps: asyncio.Task[None] | None = None

    async def push(self, session: Session, block: np.ndarray) -> Update:
        """Push (n,) samples at 16 kHz, ideally one chunk, and return what has become final.

        Raises:
            InputError: as for a session; the others in the batch are not affected.
        """
        update = asyncio.get_running_loop().create_future()
        self._waiting[session] = block, update
        if self._steps is None or self._steps.done():
            self._steps = asyncio.create_task(self._advance())
        return await update

    async def enroll(self, session: Session, name: str, clip: np.ndarray) -> list[str]:
        """Enroll a speaker by a clip (n,) at 16 kHz; return the warnings.

        Raises:
            InputError: as for a session.
        """

        def enrolled() -> list[str]:
            with warned(shown=False) as warnings:
                session.enroll(name, clip)
                return warnings

        return await asyncio.get_running_loop().run_in_executor(self._clips, enrolled)

    async def end(self, session: Session, block: np.ndarray) -> tuple[Update, Diarization]:
        """End a stream with its last (n,) samples, less than a chunk; return the last update and the diarization.

        Raises:
            InputError: as for a session.
        """

        def last() -> tuple[Update, Diarization]:
            with warned(shown=False):  # they are the client's, in the result
                session.push(block)
                return session.flush(), session.finish()

        return await asyncio.get_running_loop().run_in_executor(self._thread, last)

    async def _advance(self) -> None:
        while self._waiting:
            taken, self._waiting = self._waiting, {}
            blocks = {session: block for session, (block, _) in taken.items()}
            said = await asyncio.get_running_loop().run_in_executor(self._thread, self._push, blocks)
            for session, (_, update) in taken.items():
                outcome = said[session]
                if update.done():  # cancelled together with the task that awaited it
                    continue
                if isinstance(outcome, Exception):
                    update.set_exception(outcome)
                else:
                    update.set_result(outcome)

    def _push(self, blocks: Mapping[Session, np.ndarray]) -> Mapping[Session, Update | Exception]:
        try:
            return self.pool.push(blocks)
        except InputError as error:
            if len(blocks) == 1:
                return dict.fromkeys(blocks, error)
        except Exception as error:
            return dict.fromkeys(blocks, error)
        # No block was processed, and the error does not say which one is bad: push them one by one.
        return {session: said for each in blocks for session, said in self._push({each: blocks[each]}).items()}
