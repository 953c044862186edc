"""Libraries whose weights lie in a file of their own."""

from __future__ import annotations

import gc
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import sardonyx
import sardonyx_runtime
from sardonyx import RuntimeFault
from sardonyx.cli.demo_model import demo_images, demo_model

from .test_artifact import SYSTEM

pytestmark = pytest.mark.skipif(not SYSTEM, reason="libraries are exported on Linux, with a linker")
FEEDS = [demo_images(3)[0]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("libraries")
    sardonyx.compile_to(demo_model(), folder / "model.so", weights="beside")
    return folder


@pytest.fixture
def library(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "copy")) / "model.so"


def test_it_runs_and_goes(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    want, *_ = sardonyx.compile(demo_model(), threads=1).run(FEEDS)
    monkeypatch.chdir(tmp_path)
    for path in (library, Path("copy/model.so")):
        with sardonyx_runtime.load(path) as model:
            assert np.array_equal(model.run(FEEDS)[0], want)
            assert ".weights" in Path("/proc/self/maps").read_text()
        assert str(library.parent) not in Path("/proc/self/maps").read_text()


def test_links(library: Path, tmp_path: Path) -> None:
    want, *_ = sardonyx.compile(demo_model(), threads=1).run(FEEDS)
    (tmp_path / "link.so").symlink_to(library)
    with sardonyx_runtime.load(tmp_path / "link.so") as model:
        assert np.array_equal(model.run(FEEDS)[0], want)


def test_a_library_that_was_replaced(library: Path) -> None:
    """It is opened by another name, but its weights are beside the name that was given."""
    first = sardonyx_runtime.load(library)
    shutil.copy(library, library.with_name("new.so"))
    os.replace(library.with_name("new.so"), library)
    second = sardonyx_runtime.load(library)
    assert np.array_equal(first.run(FEEDS)[0], second.run(FEEDS)[0])
    first.close()
    second.close()


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda data: None, "missing or cannot be read"),
        (lambda data: data[:-1], "another size"),
        (lambda data: data + b"\0", "another size"),
        (lambda data: data[:100] + bytes([data[100] ^ 1]) + data[101:], "damaged"),
    ],
)
def test_wrong_weights(library: Path, change: object, word: str) -> None:
    file = library.with_suffix(".weights")
    data = change(file.read_bytes())  # type: ignore[operator]
    file.unlink()
    if data is not None:
        file.write_bytes(data)
    with pytest.raises(RuntimeFault, match=rf"weights of .*{word}.*model\.weights"):
        sardonyx_runtime.load(library)
    gc.collect()
    assert str(library) not in Path("/proc/self/maps").read_text()
