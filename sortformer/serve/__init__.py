"""A server: recordings by HTTP, live streams by WebSocket, through one model; needs the extra ``serve``."""

from sortformer.serve.app import application
from sortformer.serve.listening import Server, bound

__all__ = ["Server", "application", "bound"]
