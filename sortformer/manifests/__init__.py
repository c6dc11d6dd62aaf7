"""Manifests: which recordings there are, and where their references lie; one JSON object a line, as NeMo reads them.

One file a source (a folder, Kaldi, lhotse, a corpus), each a function that returns drafts of entries; ``jsonl`` writes
and reads them, ``check`` finds what is wrong with them.
"""

from sortformer.manifests.entry import Draft, Entry
from sortformer.manifests.jsonl import is_manifest, read, write

__all__ = ["Draft", "Entry", "is_manifest", "read", "write"]
