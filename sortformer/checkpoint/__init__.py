"""Weights on disk: our own folders, and NVIDIA's published Sortformers without NeMo.

One file a format, behind one function each: ``load`` for reading whatever it is, ``save`` for our own folders, and
``convert`` from one to the other.
"""

from sortformer.checkpoint.convert import convert
from sortformer.checkpoint.loading import load, read
from sortformer.checkpoint.native import EMBEDDED, save

__all__ = ["EMBEDDED", "convert", "load", "read", "save"]
