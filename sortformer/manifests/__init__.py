"""Manifests: lists of recordings and their references, with one JSON object per line, as in NeMo.

One module per source (a folder, Kaldi, lhotse, a corpus), each with a function that returns drafts of entries;
``jsonl`` writes and reads manifests, ``check`` validates them.
"""

from sortformer.manifests.entry import Draft, Entry
from sortformer.manifests.jsonl import is_manifest, read, write

__all__ = ["Draft", "Entry", "is_manifest", "read", "write"]
