"""What a kernel does, counted from its loops."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sardonyx.ir.graph import Location, Origin
from sardonyx.ir.types import BufferType
from sardonyx.kernels.target import Target
from sardonyx.loop.builder import INDEX, LoopBuilder
from sardonyx.profiling.measure import _split
from sardonyx.profiling.peak import Peak, peak_of
from sardonyx.profiling.results import Node
from sardonyx.profiling.work import work_of
from sardonyx.targets.host import host_target
from sardonyx_runtime import dtypes

extents = st.lists(
    st.tuples(st.integers(-3, 9), st.integers(-3, 9), st.integers(1, 4)), min_size=1, max_size=4
)


@given(extents, st.integers(0, 5), st.sampled_from([1, 4, 16]), st.booleans())
def test_nests_are_multiplied(
    loops: list[tuple[int, int, int]], range_: int, lanes: int, given: bool
) -> None:
    """Stores and multiply-adds of a nest, its bounds constants or arguments."""
    b = LoopBuilder("kernel")
    buffer = b.argument(BufferType(dtypes.f32), "x")
    bounds = [[b.argument(INDEX, "n") for _ in loop] for loop in loops] if given else [list(o) for o in loops]
    begin, end = b.argument(INDEX, "begin"), b.argument(INDEX, "end")

    def nest(level: int) -> None:
        if level == len(loops):
            x = b.load(buffer, 0, lanes)
            b.store(b.muladd(x, x, x), buffer, 0)
            return
        low, high, step = bounds[level]
        with b.loop(low, high, step):
            nest(level + 1)

    with b.loop(begin, end):
        nest(0)
    passed = [0, *(value for loop in loops for value in loop)] if given else [0]
    work = work_of(b.finish(), passed, range_)
    times = range_ * int(np.prod([len(range(*loop)) for loop in loops]))
    assert work.products == work.operations == 2 * lanes * times
    assert work.traffic.get(0, 0) == 2 * 4 * lanes * times


@given(st.integers(0, 20), st.integers(0, 20))
def test_conditions_that_are_known_choose(x: int, y: int) -> None:
    b = LoopBuilder("kernel")
    buffer, n, m = b.argument(BufferType(dtypes.f64), "x"), b.argument(INDEX, "n"), b.argument(INDEX, "m")
    b.argument(INDEX, "begin"), b.argument(INDEX, "end")

    def times(count: int) -> tuple[()]:
        with b.loop(0, count):
            b.store(b.load(buffer, 0), buffer, 0)
        return ()

    b.if_(b.icmp("lt", n, m), lambda: times(3), lambda: times(5))
    work = work_of(b.finish(), [0, x, y], 1)
    assert work.traffic[0] == 16 * (3 if x < y else 5)


def test_an_address_that_is_taken_hides_the_traffic() -> None:
    b = LoopBuilder("kernel")
    buffer = b.argument(BufferType(dtypes.f32), "x")
    b.argument(INDEX, "begin"), b.argument(INDEX, "end")
    address = b.address(buffer)
    b.store(b.load(b.pointer(address, dtypes.f32), 0), buffer, 0)
    assert work_of(b.finish(), [0], 1).traffic[0] == -1


def test_carried_buffers_are_followed() -> None:
    b = LoopBuilder("kernel")
    buffer = b.argument(BufferType(dtypes.f32), "x")
    begin, end = b.argument(INDEX, "begin"), b.argument(INDEX, "end")
    with b.loop(begin, end, 1, [buffer]) as loop:
        b.load(loop.carried[0], 0, 8)
        b.yield_(b.offset(loop.carried[0], 8))
    b.load(loop.results[0], 0)
    assert work_of(b.finish(), [0], 10).traffic == {0: 10 * 32 + 4}


def location(*nodes: str) -> Location:
    return Location(tuple(Origin("main", n, "Op") for n in nodes))


def nodes(*names: str) -> tuple[Node, ...]:
    return tuple(Node("main", n, "Op") for n in names)


def test_time_is_split_by_instructions() -> None:
    a, b = nodes("a", "b")
    shares = {location("a"): 3.0, location("b"): 1.0, location("a", "b"): 50.0}
    assert _split(8.0, (a, b), (a, b), shares) == {a: 6.0, b: 2.0}
    assert _split(8.0, (a, b), (a, b), {location("a", "b"): 1.0}) == {a: 4.0, b: 4.0}
    c, d = nodes("c", "d")  # an equal group that shares the kernel
    assert _split(8.0, (c, d), (a, b), shares) == {c: 6.0, d: 2.0}
    assert _split(1.0, (), (), shares) == {}


def test_the_peak_of_this_machine() -> None:
    peak = peak_of(host_target(), 1)
    assert peak.operations > 1e8 and all(rate > 1e7 for _, rate in peak.bandwidth)
    assert peak is peak_of(host_target(), 1)
    sizes = [size for size, _ in peak.bandwidth]
    made = Peak(1, 1.0, ((10, 4.0), (20, 3.0), (40, 2.0)))
    assert [made.bytes_per_second(s) for s in (1, 10, 11, 40, 1000)] == [4.0, 4.0, 3.0, 2.0, 2.0]
    assert sizes == sorted(sizes)


def test_the_peak_needs_no_fused_multiply_add() -> None:
    host = host_target()
    plain = Target(host.triple, vector_bytes=16, registers=16)
    assert peak_of(plain, 1).operations > 0
