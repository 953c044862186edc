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
resize(
    "nearest 2x asymmetric floor",
    'coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"',
    IMAGE,
    [1, 1, 2, 2],
)
resize(
    "linear 2x align_corners",
    'mode = "linear", coordinate_transformation_mode = "align_corners"',
    IMAGE,
    [1, 1, 2, 2],
)
resize("linear 0.5x", 'mode = "linear"', floats(1, 3, 512, 512), [1, 1, 0.5, 0.5])
resize("linear 0.3x antialias", 'mode = "linear", antialias = 1', floats(1, 3, 512, 512), [1, 1, 0.3, 0.3])
resize("nearest 1.7x", 'mode = "nearest"', IMAGE, [1, 1, 1.7, 1.7])
resize("nearest 2x u8", 'mode = "nearest"', integers(0, 255, 1, 3, 256, 256), [1, 1, 2, 2])
resize("nearest 2x channels last", 'mode = "nearest"', floats(1, 56, 56, 64), [1, 2, 2, 1])
resize("linear 2x channels last", 'mode = "linear"', floats(1, 56, 56, 64), [1, 2, 2, 1])
resize("linear 2x 3-D", 'mode = "linear"', floats(1, 8, 16, 32, 32), [1, 1, 2, 2, 2])


def conv_transpose(name: str, attributes: str, x: Array, w: Array) -> None:
    ROWS.append(
        Row(f"ConvTranspose {name}", (f"y = ConvTranspose <{attributes}> (x, w)",), {"x": x}, {"w": w})
    )


conv_transpose("k2 s2 64->32 80x80", "strides = [2, 2]", floats(1, 64, 80, 80), floats(64, 32, 2, 2))
conv_transpose(
    "k4 s2 p1 128->64 32x32",
    "strides = [2, 2], pads = [1, 1, 1, 1]",
    floats(1, 128, 32, 32),
    floats(128, 64, 4, 4),
)
conv_transpose(
    "k3 s2 p1 op1 64->64 28x28",
    "strides = [2, 2], pads = [1, 1, 1, 1], output_padding = [1, 1]",
    floats(1, 64, 28, 28),
    floats(64, 64, 3, 3),
)
conv_transpose("k3 s1 p1 32->32 56x56", "pads = [1, 1, 1, 1]", floats(1, 32, 56, 56), floats(32, 32, 3, 3))
conv_transpose(
    "depthwise k4 s2 p1 64 28x28",
    "strides = [2, 2], pads = [1, 1, 1, 1], group = 64",
    floats(1, 64, 28, 28),
    floats(64, 1, 4, 4),
)
conv_transpose(
    "k16 s8 p4 1-D 256->128 400", "strides = [8], pads = [4, 4]", floats(1, 256, 400), floats(256, 128, 16)
)
conv_transpose(
    "k2 s2 3-D 32->16 8x32x32", "strides = [2, 2, 2]", floats(1, 32, 8, 32, 32), floats(32, 16, 2, 2, 2)
)


def integer_matmul(name: str, x: Array, y: Array, *zeros: Array) -> None:
    inputs = ", ".join(["x", "w", *(f"z{i}" for i in range(len(zeros)))])
    constants = {"w": y, **{f"z{i}": z for i, z in enumerate(zeros)}}
    ROWS.append(Row(f"MatMulInteger {name}", (f"y = MatMulInteger ({inputs})",), {"x": x}, constants))


ZERO_U8, ZERO_I8 = np.array(128, np.uint8), np.array(0, np.int8)
for _m in (1, 32, 256):
    integer_matmul(
        f"u8 x i8 {_m}x768x768",
        integers(0, 255, _m, 768),
        integers(-128, 127, 768, 768, dtype=np.int8),
        ZERO_U8,
        ZERO_I8,
    )
integer_matmul(
    "u8 x u8 128x512x512", integers(0, 255, 128, 512), integers(0, 255, 512, 512), ZERO_U8, ZERO_U8
)
integer_matmul(
    "i8 x i8 128x512x512",
    integers(-128, 127, 128, 512, dtype=np.int8),
    integers(-128, 127, 512, 512, dtype=np.int8),
)

