"""The thread pool: every unit runs exactly once, whatever the threads, forks and callers do.

Each test that could hang runs in a process of its own with a time limit.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
import pytest

from sardonyx.codegen.compile import compile_text, support_object
from sardonyx.codegen.jit import JitLibrary, support_addresses
from sardonyx.codegen.pool import GRAIN, SMALLEST, WAKING, pool_text
from sardonyx.targets.host import host_target

MUCH = 1 << 40  # a cost that always pays

# Adds the number of the unit to each cell of the unit; counts calls; notes the largest piece.
_TASK = """
declare void @sdx_launch(ptr, ptr, ptr, i64, i64)

define void @add(ptr %args, i64 %begin, i64 %end) nounwind {
entry:
  %cells = load ptr, ptr %args
  %calls.at = getelementptr i64, ptr %args, i64 1
  %c = atomicrmw add ptr %calls.at, i64 1 monotonic
  %most.at = getelementptr i64, ptr %args, i64 2
  %length = sub i64 %end, %begin
  %m = atomicrmw max ptr %most.at, i64 %length monotonic
  br label %loop
loop:
  %i = phi i64 [ %begin, %entry ], [ %next, %body ]
  %more = icmp slt i64 %i, %end
  br i1 %more, label %body, label %done
body:
  %at = getelementptr i64, ptr %cells, i64 %i
  %old = load i64, ptr %at
  %new = add i64 %old, %i
  store i64 %new, ptr %at
  %next = add i64 %i, 1
  br label %loop
done:
  ret void
}

