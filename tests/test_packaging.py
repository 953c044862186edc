"""What is installed: the wheel holds every module, and needs what it says."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    folder = tmp_path_factory.mktemp("wheel")
    (path,) = WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])
    with zipfile.ZipFile(path) as archive:
        yield archive


def test_every_file_of_both_packages_is_in_the_wheel(wheel: zipfile.ZipFile) -> None:
    packed = set(wheel.namelist())
    for root, package in {"compiler": "sardonyx", "runtime": "sardonyx_runtime"}.items():
        for path in (ROOT / root / package).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                assert path.relative_to(ROOT / root).as_posix() in packed


def test_nothing_else_is_in_the_wheel(wheel: zipfile.ZipFile) -> None:
    tops = {name.partition("/")[0] for name in wheel.namelist()}
    assert {t for t in tops if not t.endswith(".dist-info")} == {"sardonyx", "sardonyx_runtime"}


def test_both_packages_are_typed(wheel: zipfile.ZipFile) -> None:
    assert {"sardonyx/py.typed", "sardonyx_runtime/py.typed"} <= set(wheel.namelist())


def test_licence_and_command(wheel: zipfile.ZipFile) -> None:
    names = wheel.namelist()
    assert any(n.endswith(".dist-info/licenses/LICENSE") for n in names)
    (entry,) = [n for n in names if n.endswith("entry_points.txt")]
    assert "sardonyx = sardonyx.cli.main:main" in wheel.read(entry).decode()