QUANTISED = {
    "xs": np.array(0.02, np.float32),
    "xz": np.array(128, np.uint8),
    "ws": np.array(0.01, np.float32),
    "wz": np.array(0, np.int8),
    "ys": np.array(0.05, np.float32),
    "yz": np.array(120, np.uint8),
}


def qlinear(name: str, op: str, x: Array, w: Array, attributes: str = "") -> None:
    node = (
        f"y = {op} <{attributes}> (x, xs, xz, w, ws, wz, ys, yz)"
        if attributes
        else f"y = {op} (x, xs, xz, w, ws, wz, ys, yz)"
    )
    ROWS.append(Row(f"{op} {name}", (node,), {"x": x}, {"w": w, **QUANTISED}))


I8: Any = np.int8
qlinear("128x768x768", "QLinearMatMul", integers(0, 255, 128, 768), integers(-128, 127, 768, 768, dtype=I8))
qlinear(
    "3x3 64->64 56x56",
    "QLinearConv",
    integers(0, 255, 1, 64, 56, 56),
    integers(-128, 127, 64, 64, 3, 3, dtype=I8),
    "pads = [1, 1, 1, 1]",
)
qlinear(
    "1x1 128->256 28x28",
    "QLinearConv",
    integers(0, 255, 1, 128, 28, 28),
    integers(-128, 127, 256, 128, 1, 1, dtype=I8),
    "kernel_shape = [1, 1]",
)
qlinear(
    "3x3 s2 3->32 224x224",
    "QLinearConv",
    integers(0, 255, 1, 3, 224, 224),
    integers(-128, 127, 32, 3, 3, 3, dtype=I8),
    "strides = [2, 2], pads = [1, 1, 1, 1]",
)
qlinear(
    "depthwise 3x3 128 56x56",
    "QLinearConv",
    integers(0, 255, 1, 128, 56, 56),
    integers(-128, 127, 128, 1, 3, 3, dtype=I8),
    "group = 128, pads = [1, 1, 1, 1]",
)
ROWS.append(
    Row(
        "ConvInteger 3x3 64->64 56x56",
        ("y = ConvInteger <pads = [1, 1, 1, 1]> (x, w, xz)",),
        {"x": integers(0, 255, 1, 64, 56, 56)},
        {"w": integers(0, 255, 64, 64, 3, 3), "xz": np.array(128, np.uint8)},
    )
)
ROWS.append(
    Row("DynamicQuantizeLinear 256x768", ("y, s, z = DynamicQuantizeLinear (x)",), {"x": floats(256, 768)})
)


def grid_sample(name: str, attributes: str, x: Array, places: tuple[int, ...]) -> None:
    grid = np.random.default_rng(1).uniform(-1, 1, (*places, x.ndim - 2)).astype(np.float32)
    ROWS.append(
        Row(f"GridSample {name}", (f"y = GridSample <{attributes}> (x, g)",), {"x": x, "g": grid}, opset=20)
    )


grid_sample("linear zeros 64ch 56x56", 'mode = "linear"', floats(1, 64, 56, 56), (1, 56, 56))
grid_sample(
    "linear border 3ch 256x256",
    'mode = "linear", padding_mode = "border"',
    floats(1, 3, 256, 256),
    (1, 256, 256),
)
grid_sample(
    "nearest reflection 3ch 256x256",
    'mode = "nearest", padding_mode = "reflection"',
    floats(1, 3, 256, 256),
    (1, 256, 256),
)
grid_sample("cubic zeros 16ch 64x64", 'mode = "cubic"', floats(1, 16, 64, 64), (1, 64, 64))
grid_sample("linear 3-D 8ch 16x32x32", 'mode = "linear"', floats(1, 8, 16, 32, 32), (1, 16, 32, 32))


