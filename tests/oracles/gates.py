"""The gated recurrent unit of GTrXL for one frame, number by number."""

import numpy as np

__all__ = ["gru_gate"]


def gru_gate(x: np.ndarray, y: np.ndarray, w: dict[str, np.ndarray], u: dict[str, np.ndarray], b: np.ndarray):
    """Parisotto et al., arXiv 1910.06764, the equations of the 'gated-recurrent-unit-type gating'."""

    def sigmoid(value: float) -> float:
        return 1 / (1 + np.exp(-value))

    size = len(x)
    r = [sigmoid(w["r"][i] @ y + u["r"][i] @ x) for i in range(size)]
    z = [sigmoid(w["z"][i] @ y + u["z"][i] @ x - b[i]) for i in range(size)]
    reset = np.array([r[i] * x[i] for i in range(size)])
    h = [np.tanh(w["g"][i] @ y + u["g"][i] @ reset) for i in range(size)]
    return np.array([(1 - z[i]) * x[i] + z[i] * h[i] for i in range(size)])
