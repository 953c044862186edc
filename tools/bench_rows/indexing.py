"""Movement, reads and writes at computed places, order and data-dependent sizes."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench_rows.row import Array, Row, floats, integers

ROWS: list[Row] = []


def row(
    name: str, nodes: str | tuple[str, ...], feeds: dict[str, Array], *, opset: int = 19, **constants: Any
) -> None:
    lines = (nodes,) if isinstance(nodes, str) else nodes
    ROWS.append(Row(name, lines, feeds, {k: np.asarray(v) for k, v in constants.items()}, opset))


# -- movement

IMAGE = floats(1, 64, 56, 56)
TEXT = floats(8, 128, 768)
row(
    "Split last axis 8x128x2304 into 3",
    "a, b, c = Split <axis = -1> (x, s)",
    {"x": floats(8, 128, 2304)},
    s=[768] * 3,
)
row("Split channels 64x56x56 into 2", "a, b = Split <axis = 1> (x, s)", {"x": IMAGE}, s=[32, 32])
row("Concat channels 2 x 64x56x56", "y = Concat <axis = 1> (a, b)", {"a": IMAGE, "b": IMAGE})
row("Concat last axis 3 x 8x128x768", "y = Concat <axis = 2> (a, b, c)", {"a": TEXT, "b": TEXT, "c": TEXT})
row(
    "Concat of three Relus 64x56x56",
    ("r = Relu (a)", "s = Sigmoid (b)", "y = Concat <axis = 1> (r, s, a)"),
    {"a": IMAGE, "b": IMAGE},
)
row(
    "Concat 8 narrow parts 4096x4",
    "y = Concat <axis = 1> (a, b, a, b, a, b, a, b)",
    {"a": floats(4096, 4), "b": floats(4096, 4)},
)
for _mode in ("constant", "reflect", "edge", "wrap"):
    row(
        f"Pad {_mode} 64x56x56 by 1",
        f'y = Pad <mode = "{_mode}"> (x, p)',
        {"x": IMAGE},
        p=[0, 0, 1, 1, 0, 0, 1, 1],
    )
row(
    "Pad reflect audio 16x16000 by 200",
    'y = Pad <mode = "reflect"> (x, p)',
    {"x": floats(16, 16000)},
    p=[0, 200, 0, 200],
)
row("Pad constant rows 8x128x768", "y = Pad (x, p)", {"x": TEXT}, p=[0, 0, 0, 0, 64, 0])
row("Tile 1x1x768 by 8x128", "y = Tile (x, r)", {"x": floats(1, 1, 768)}, r=[8, 128, 1])
row("Tile 64x32x32 by 1x2x2", "y = Tile (x, r)", {"x": floats(64, 32, 32)}, r=[1, 2, 2])
row("Tile 3x5 by 300x300", "y = Tile (x, r)", {"x": floats(3, 5)}, r=[300, 300])
row("Expand 128x1x64 to 128x32x64", "y = Expand (x, s)", {"x": floats(128, 1, 64)}, s=[128, 32, 64])
row(
    "Expand heads 1x8x1x256x64 by 4",
    "y = Expand (x, s)",
    {"x": floats(1, 8, 1, 256, 64)},
    s=[1, 8, 4, 256, 64],
)
row("Range 65536 i64", "y = Range (a, b, c)", {"a": np.array(0), "b": np.array(65536), "c": np.array(1)})
row(
    "Range 65536 f32",
    "y = Range (a, b, c)",
    {k: np.array(v, np.float32) for k, v in zip("abc", (0, 65536, 1), strict=True)},
)
row("Trilu 8x512x512", "y = Trilu (x)", {"x": floats(8, 512, 512)})
row("EyeLike 1024x1024", "y = EyeLike (x)", {"x": floats(1024, 1024)})
row(
    "OneHot 512 of 1000",
    "y = OneHot (i, d, v)",
    {"i": integers(0, 999, 512, dtype=np.int64)},
    d=np.array(1000),
    v=np.array([0, 1], np.float32),
)
row(
    "OneHot axis 1 64x64 of 32",
    "y = OneHot <axis = 1> (i, d, v)",
    {"i": integers(0, 31, 64, 64, dtype=np.int64)},
    d=np.array(32),
    v=np.array([0, 1], np.float32),
)
for _mode in ("DCR", "CRD"):
    row(
        f"DepthToSpace {_mode} 64x56x56 by 2",
        f'y = DepthToSpace <blocksize = 2, mode = "{_mode}"> (x)',
        {"x": IMAGE},
    )
row("DepthToSpace 48x64x64 by 4", "y = DepthToSpace <blocksize = 4> (x)", {"x": floats(1, 48, 64, 64)})
row("SpaceToDepth 3x640x640 by 2", "y = SpaceToDepth <blocksize = 2> (x)", {"x": floats(1, 3, 640, 640)})
row(
    "ReverseSequence 128x16x256",
    "y = ReverseSequence (x, n)",
    {"x": floats(128, 16, 256), "n": integers(1, 128, 16, dtype=np.int64)},
)
row(
    "Slice steps 2 64x56x56",
    "y = Slice (x, s, e, a, t)",
    {"x": IMAGE},
    s=[0, 0],
    e=[56, 56],
    a=[2, 3],
    t=[2, 2],
)
row("Slice reversed 8x128x768", "y = Slice (x, s, e, a, t)", {"x": TEXT}, s=[-1], e=[-(2**62)], a=[2], t=[-1])
row(
    "CenterCropPad 3x256x256 to 224",
    "y = CenterCropPad <axes = [1, 2]> (x, s)",
    {"x": floats(3, 256, 256)},
    s=[224, 224],
)

# -- indexing

TABLE = floats(30000, 768)
TOKENS = integers(0, 29999, 8, 128, dtype=np.int64)
row("Gather embedding 8x128 of 30000x768", "y = Gather (t, i)", {"i": TOKENS}, t=TABLE)
row(
    "Gather last axis 1024x512 pick 64",
    "y = Gather <axis = 1> (x, i)",
    {"x": floats(1024, 512), "i": integers(0, 511, 64, dtype=np.int64)},
)
row("Gather one row", "y = Gather <axis = 1> (x, i)", {"x": TEXT}, i=np.array(0))
row(
    "GatherElements axis 1 1024x512",
    "y = GatherElements <axis = 1> (x, i)",
    {"x": floats(1024, 512), "i": integers(0, 511, 1024, 512, dtype=np.int64)},
)
row(
    "GatherElements axis 0 1024x512",
    "y = GatherElements <axis = 0> (x, i)",
    {"x": floats(1024, 512), "i": integers(0, 1023, 1024, 512, dtype=np.int64)},
)
row(
    "GatherND rows 4096 of 64x64x128",
    "y = GatherND (x, i)",
    {"x": floats(64, 64, 128), "i": integers(0, 63, 4096, 2, dtype=np.int64)},
)
row(
    "GatherND scalars 65536 of 512x512",
    "y = GatherND (x, i)",
    {"x": floats(512, 512), "i": integers(0, 511, 65536, 2, dtype=np.int64)},
)
row(
    "GatherND batch 8, 64 of 300x256",
    "y = GatherND <batch_dims = 1> (x, i)",
    {"x": floats(8, 300, 256), "i": integers(0, 299, 8, 64, 1, dtype=np.int64)},
)
for _kind in ("none", "add", "max"):
    row(
        f"ScatterElements {_kind} axis 1 1024x512",
        f'y = ScatterElements <axis = 1, reduction = "{_kind}"> (x, i, u)',
        {"x": floats(1024, 512), "i": integers(0, 511, 1024, 256, dtype=np.int64), "u": floats(1024, 256)},
    )
    row(
        f"ScatterND {_kind} 1024 rows of 4096x256",
        f'y = ScatterND <reduction = "{_kind}"> (x, i, u)',
        {"x": floats(4096, 256), "i": integers(0, 4095, 1024, 1, dtype=np.int64), "u": floats(1024, 256)},
    )
row(
    "ScatterElements none axis 0 1024x512",
    "y = ScatterElements <axis = 0> (x, i, u)",
    {"x": floats(1024, 512), "i": integers(0, 1023, 256, 512, dtype=np.int64), "u": floats(256, 512)},
)
row(
    "ScatterND scalars 65536 of 512x512",
    "y = ScatterND (x, i, u)",
    {"x": floats(512, 512), "i": integers(0, 511, 65536, 2, dtype=np.int64), "u": floats(65536)},
)

# -- order

row("TopK 5 of 1000, 64 rows", "v, i = TopK (x, k)", {"x": floats(64, 1000)}, k=[5])
row("TopK 1 of 1000", "v, i = TopK (x, k)", {"x": floats(1, 1000)}, k=[1])
row("TopK 100 of 100000", "v, i = TopK (x, k)", {"x": floats(1, 100000)}, k=[100])
row("TopK 1000 of 100000", "v, i = TopK (x, k)", {"x": floats(1, 100000)}, k=[1000])
row("TopK 300 of 8400x1", "v, i = TopK <axis = 1> (x, k)", {"x": floats(1, 8400)}, k=[300])
row("TopK all of 8400", "v, i = TopK <largest = 0> (x, k)", {"x": floats(1, 8400)}, k=[8400])
row("TopK all of 100000", "v, i = TopK (x, k)", {"x": floats(1, 100000)}, k=[100000])
row("TopK 10 along axis 0 of 1000x64", "v, i = TopK <axis = 0> (x, k)", {"x": floats(1000, 64)}, k=[10])
row(
    "TopK 50 of 50257 i64",
    "v, i = TopK (x, k)",
    {"x": integers(-(10**9), 10**9, 1, 50257, dtype=np.int64)},
    k=[50],
)
row("NonZero 1 in 2 of 512x512", "y = NonZero (x)", {"x": integers(0, 1, 512, 512, dtype=np.bool_)})
row(
    "NonZero 1 in 100 of 8x128x128",
    "y = NonZero (x)",
    {"x": (integers(0, 99, 8, 128, 128) == 0).astype(np.float32)},
)
row(
    "Compress rows 4096x64",
    "y = Compress <axis = 0> (x, c)",
    {"x": floats(4096, 64), "c": integers(0, 1, 4096, dtype=np.bool_)},
)
row(
    "Compress flat 262144",
    "y = Compress (x, c)",
    {"x": floats(512, 512), "c": integers(0, 1, 262144, dtype=np.bool_)},
)
row("Unique 65536 of 1000", "y, i, v, c = Unique (x)", {"x": integers(0, 999, 65536, dtype=np.int64)})
row(
    "Unique unsorted 65536 of 1000",
    "y, i, v, c = Unique <sorted = 0> (x)",
    {"x": integers(0, 999, 65536, dtype=np.int64)},
)
row(
    "Unique rows 2048x8",
    "y, i, v, c = Unique <axis = 0> (x)",
    {"x": integers(0, 2, 2048, 8, dtype=np.int64).astype(np.float32)},
)


def boxes(count: int) -> Array:
    rng = np.random.default_rng(3)
    corner = rng.random((1, count, 2)) * 600
    return np.concatenate([corner, corner + 5 + rng.random((1, count, 2)) * 60], 2).astype(np.float32)


def suppression(name: str, count: int, labels: int, above: float) -> None:
    scores = np.random.default_rng(4).random((1, labels, count)).astype(np.float32)
    limits = {"m": np.array([100]), "o": np.array([0.5], np.float32), "t": np.array([above], np.float32)}
    row(
        f"NonMaxSuppression {name}",
        "y = NonMaxSuppression (b, s, m, o, t)",
        {"b": boxes(count), "s": scores},
        **limits,
    )


suppression("1 label, 8400 boxes, half above", 8400, 1, 0.5)
suppression("80 labels, 8400 boxes, 1 % above", 8400, 80, 0.99)
suppression("1 label, 1000 boxes, all above", 1000, 1, 0.0)
for _axis in range(3):
    row(f"CumSum axis {_axis} of 8x128x768", "y = CumSum (x, a)", {"x": TEXT}, a=np.array(_axis))
row(
    "CumSum exclusive reverse 64x1000",
    "y = CumSum <exclusive = 1, reverse = 1> (x, a)",
    {"x": floats(64, 1000)},
    a=np.array(1),
)
row(
    "CumSum i64 8x128 (positions)",
    "y = CumSum (x, a)",
    {"x": integers(0, 1, 8, 128, dtype=np.int64)},
    a=np.array(1),
)
