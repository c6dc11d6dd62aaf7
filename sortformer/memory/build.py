"""Building memories from their configs."""

from sortformer.config import memories
from sortformer.memory.compressive import Compressive
from sortformer.memory.nearest import Nearest
from sortformer.memory.protocol import Memory
from sortformer.memory.transformer_xl import TransformerXL

__all__ = ["build_memory"]


def build_memory(config: memories.Memory, dim: int, heads: int) -> Memory:
    """Return the memory of a layer with ``heads`` and ``dim`` channels in all."""
    match config:
        case memories.NoMemory():
            return Memory()
        case memories.TransformerXLMemory():
            return TransformerXL(config.frames)
        case memories.CompressiveMemory():
            return Compressive(
                dim, config.frames, config.compressed_frames, config.ratio, config.compression, config.loss
            )
        case memories.NearestMemory():
            return Nearest(heads, config.frames, config.neighbours)
