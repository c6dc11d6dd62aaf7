"""Position information, one small file a mechanism.

Every mechanism is a module called with queries and keys (B, H, T, d) of one sequence; it returns them, possibly
changed, and an additive bias (B, H, T, T) for the attention scores *before* they are divided by sqrt(d), or None.
"""

from sortformer.position.relative import ShawPosition, TransformerXLPosition
from sortformer.position.rotary import RotaryPosition

__all__ = ["RotaryPosition", "ShawPosition", "TransformerXLPosition"]
