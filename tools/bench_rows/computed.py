"""Operators that read at computed places, products of integers, spectra, and general products."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench_rows.row import Array, Row, floats, integers

ROWS: list[Row] = []


def resize(name: str, attributes: str, x: Array, scales: list[float]) -> None:
    ROWS.append(
        Row(
            f"Resize {name}",
            (f"y = Resize <{attributes}> (x, , s)",),
            {"x": x},
            {"s": np.array(scales, np.float32)},
        )
    )


IMAGE = floats(1, 64, 56, 56)
for _mode in ("nearest", "linear", "cubic"):
    resize(f"{_mode} 2x half_pixel", f'mode = "{_mode}"', IMAGE, [1, 1, 2, 2])
resize("nearest 2x asymmetric floor", 'coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"', IMAGE, [1, 1, 2, 2])
resize("linear 2x align_corners", 'mode = "linear", coordinate_transformation_mode = "align_corners"', IMAGE, [1, 1, 2, 2])
resize("linear 0.5x", 'mode = "linear"', floats(1, 3, 512, 512), [1, 1, 0.5, 0.5])
resize("linear 0.3x antialias", 'mode = "linear", antialias = 1', floats(1, 3, 512, 512), [1, 1, 0.3, 0.3])
resize("nearest 1.7x", 'mode = "nearest"', IMAGE, [1, 1, 1.7, 1.7])
resize("nearest 2x u8", 'mode = "nearest"', integers(0, 255, 1, 3, 256, 256), [1, 1, 2, 2])
resize("nearest 2x channels last", 'mode = "nearest"', floats(1, 56, 56, 64), [1, 2, 2, 1])
resize("linear 2x channels last", 'mode = "linear"', floats(1, 56, 56, 64), [1, 2, 2, 1])
resize("linear 2x 3-D", 'mode = "linear"', floats(1, 8, 16, 32, 32), [1, 1, 2, 2, 2])
