"""Graphs made at random, in ONNX's text form: chains with taps, loops and branches; every value is n x 4."""

from __future__ import annotations

import numpy as np

__all__ = ["CONSTANTS", "FEEDS", "Graphs"]

F = np.float32
CONSTANTS = {
    "w": (np.random.default_rng(0).integers(-2, 3, (4, 4)) / 4).astype(F),
    "one": np.array([1]),
    "zero": np.array(0),
}
FEEDS = {"x": np.ones((5, 4), F), "z": np.ones((5, 4), F), "trips": np.array(2), "flag": np.array(True)}


class Graphs:
    """Makes nodes of a seed; the same ones each time."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.count = 0

    def name(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def nodes(self, values: list[str], length: int, depth: int) -> list[str]:
        """Nodes that add to the values."""
        made: list[str] = []
        for _ in range(length):
            a, c = (str(v) for v in self.random.choice(values, 2))
            y, t = self.name(), self.name()
            match int(self.random.integers(7 if depth else 5)):
                case 0:
                    made.append(f"{y} = MatMul ({a}, w)")
                case 1:
                    made.append(f"{y} = Add ({a}, {c})")
                case 2:
                    made.append(f"{y} = Softmax <axis = 0> ({a})")
                case 3:
                    made += [f"{t} = ReduceMax ({a}, one)", f"{y} = Sub ({c}, {t})"]
                case 4:
                    made += [f"{t} = CumSum ({a}, zero)", f"{y} = Mul ({t}, {c})"]
                case 5:
                    made.append(self.loop(values, y, a, depth))
                case _:
                    made.append(self.choice(values, y, depth))
            values.append(y)
        return made

    def loop(self, values: list[str], y: str, a: str, depth: int) -> str:
        state, index, ok, after = (self.name() for _ in range(4))
        inner = [*values, state]
        nodes = " ".join(self.nodes(inner, 4, depth - 1))
        return (
            f'{y} = Loop (trips, "", {a}) <body = b{y} (int64 {index}, bool {ok}, float[n, 4] {state}) '
            f"=> ({ok}, {after}) {{ {nodes} {after} = Add ({inner[-1]}, {state}) }}>"
        )

    def choice(self, values: list[str], y: str, depth: int) -> str:
        branches = []
        for which in ("then", "else"):
            inner, result = list(values), self.name()
            nodes = " ".join(self.nodes(inner, 3, depth - 1))
            branches.append(
                f"{which}_branch = {which}{y} () => ({result}) {{ {nodes} {result} = Neg ({inner[-1]}) }}"
            )
        return f"{y} = If (flag) <{', '.join(branches)}>"
