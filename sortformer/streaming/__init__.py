"""Live diarization: the memory of streams, one step as a pure function, and sessions, which hold a stream's state."""

from sortformer.streaming.choice import stream_memory
from sortformer.streaming.files import stream_probabilities
from sortformer.streaming.pool import SessionPool
from sortformer.streaming.protocol import Chunk, StreamMemory
from sortformer.streaming.session import Session
from sortformer.streaming.state import StreamState
from sortformer.streaming.step import step
from sortformer.streaming.update import Update

__all__ = [
    "Chunk",
    "Session",
    "SessionPool",
    "StreamMemory",
    "StreamState",
    "Update",
    "step",
    "stream_memory",
    "stream_probabilities",
]
