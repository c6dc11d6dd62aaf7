"""Training: the loop, its schedule, its state on disk and its log."""

from sortformer.train.loop import train

__all__ = ["train"]