def roi_align(name: str, attributes: str, count: int) -> None:
    rng = np.random.default_rng(2)
    corners = rng.uniform(0, 40, (count, 2))
    rois = np.concatenate([corners, corners + rng.uniform(4, 24, (count, 2))], 1).astype(np.float32)
    x = floats(1, 256, 64, 64)
    node = f"y = RoiAlign <output_height = 7, output_width = 7, {attributes}> (x, r, i)"
    ROWS.append(Row(f"RoiAlign {name}", (node,), {"x": x, "r": rois, "i": np.zeros(count, np.int64)}))


roi_align("avg ratio 2, 100 rois 256ch", "sampling_ratio = 2", 100)
roi_align("avg adaptive, 100 rois 256ch", "sampling_ratio = 0", 100)
roi_align("max ratio 2, 20 rois 256ch", 'sampling_ratio = 2, mode = "max"', 20)


def einsum(equation: str, *shapes: tuple[int, ...]) -> None:
    feeds = {n: floats(*s, seed=i) for i, (n, s) in enumerate(zip("abcd", shapes, strict=False))}
    node = f'y = Einsum <equation = "{equation}"> ({", ".join(feeds)})'
    ROWS.append(Row(f"Einsum {equation} {shapes[0]}", (node,), feeds))


einsum("bij,bjk->bik", (8, 128, 64), (8, 64, 128))
einsum("bqhd,bkhd->bhqk", (1, 128, 12, 64), (1, 128, 12, 64))
einsum("bhqk,bkhd->bqhd", (1, 12, 128, 128), (1, 128, 12, 64))
einsum("abc,cd->abd", (4, 64, 256), (256, 256))
einsum("ij,jk,kl->il", (64, 128), (128, 128), (128, 64))
einsum("bic,bjc->bij", (4, 100, 64), (4, 100, 64))
einsum("ijk->ki", (64, 128, 64))
einsum("bhwij,bhwj->bhwi", (1, 32, 32, 8, 8), (1, 32, 32, 8))
einsum("bchw,bkhw->bckhw", (1, 16, 32, 32), (1, 8, 32, 32))


def dft(name: str, x: Array, attributes: str = "") -> None:
    node = f"y = DFT <{attributes}> (x, , a)" if attributes else "y = DFT (x, , a)"
    ROWS.append(Row(f"DFT {name}", (node,), {"x": x}, {"a": np.array(1)}, opset=20))


dft("real 16x1024 onesided", floats(16, 1024, 1), "onesided = 1")
dft("complex 16x1024", floats(16, 1024, 2))
dft("inverse 16x1024", floats(16, 1024, 2), "inverse = 1")
dft("complex 4x16384", floats(4, 16384, 2))
dft("real 32x400 onesided", floats(32, 400, 1), "onesided = 1")
dft("complex 8x1009 (prime)", floats(8, 1009, 2))


def stft(name: str, length: int, frame: int, step: int) -> None:
    constants = {"s": np.array(step), "w": np.hanning(frame).astype(np.float32)}
    ROWS.append(Row(f"STFT {name}", ("y = STFT (x, s, w)",), {"x": floats(1, length, 1)}, constants))


stft("1 s, 400 by 160", 16000, 400, 160)
stft("5 s, 512 by 128", 80000, 512, 128)
stft("1 s, 256 by 64", 16000, 256, 64)

ROWS.append(
    Row(
        "Col2Im 3x3 32ch 28x28",
        ("y = Col2Im <pads = [1, 1, 1, 1]> (x, i, k)",),
        {"x": floats(1, 288, 784)},
        {"i": np.array([28, 28]), "k": np.array([3, 3])},
    )
)
ROWS.append(
    Row(
        "DeformConv 3x3 32->32 28x28",
        ("y = DeformConv <pads = [1, 1, 1, 1]> (x, w, o)",),
        {"x": floats(1, 32, 28, 28), "o": floats(1, 18, 28, 28)},
        {"w": floats(32, 32, 3, 3)},
        opset=22,
    )
)
