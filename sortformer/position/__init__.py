"""Position mechanisms, one file per family; ``position.protocol`` defines their interface."""

from sortformer.position.absolute import CoordinatePosition, LearnedPosition, SinusoidalPosition
from sortformer.position.build import build_position
from sortformer.position.distance import AlibiPosition, DistanceAwarePosition
from sortformer.position.protocol import Places, Position
from sortformer.position.relative import ShawPosition, TransformerXLPosition
from sortformer.position.rotary import RotaryPosition

__all__ = [
    "AlibiPosition",
    "CoordinatePosition",
    "DistanceAwarePosition",
    "LearnedPosition",
    "Places",
    "Position",
    "RotaryPosition",
    "ShawPosition",
    "SinusoidalPosition",
    "TransformerXLPosition",
    "build_position",
]
