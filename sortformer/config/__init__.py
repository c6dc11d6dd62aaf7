"""Frozen configs, validated when created, for models, streams, post-processing, simulation and training."""