; Arguments: context, outer range, args of `add`, inner range.  Each unit launches again.
define void @outer(ptr %args, i64 %begin, i64 %end) nounwind {
  %context = load ptr, ptr %args
  %inner.at = getelementptr i64, ptr %args, i64 1
  %inner = load ptr, ptr %inner.at
  %range.at = getelementptr i64, ptr %args, i64 2
  %range = load i64, ptr %range.at
  call void @sdx_launch(ptr %context, ptr @add, ptr %inner, i64 %range, i64 1099511627776)
  ret void
}
"""


class Native:
    """The support code and the tasks above, linked."""

    def __init__(self) -> None:
        target = host_target()
        self.addresses = support_addresses(target, lambda: support_object(target))
        text = f'target triple = "{target.triple}"\n{_TASK}'
        objects = {"tasks": compile_text(text, target)}
        self.library = JitLibrary(objects, ["add", "outer"], target, self.addresses)
        kinds = [ctypes.c_void_p] * 3 + [ctypes.c_int64] * 2
        self._launch = ctypes.CFUNCTYPE(None, *kinds)(self.addresses["sdx_launch"])

    def launch(self, threads: int, range_: int, cost: int = MUCH) -> tuple[list[int], int, int]:
        """The cells, the number of calls and the longest piece of one launch of ``add``."""
        cells = np.zeros(max(1, range_), np.int64)
        context = (ctypes.c_int64 * 8)(0, threads)
        args = (ctypes.c_int64 * 3)(cells.__array_interface__["data"][0], 0, 0)
        task = self.library.address("add")
        self._launch(ctypes.addressof(context), task, ctypes.addressof(args), range_, cost)
        return cells.tolist()[: max(0, range_)], args[1], args[2]

    def nested(self, threads: int, outer: int, inner: int) -> int:
        """How many pieces ``outer`` launches of ``add``, made by the units of a launch, had."""
        cells = np.zeros(inner * outer, np.int64)
        context = (ctypes.c_int64 * 8)(0, threads)
        args = (ctypes.c_int64 * 3)(cells.__array_interface__["data"][0], 0, 0)
        own = (ctypes.c_int64 * 3)(ctypes.addressof(context), ctypes.addressof(args), inner)
        self._launch(
            ctypes.addressof(context), self.library.address("outer"), ctypes.addressof(own), outer, MUCH
        )
        return args[1]


@cache
def native() -> Native:
    return Native()


@pytest.fixture(scope="module")
def pool() -> Iterator[Native]:
    yield native()


def in_process(code: str, seconds: float = 60) -> str:
    """What a fresh interpreter prints for the code; fails when it takes longer or does not end well."""
    start = "from tests.codegen.test_pool import native, MUCH, SMALLEST\npool = native()\n"
    result = subprocess.run(
        [sys.executable, "-c", start + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize("threads", [1, 2, 3, 4, 8, 1000])
@pytest.mark.parametrize("range_", [-1, 0, 1, 2, 3, 7, 8, 9, 31, 1000])
def test_every_unit_runs_once(pool: Native, threads: int, range_: int) -> None:
    cells, _, _ = pool.launch(threads, range_)
    assert cells == list(range(range_))


def test_pieces_follow_the_cost(pool: Native) -> None:
    assert pool.launch(2, 1000, SMALLEST - 1)[1] == 1
    assert pool.launch(2, 1000, WAKING - 1)[1] <= WAKING // GRAIN
    assert pool.launch(2, 1000, WAKING)[1:] == (8, 125)
    assert pool.launch(4, 1000, 7 * GRAIN)[1] in (1, 4)  # a multiple of the threads, or nobody is awake
    assert pool.launch(3, 7)[1:] == (4, 2)


def test_one_thread_runs_one_piece(pool: Native) -> None:
    assert pool.launch(1, 1000)[1:] == (1, 1000)


def test_small_launches_add_up_before_workers_are_woken() -> None:
    code = """
    import ctypes, numpy as np, os
    context = (ctypes.c_int64 * 8)(0, 2)
    cells = np.zeros(100, np.int64)
    args = (ctypes.c_int64 * 3)(cells.__array_interface__["data"][0])
    task = pool.library.address("add")
    for number in range(12):
        pool._launch(ctypes.addressof(context), task, ctypes.addressof(args), 100, SMALLEST)
        print(len(os.listdir("/proc/self/task")), end=" ")
    """
    if not sys.platform.startswith("linux"):
        pytest.skip("counts the threads in /proc")
    counts = [int(n) for n in in_process(code).split()]
    enough = WAKING // SMALLEST  # launches
    assert counts[: enough - 1] == [counts[0]] * (enough - 1) and counts[enough] == counts[0] + 1


def test_nested_launches_run_on_their_thread(pool: Native) -> None:
    assert pool.nested(4, 16, 100) in (16, 12, 8, 4)  # one piece for each piece of the outer range


def test_callers_in_many_threads() -> None:
    code = """
    import threading
    bad = []
    def work(number):
        for i in range(300):
            size = 1 + (i * 7 + number) % 100
            if pool.launch(1 + (i + number) % 8, size)[0] != list(range(size)):
                bad.append((number, i))
    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    print(bad)
    """
    assert in_process(code) == "[]\n"


def test_more_threads_than_processors() -> None:
    code = """
    import time
    end = time.time() + 2
    rounds = 0
    while time.time() < end:
        assert pool.launch(32, 128)[0] == list(range(128))
        rounds += 1
    print(rounds > 20)
    """
    assert in_process(code) == "True\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_children_have_a_pool_of_their_own() -> None:
    code = """
    import os, threading, warnings
    warnings.simplefilter("ignore")
    stop = False
    def busy():
        while not stop:
            pool.launch(4, 64)
    callers = [threading.Thread(target=busy) for _ in range(2)]
    [c.start() for c in callers]
    failures = 0
    for i in range(20):
        child = os.fork()
        if child == 0:
            good = all(pool.launch(4, 64)[0] == list(range(64)) for _ in range(20))
            pieces = pool.launch(4, 64)[1]
            grandchild = os.fork()
            if grandchild == 0:
                os._exit(0 if pool.launch(4, 64)[0] == list(range(64)) else 1)
            good &= os.waitpid(grandchild, 0)[1] == 0
            os._exit(0 if good and pieces > 1 else 1)
        failures += os.waitpid(child, 0)[1] != 0
    stop = True
    [c.join() for c in callers]
    print(failures)
    """
    assert in_process(code) == "0\n"


def test_the_process_ends_while_workers_spin() -> None:
    for _ in range(5):
        assert in_process("pool.launch(8, 1000); print('end')") == "end\n"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts the threads in /proc")
@pytest.mark.parametrize("pause", [0, 0.0001, 0.05])
def test_stopping_ends_the_workers(pause: float) -> None:
    """Whether they spin or sleep; what comes later runs in one piece, in a child again in several."""
    code = f"""
    import ctypes, os, time, warnings
    warnings.simplefilter("ignore")
    count = lambda: len(os.listdir("/proc/self/task"))
    stop = ctypes.CFUNCTYPE(None)(pool.addresses["sdx_stop"])
    before = count()
    pool.launch(6, 1000)
    print(count() - before)
    time.sleep({pause})
    stop()
    print(count() - before, pool.launch(6, 1000)[1:])
    child = os.fork()
    if child == 0:
        stop()
        good = pool.launch(6, 100)[0] == list(range(100)) and count() == 6
        stop()
        os._exit(0 if good and count() == 1 else 1)
    print(os.waitpid(child, 0)[1])
    """
    assert in_process(code) == "5\n0 (1, 1000)\n0\n"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts the threads in /proc")
def test_stopping_while_others_launch() -> None:
    code = """
    import ctypes, os, threading, time
    stop = ctypes.CFUNCTYPE(None)(pool.addresses["sdx_stop"])
    before = len(os.listdir("/proc/self/task"))
    ending = time.time() + 0.5
    bad = []
    def work():
        while time.time() < ending:
            if pool.launch(3, 500)[0] != list(range(500)):
                bad.append(1)
    threads = [threading.Thread(target=work) for _ in range(3)]
    [t.start() for t in threads]
    time.sleep(0.1)
    stop()
    [t.join() for t in threads]
    time.sleep(0.1)  # Python's threads end a moment after they are joined
    print(bad, len(os.listdir("/proc/self/task")) - before)
    """
    assert in_process(code) == "[] 0\n"


def test_workers_have_the_default_floating_point_state() -> None:
    """A process that flushes denormals makes workers that do not."""
    code = r"""
    import ctypes
    from sardonyx.codegen.compile import compile_text
    from sardonyx.codegen.jit import JitLibrary
    from sardonyx.targets.host import host_target
    target = host_target()
    text = f'target triple = "{target.triple}"' + '''
    declare void @llvm.x86.sse.stmxcsr(ptr)
    declare void @llvm.x86.sse.ldmxcsr(ptr)
    declare i32 @usleep(i32)
    define void @note(ptr %args, i64 %begin, i64 %end) nounwind {
      %state = alloca i32
      call void @llvm.x86.sse.stmxcsr(ptr %state)
      %bits = load i32, ptr %state
      %at = getelementptr i32, ptr %args, i64 %begin
      store i32 %bits, ptr %at
      %r = call i32 @usleep(i32 20000)
      ret void
    }
    define void @flush(ptr %state) nounwind {
      call void @llvm.x86.sse.ldmxcsr(ptr %state)
      ret void
    }
    '''
    library = JitLibrary({"note": compile_text(text, target)}, ["note", "flush"], target)
    flush = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(library.address("flush"))
    flush(ctypes.addressof(ctypes.c_int32(0x9FC0)))
    context, states = (ctypes.c_int64 * 8)(0, 4), (ctypes.c_int32 * 16)()
    pool._launch(ctypes.addressof(context), library.address("note"), ctypes.addressof(states), 16, MUCH)
    print(sorted({s & 0xFFC0 for s in states}))
    """
    if not host_target().triple.startswith("x86_64"):
        pytest.skip("reads MXCSR")
    assert in_process(code) in (f"[{0x1F80}, {0x9FC0}]\n", f"[{0x1F80}]\n")


@pytest.mark.slow
def test_stress() -> None:
    code = """
    import random, threading, time
    end = time.time() + 60
    def work(seed):
        r = random.Random(seed)
        while time.time() < end:
            size = r.choice([1, 2, 3, 10, 100, 1000])
            assert pool.launch(r.randint(1, 9), size)[0] == list(range(size))
            if r.random() < 0.1:
                time.sleep(r.random() * 0.001)
    threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    print("end")
    """
    assert in_process(code, 120) == "end\n"


@pytest.mark.parametrize("triple", ["x86_64-pc-linux-gnu", "aarch64-unknown-linux-gnu", "riscv64-linux-gnu"])
def test_text_compiles_for(triple: str) -> None:
    host_target()
    module = llvm.parse_assembly(f'target triple = "{triple}"\n{pool_text(triple)}')
    module.verify()
    assert len(llvm.Target.from_triple(triple).create_target_machine().emit_object(module)) > 1000


def test_other_systems_run_serially() -> None:
    module = llvm.parse_assembly(pool_text("arm64-apple-macosx"))
    assert {f.name for f in module.functions} == {"sdx.serial", "sdx_launch", "sdx_stop"}


def test_a_waiting_caller_is_not_held_up() -> None:
    """Launches from two threads make progress at the same time: neither waits for the other's pool."""
    pool = native()
    done = threading.Event()
    thread = threading.Thread(target=lambda: ([pool.launch(2, 1000) for _ in range(200)], done.set()))
    thread.start()
    for _ in range(200):
        pool.launch(2, 1000)
    thread.join(60)
    assert done.is_set()
