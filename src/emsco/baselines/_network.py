"""A small network of three layers with duelling outputs, its gradient, and Adam. Arrays in, arrays out."""

from typing import Any

import numpy as np

FloatArray = Any
_FIRST, _SECOND, _TINY = 0.9, 0.999, 1e-8  # of Adam
_LARGEST = 1.0  # norm of a gradient


class Network:
    """Three layers of max(0, x W + b), then a value V and advantages A: Q = V + A - mean(A).

    Parameters
    ----------
    parts : list of ndarray
        Weights and biases of the three layers, of the value, and of the advantages.
    """

    def __init__(self, parts: list[FloatArray]) -> None:
        self.parts = parts

    @classmethod
    def random(cls, n_inputs: int, width: int, n_outputs: int, rng: np.random.Generator) -> "Network":
        """Return a network of random weights (He et al. 2015) and biases of 0, in single precision."""
        sizes = [(n_inputs, width), (width, width), (width, width), (width, 1), (width, n_outputs)]
        parts: list[FloatArray] = []
        for inputs, outputs in sizes:
            parts += [rng.normal(0, np.sqrt(2 / max(inputs, 1)), (inputs, outputs)), np.zeros(outputs)]
        return cls([part.astype(np.float32) for part in parts])

    def exact(self) -> "Network":
        """Return a copy in double precision, whose outputs do not depend on the rows beside them."""
        return Network([part.astype(np.float64) for part in self.parts])

    def copy(self) -> "Network":
        """Return an independent copy."""
        return Network([part.copy() for part in self.parts])

    def follow(self, other: "Network", step: float) -> None:
        """Move a step towards another network."""
        for mine, theirs in zip(self.parts, other.parts, strict=True):
            mine += step * (theirs - mine)

    def values(self, inputs: FloatArray) -> FloatArray:
        """Return the outputs, (n_rows, n_outputs)."""
        return self.forward(inputs)[0]

    def forward(self, inputs: FloatArray) -> tuple[FloatArray, list[FloatArray]]:
        """Return the outputs, and the inputs of each layer for the gradient."""
        layers = [inputs.astype(self.parts[0].dtype, copy=False)]
        for k in range(0, 6, 2):
            layers.append(np.maximum(layers[-1] @ self.parts[k] + self.parts[k + 1], 0.0))
        value = layers[-1] @ self.parts[6] + self.parts[7]
        advantage = layers[-1] @ self.parts[8] + self.parts[9]
        return value + advantage - advantage.mean(axis=1, keepdims=True), layers

    def gradient(self, layers: list[FloatArray], slope: FloatArray) -> list[FloatArray]:
        """Return the gradient by each part, from the slope of the loss in each output, (n_rows, n_outputs)."""
        slope = slope.astype(self.parts[0].dtype, copy=False)
        of_value = slope.sum(axis=1, keepdims=True)
        of_advantage = slope - slope.mean(axis=1, keepdims=True)
        last = layers[-1]
        found = [last.T @ of_value, of_value.sum(axis=0), last.T @ of_advantage, of_advantage.sum(axis=0)]
        back = of_value @ self.parts[6].T + of_advantage @ self.parts[8].T
        for k in (4, 2, 0):
            back = back * (layers[k // 2 + 1] > 0)
            found = [layers[k // 2].T @ back, back.sum(axis=0), *found]
            back = back @ self.parts[k].T
        return found


class Adam:
    """Gradient steps of adaptive size (Kingma & Ba 2015); a long gradient is shortened first."""

    def __init__(self, network: Network, rate: float) -> None:
        self._network, self._rate, self._n = network, rate, 0
        self._mean = [np.zeros_like(part) for part in network.parts]
        self._square = [np.zeros_like(part) for part in network.parts]

    def step(self, gradient: list[FloatArray]) -> None:
        """Move the network against a gradient."""
        self._n += 1
        norm = np.sqrt(sum(float((part * part).sum()) for part in gradient))
        shorter = float(min(1.0, _LARGEST / max(norm, _TINY)))
        size = float(self._rate * np.sqrt(1 - _SECOND**self._n) / (1 - _FIRST**self._n))
        for part, slope, mean, square in zip(self._network.parts, gradient, self._mean, self._square, strict=True):
            mean += (1 - _FIRST) * (shorter * slope - mean)
            square += (1 - _SECOND) * ((shorter * slope) ** 2 - square)
            part -= size * mean / (np.sqrt(square) + _TINY)
