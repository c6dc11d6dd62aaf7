"""Building position mechanisms from their names."""

from sortformer.config.attention import AttentionConfig
from sortformer.position.absolute import CoordinatePosition, LearnedPosition, SinusoidalPosition
from sortformer.position.distance import AlibiPosition, DistanceAwarePosition
from sortformer.position.protocol import Position
from sortformer.position.relative import ShawPosition, TransformerXLPosition
from sortformer.position.rotary import RotaryPosition

__all__ = ["build_position"]


def build_position(config: AttentionConfig, dim: int, heads: int, depth: int) -> Position:
    """Return the position mechanism of layer ``depth`` (from 0), with ``heads`` and ``dim`` channels in all."""
    head_dim = dim // heads
    match config.position:
        case "none":
            return Position()
        case "sinusoidal":
            return SinusoidalPosition()
        case "learned":
            return LearnedPosition(dim, config.learned_positions)
        case "coordinates":
            return CoordinatePosition(depth)
        case "rope":
            return RotaryPosition(head_dim)
        case "shaw":
            return ShawPosition(head_dim)
        case "xl":
            return TransformerXLPosition(heads, head_dim)
        case "alibi":
            return AlibiPosition(heads, head_dim)
        case "distance_aware":
            return DistanceAwarePosition(heads)
