"""Live diarization: the speaker cache, one step as a pure function, and the session that holds a stream's state."""

from sortformer.streaming.files import stream_probabilities
from sortformer.streaming.pool import SessionPool
from sortformer.streaming.session import Session, Update
from sortformer.streaming.state import StreamState
from sortformer.streaming.step import Chunk, step

__all__ = ["Chunk", "Session", "SessionPool", "StreamState", "Update", "step", "stream_probabilities"]
