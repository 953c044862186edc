"""Closed models and unloaded libraries: memory and threads go, arrays stay, runs under way end."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sardonyx
import sardonyx_runtime
from sardonyx import RuntimeFault

from ..helpers import make_model
from .test_artifact import ROOT, SYSTEM

pytestmark = pytest.mark.skipif(not SYSTEM, reason="libraries are exported on Linux, with a linker")
X = np.linspace(-3, 3, 256 * 512, dtype=np.float32).reshape(256, 512)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with some work for two threads, an arena, and an output of late size."""
    path = tmp_path_factory.mktemp("libraries") / "model.so"
    nodes = ["e = MatMul (x, x_)", "y = Softmax (e)", "v = NonZero (x)"]
    model = make_model(nodes, {"x": X, "x_": X.T.copy()}, outputs=["y", "v"])
    sardonyx.compile_to(model, path)
    return path


def feeds() -> list[np.ndarray]:
    return [X, X.T.copy()]


def mapped(path: Path) -> bool:
    return str(path) in Path("/proc/self/maps").read_text()


def threads() -> int:
    return len(os.listdir("/proc/self/task"))


def in_process(code: str, library: Path) -> str:
    """What a fresh interpreter without the compiler prints for the code."""
    start = f"""
import gc, os, sys
sys.path.insert(0, {str(ROOT / "runtime")!r})
for name in ("llvmlite", "onnx", "sardonyx"):
    sys.modules[name] = None
import numpy as np, sardonyx_runtime
PATH = {str(library)!r}
X = np.linspace(-3, 3, 256 * 512, dtype=np.float32).reshape(256, 512)
FEEDS = [X, X.T.copy()]
def threads():
    return len(os.listdir("/proc/self/task"))
"""
    command = [sys.executable, "-c", start + textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout


@pytest.mark.parametrize("way", ["close", "with", "del"])
def test_unloading(library: Path, way: str) -> None:
    before = threads()
    model = sardonyx_runtime.load(library, threads=3)
    results = model.run(feeds())
    assert mapped(library) and threads() > before
    kept = [r.copy() for r in results]
    if way == "close":
        model.close()
        model.close()
    elif way == "with":
        with model as same:
            assert same is model
    else:
        del model
        gc.collect()
    assert not mapped(library) and threads() == before
    for result, copy in zip(results, kept, strict=True):
        assert np.array_equal(result, copy)
    if way != "del":
        with pytest.raises(RuntimeFault, match="closed"):
            model.run(feeds())


def test_a_library_loaded_twice_stays_until_both_are_closed(library: Path) -> None:
    first, second = sardonyx_runtime.load(library), sardonyx_runtime.load(library)
    (want, _) = first.run(feeds())
    first.close()
    assert mapped(library) and np.array_equal(second.run(feeds())[0], want)
    second.close()
    assert not mapped(library)


def test_a_model_of_this_process_can_be_closed() -> None:
    model = sardonyx.compile(make_model("y = Exp (x)", {"x": X}))
    (want,) = model.run([X])
    model.close()
    with pytest.raises(RuntimeFault, match="closed"):
        model.run([X])
    assert np.isfinite(want).all()


def run_until_closed(model: Any, started: threading.Event, want: np.ndarray, good: list[bool]) -> None:
    try:
        while True:
            good.append(np.array_equal(model.run(feeds())[0], want))
            started.set()
    except RuntimeFault as fault:
        good.append("closed" in str(fault))


def test_closing_while_runs_are_under_way(library: Path) -> None:
    (want, _) = sardonyx_runtime.load(library).run(feeds())
    for _ in range(20):
        model = sardonyx_runtime.load(library, threads=2)
        started = threading.Event()
        good: list[bool] = []

        workers = [
            threading.Thread(target=run_until_closed, args=(model, started, want, good)) for _ in range(3)
        ]
        for worker in workers:
            worker.start()
        started.wait(60)
        model.close()
        for worker in workers:
            worker.join(60)
            assert not worker.is_alive()
        assert all(good)
        del model, workers
    gc.collect()
    assert not mapped(library)


def test_memory_does_not_grow(library: Path) -> None:
    code = """
    def rss():
        return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    sizes, before = [], threads()
    for i in range(120):
        with sardonyx_runtime.load(PATH, threads=2) as model:
            model.run(FEEDS)
            model.run(FEEDS)
        if i in (19, 119):
            gc.collect()
            sizes.append(rss())
    print(threads() - before, sizes[1] - sizes[0])
    """
    count, growth = map(int, in_process(code, library).split())
    assert count == 0 and growth < 2 << 20, (count, growth)


def test_a_process_ends_with_models_open(library: Path) -> None:
    code = """
    import threading, time
    model = sardonyx_runtime.load(PATH, threads=2)
    model.run(FEEDS)
    def busy():
        while True:
            model.run(FEEDS)
    threading.Thread(target=busy, daemon=True).start()
    time.sleep(0.1)
    print("end")
    """
    for _ in range(3):
        assert in_process(code, library) == "end\n"


def test_loading_in_many_threads(library: Path) -> None:
    (want, _) = sardonyx_runtime.load(library).run(feeds())

    def work(_: int) -> bool:
        with sardonyx_runtime.load(library, threads=2) as model:
            return np.array_equal(model.run(feeds())[0], want)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(64)))
    assert not mapped(library)


def test_loading_in_many_processes(library: Path) -> None:
    """At the same time, and in children of a process that has it loaded."""
    code = """
    import warnings
    warnings.simplefilter("ignore")
    parent = sardonyx_runtime.load(PATH, threads=2)
    want = parent.run(FEEDS)[0]
    children = []
    for number in range(6):
        child = os.fork()
        if child == 0:
            good = np.array_equal(parent.run(FEEDS)[0], want)
            with sardonyx_runtime.load(PATH, threads=2) as own:
                good &= np.array_equal(own.run(FEEDS)[0], want)
            parent.close()
            os._exit(0 if good and threads() == 1 else 1)
        children.append(child)
    print([os.waitpid(c, 0)[1] for c in children], np.array_equal(parent.run(FEEDS)[0], want))
    """
    with ThreadPoolExecutor(3) as pool:
        printed = set(pool.map(lambda _: in_process(code, library), range(3)))
    assert printed == {"[0, 0, 0, 0, 0, 0] True\n"}


def test_forks_while_other_threads_load(library: Path) -> None:
    """A child finds the loader and our table of it in order."""
    code = """
    import threading, warnings
    warnings.simplefilter("ignore")
    want = sardonyx_runtime.load(PATH, threads=1).run(FEEDS)[0]
    stop = threading.Event()
    bad = []
    def work():
        while not stop.is_set():
            with sardonyx_runtime.load(PATH, threads=2) as model:
                if not np.array_equal(model.run(FEEDS)[0], want):
                    bad.append(1)
    workers = [threading.Thread(target=work) for _ in range(3)]
    [w.start() for w in workers]
    for number in range(25):
        child = os.fork()
        if child == 0:
            with sardonyx_runtime.load(PATH, threads=2) as model:
                os._exit(0 if np.array_equal(model.run(FEEDS)[0], want) else 1)
        bad += [number] * (os.waitpid(child, 0)[1] != 0)
    stop.set()
    [w.join() for w in workers]
    print(bad)
    """
    assert in_process(code, library) == "[]\n"
