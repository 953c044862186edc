"""`sardonyx cache`."""

from __future__ import annotations

from pathlib import Path

import pytest

from sardonyx import cache

from .conftest import Sardonyx


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("SARDONYX_CACHE_DIR", str(folder))
    monkeypatch.delenv("SARDONYX_CACHE_SIZE", raising=False)
    return folder


@pytest.mark.parametrize("arguments", [(), ("show",)])
def test_shows_what_there_is(sardonyx: Sardonyx, own_folder: Path, arguments: tuple[str, ...]) -> None:
    assert cache.write("object", "ab" * 16, b"x" * 1000)
    result = sardonyx("cache", *arguments)
    assert result.code == 0
    assert str(own_folder) in result.out
    assert "entries   1\n" in result.out
    assert "1.1 KB in 1 entries" in result.out


def test_clears(sardonyx: Sardonyx, own_folder: Path) -> None:
    assert cache.write("object", "ab" * 16, b"x" * 1000)
    result = sardonyx("cache", "clear")
    assert result.code == 0
    assert "1.1 KB became free" in result.out
    assert cache.info().entries == 0


def test_empty(sardonyx: Sardonyx) -> None:
    assert "0 bytes" in sardonyx("cache").out
    assert "0 bytes became free" in sardonyx("cache", "clear").out


def test_off(sardonyx: Sardonyx, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SARDONYX_CACHE_SIZE", "0")
    assert "(off)" in sardonyx("cache").out


def test_unknown_action(sardonyx: Sardonyx) -> None:
    result = sardonyx("cache", "burn")
    assert result.code == 2
    assert "burn" in result.err
