"""Weights on disk: our own folders, and NVIDIA's published Sortformers without NeMo.

There is a module for each format. ``load`` reads any of them but ONNX, ``save`` writes our own folders, and ``convert``
turns whatever ``load`` reads into our own folders, ``.nemo`` or ONNX.
"""

from sortformer.checkpoint.convert import convert
from sortformer.checkpoint.loading import load, read
from sortformer.checkpoint.native import EMBEDDED, save

__all__ = ["EMBEDDED", "convert", "load", "read", "save"]
