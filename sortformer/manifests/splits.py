"""The splits of corpora, as lists of names inside the package (``lists/README.md`` names their sources)."""

from importlib.resources import files

__all__ = ["split_of"]


def split_of(corpus: str, split: str) -> tuple[str, ...]:
    """Return the recordings of a split, such as ``("ami", "dev")`` or ``("callhome", "part2")``."""
    text = (files("sortformer.manifests") / "lists" / f"{corpus}_{split}.txt").read_text(encoding="utf-8")
    return tuple(text.split())
