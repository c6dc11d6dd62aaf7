"""The model: encoder, arrival order, permutation encoding, head."""

from sortformer.model.sortformer import ModelState, Sortformer, SortformerOutput, check_model

__all__ = ["ModelState", "Sortformer", "SortformerOutput", "check_model"]
