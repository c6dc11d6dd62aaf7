"""Frozen configs that cannot be invalid: model, post-processing, simulation and training kept apart."""
