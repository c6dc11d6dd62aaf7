"""Many live sessions in one batch."""

from collections.abc import Mapping
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
    """Streams through one model that advance together: each step takes a chunk of all those that have one ready.

    Its sessions are ordinary ones, which enroll, flush, finish and are restored one by one; they come and go as they
    like, and one that gets nothing is not touched. Each gets what it would get alone, but for the rounding of float32
    sums, which depends on the size of a batch.
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
        """Begin a stream.

        Raises:
            ConfigError: as for a session alone.
        """
        return Session(self.model, self.config, self.postprocess, uri=uri, origin=self.origin)

    def push(self, blocks: Mapping[Session, Any]) -> dict[Session, Update]:
        """Push a block of samples to each of some sessions, and return what has become final in each.

        Raises:
            InputError: as for a session alone, or if one has another model or configuration. No block is then taken in.
        """
        if not isinstance(blocks, Mapping) or not all(isinstance(session, Session) for session in blocks):
            raise InputError("a pool takes a mapping of its sessions to their blocks")
        for session in blocks:
            if session.model is not self.model or session.config != self.config:
                raise InputError("a pool takes sessions of its own model and configuration: open() them with it")
        for session, block in [(session, session._checked(samples)) for session, samples in blocks.items()]:
            session._take(block)
        advance(list(blocks))
        return {session: session._update() for session in blocks}
