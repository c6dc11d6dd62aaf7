"""The model: encoder, arrival order, permutation encoding, head."""

from sortformer.model.sortformer import Sortformer, SortformerOutput

__all__ = ["Sortformer", "SortformerOutput"]
