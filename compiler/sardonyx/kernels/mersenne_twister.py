"""NumPy's old stream of uniform numbers, MT19937 (M. Matsumoto, T. Nishimura, "Mersenne Twister", 1998).

One number needs the ones before it, so the kernel runs in one piece.  The meaning is NumPy's own
``RandomState(seed).random_sample``: two words of 32 bits give a number of 53.
"""

from __future__ import annotations

from sardonyx.ir.graph import Block, Value
from sardonyx.kernels.kernel import Kernel, KernelBuilder
from sardonyx.kernels.map import group_location
from sardonyx.loop.builder import Index, LoopBuilder
from sardonyx_runtime import dtypes

__all__ = ["mersenne_twister_kernel"]

_WORDS, _AHEAD = 624, 397
_TWIST = 0x9908B0DF


def mersenne_twister_kernel(region: Block, result: Value) -> Kernel:
    """The kernel of a lone ``core.mersenne_twister``."""
    op = region.ops[0]
    kernel = KernelBuilder("mersenne_twister", group_location(region))
    b = kernel.b
    out = kernel.buffer(result, name="out")
    seed = kernel.parameter(op.attributes["seed"] + 2, "seed")  # 0 and 1 would be constants of the code
    state = b.local(dtypes.u32, _WORDS)
    count = kernel.dim(result.type.size)
    first = b.convert(b.from_index(b.isub(seed, 2), dtypes.i64), dtypes.u32)
    b.store(first, state, 0)
    with b.loop(1, _WORDS, 1, [first]) as loop:
        before = loop.carried[0]
        mixed = _op(b, "xor", before, _op(b, "shr", before, _word(b, 30)))
        word = _op(b, "add", _op(b, "mul", mixed, _word(b, 1812433253)), b.from_index(loop.index, dtypes.u32))
        b.store(word, state, loop.index)
        b.yield_(word)
    half = _WORDS // 2
    with b.loop(kernel.begin, kernel.end), b.loop(0, count, half) as block:
        _twist(b, state)
        with b.loop(0, b.imin(b.isub(count, block.index), half)) as pair:
            high = _op(b, "shr", _tempered(b, state, b.imul(pair.index, 2)), _word(b, 5))
            low = _op(b, "shr", _tempered(b, state, b.iadd(b.imul(pair.index, 2), 1)), _word(b, 6))
            wide = b.scalar_op("mul", b.convert(high, dtypes.f64), b.const(67108864.0, dtypes.f64))
            wide = b.scalar_op("add", wide, b.convert(low, dtypes.f64))
            number = b.scalar_op("mul", wide, b.const(1 / 9007199254740992, dtypes.f64))
            b.store(number, out, b.iadd(block.index, pair.index))
    return kernel.finish(1, result.type.size * 500)


def _word(b: LoopBuilder, value: int) -> Value:
    return b.const(value, dtypes.u32)


def _op(b: LoopBuilder, kind: str, x: Value, y: Value) -> Value:
    return b.scalar_op(kind, x, y)


def _twist(b: LoopBuilder, state: Value) -> None:
    """The next 624 words in place of the last."""
    for start, end, ahead in (
        (0, _WORDS - _AHEAD, _AHEAD),
        (_WORDS - _AHEAD, _WORDS - 1, _AHEAD - _WORDS),
        (_WORDS - 1, _WORDS, _AHEAD - _WORDS),
    ):
        with b.loop(start, end) as loop:
            following = b.imod(b.iadd(loop.index, 1), _WORDS)
            upper = _op(b, "and", b.load(state, loop.index), _word(b, 0x80000000))
            lower = _op(b, "and", b.load(state, following), _word(b, 0x7FFFFFFF))
            y = _op(b, "or", upper, lower)
            odd = b.compare("ne", _op(b, "and", y, _word(b, 1)), _word(b, 0))
            turned = b.scalar_op("select", odd, _word(b, _TWIST), _word(b, 0), dtype=dtypes.u32)
            word = _op(b, "xor", b.load(state, b.iadd(loop.index, ahead)), _op(b, "shr", y, _word(b, 1)))
            b.store(_op(b, "xor", word, turned), state, loop.index)


def _tempered(b: LoopBuilder, state: Value, index: Index) -> Value:
    y = b.load(state, index)
    y = _op(b, "xor", y, _op(b, "shr", y, _word(b, 11)))
    y = _op(b, "xor", y, _op(b, "and", _op(b, "shl", y, _word(b, 7)), _word(b, 0x9D2C5680)))
    y = _op(b, "xor", y, _op(b, "and", _op(b, "shl", y, _word(b, 15)), _word(b, 0xEFC60000)))
    return _op(b, "xor", y, _op(b, "shr", y, _word(b, 18)))
