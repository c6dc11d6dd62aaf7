"""Batches for training, real and simulated: which conversations step ``n`` of a run sees."""

from sortformer.data.batches import Batches, Draft, batches, killed_workers, part_rows
from sortformer.data.recordings import Crop, Crops, Recordings
from sortformer.data.sources import Sources

__all__ = ["Batches", "Crop", "Crops", "Draft", "Recordings", "Sources", "batches", "killed_workers", "part_rows"]
