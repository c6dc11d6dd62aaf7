"""Many live sessions in one batch."""

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from sortformer.annotation import Origin
from sortformer.config.postprocess import PostprocessConfig
from sortformer.config.stream import StreamConfig
from sortformer.errors import InputError
from sortformer.model import Sortformer
from sortformer.streaming.session import Session, advance
from sortformer.streaming.update import Update

__all__ = ["SessionPool"]


class SessionPool:
    """Streams through one model, advanced in batches of one chunk from each stream that has one ready.

    Its sessions are ordinary ones, which enroll, flush, finish and are restored individually. They may be opened and
    finished at any time, and those without new samples do not change. The results are those of separate sessions,
    apart from the rounding of float32 sums, which depends on the batch size.
    """

    def __init__(
        self,
        model: Sortformer,
        config: StreamConfig,
        postprocess: PostprocessConfig | None = None,
        origin: Origin | None = None,
    ) -> None:
        self.model = model
        self.config = config
        self.postprocess = postprocess
        self.origin = origin

    def open(self, uri: str = "audio") -> Session:
        """Start a stream.

        Raises:
            ConfigError, InputError: as for a single session.
        """
        return Session(self.model, self.config, self.postprocess, uri=uri, origin=self.origin)

    def push(self, blocks: Mapping[Session, Any]) -> dict[Session, Update]:
        """Push a block of samples to each of some sessions, and return what has become final in each.

        Raises:
            InputError: as for a single session, or for one of another model or configuration. No block is then used.
        """
        if not isinstance(blocks, Mapping) or not all(isinstance(session, Session) for session in blocks):
            raise InputError("push() of a pool needs a mapping of its sessions to their blocks")
        for session in blocks:
            if session.model is not self.model or session.config != self.config:
                raise InputError("a pool accepts only sessions of its own model and configuration: open() them with it")
        with ExitStack() as alone:
            for session in sorted(blocks, key=id):  # in one order, so that two calls never wait for each other
                alone.enter_context(session._lock)
            for session, block in [(session, session._checked(samples)) for session, samples in blocks.items()]:
                session._take(block)
            advance(list(blocks))
            return {session: session._update() for session in blocks}
