"""The register tile by itself: tiles per target, panels, cutting rows."""

from __future__ import annotations

import numpy as np
import pytest

from sardonyx.ir.types import BufferType, VectorType
from sardonyx.kernels.kernel import compute_type
from sardonyx.kernels.microkernel import Tile, accumulate, read_row, tile_for, widths
from sardonyx.kernels.panels import pack_constant, panel_elements
from sardonyx.kernels.rows_of_tiles import row_tiles
from sardonyx.kernels.target import Target
from sardonyx.loop.builder import LoopBuilder
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import symbol

UNITS = {
    "avx512": Target("x86_64-linux", vector_bytes=64, registers=32),
    "avx2": Target("x86_64-linux", vector_bytes=32, registers=16),
    "sse2": Target("x86_64-linux", vector_bytes=16, registers=16),
    "neon": Target("aarch64-linux", vector_bytes=16, registers=32),
}


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("dtype", [dtypes.f32, dtypes.f64])
@pytest.mark.parametrize("columns", [1, 7, 16, 17, 32, 33, 64, 1000, symbol("n")])
def test_tiles_stay_within_the_registers(unit: str, dtype: dtypes.DType, columns: int) -> None:
    target = UNITS[unit]
    tile = tile_for(target, dtype, columns)
    assert tile.lanes * dtype.itemsize == target.vector_bytes
    assert tile.rows * tile.vectors + tile.vectors + 1 <= target.registers


@pytest.mark.parametrize("columns", range(1, 150))
def test_panels_are_even(columns: int) -> None:
    """Panels differ by one vector at most and cover the columns with less than a vector to spare."""
    tile = Tile(16, 6, 4)
    cut = widths(columns, tile)
    sizes = [cut.vectors + (i < cut.wide) for i in range(cut.count)]
    assert max(sizes) <= tile.vectors and max(sizes) - min(sizes) <= 1
    assert sum(sizes) == cut.total and 0 <= cut.total * tile.lanes - columns < tile.lanes


@pytest.mark.parametrize("columns", [1, 3, 4, 5, 8, 13, 16, 17, 70])
@pytest.mark.parametrize("depth", [0, 1, 5])
def test_packing_keeps_every_element(columns: int, depth: int) -> None:
    tile = Tile(4, 6, 2)
    x = np.arange(2 * depth * columns, dtype=np.float32).reshape(2, depth, columns) + 1
    flat = pack_constant(x, tile, dtypes.f32).array
    assert flat.size == panel_elements(2, depth, columns, tile)
    cut = widths(columns, tile)
    for batch, packed in enumerate(flat.reshape(2, -1)):
        start, parts = 0, []
        for number in range(cut.count):
            width = (cut.vectors + (number < cut.wide)) * tile.lanes
            parts.append(packed[start : start + depth * width].reshape(depth, width))
            start += depth * width
        back = np.concatenate(parts, axis=1)
        assert (back[:, :columns] == x[batch]).all() and not back[:, columns:].any()


def test_one_load_per_vector_and_row() -> None:
    """A step loads each vector of B and each element of A once, and multiplies every pair."""
    b = LoopBuilder("tile")
    rows = [b.argument(BufferType(dtypes.f16), f"a{r}") for r in range(3)]
    panel = b.argument(BufferType(dtypes.f32), "b")
    zero = b.const(0.0, dtypes.f32, 8)
    sums, _ = accumulate(
        b,
        dtype=compute_type(dtypes.f16),
        depth=5,
        rows=rows,
        step=1,
        weights=panel,
        weight_step=16,
        read=lambda at: read_row(b, at, 2, 8, [None, None]),
        sums=[zero] * 6,
        at_least_once=True,
    )
    (loop,) = [op for op in b.finish().body.ops if op.name == "loop.for"]
    names = [op.kind for op in loop.regions[0].ops]
    assert names.count("load") == 2 + 3 and names.count("muladd") == 6 and names.count("splat") == 3
    assert len(sums) == 6 and all(s.type == VectorType(dtypes.f32, 8) for s in sums)


@pytest.mark.parametrize("total", [*range(1, 40), symbol("m")])
def test_rows_are_covered_by_few_variants(total: int) -> None:
    tile = Tile(16, 6, 4)
    b = LoopBuilder("rows")
    made: list[tuple[int, bool]] = []
    count = total if isinstance(total, int) else b.index(1)
    row_tiles(b, total, tile, 0, count, lambda row, rows, clamp: made.append((rows, clamp)))
    if isinstance(total, int):
        want = ([6] if total >= 6 else []) + ([total % 6] if total % 6 else [])
        assert made == [(rows, False) for rows in want]
    else:
        assert made == [(6, True), (1, False)]
