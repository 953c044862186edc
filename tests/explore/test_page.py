"""The page as a file: complete, closed to the outside, safe for every name."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import onnx
import pytest

from sardonyx.explore import explore, page, render

from .conftest import HOSTILE, floor_ge


class Reader(HTMLParser):
    """Tags with their attributes, and the text of scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] == "script":
            self.scripts[-1] += data

    def handle_endtag(self, tag: str) -> None:
        self.tags.append((f"/{tag}", {}))


def read(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    return reader


def hostile() -> onnx.ModelProto:
    model = floor_ge()
    model.graph.node[0].name = HOSTILE
    model.graph.node[0].output[0] = model.graph.node[1].input[0] = HOSTILE + "f"
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "a'\"<b>"
    return model


def test_it_needs_nothing_from_outside() -> None:
    reader = read(render(explore(floor_ge())))
    for _, attributes in reader.tags:
        assert not attributes.get("src")
        assert (attributes.get("href") or "data:").startswith("data:")
    (policy,) = [a["content"] for t, a in reader.tags if t == "meta" and "http-equiv" in a]
    assert policy is not None and policy.startswith("default-src 'none'; ")
    code = reader.scripts[-1]
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert "innerHTML" not in code and "eval(" not in code


def test_names_cannot_become_markup() -> None:
    plain, evil = render(explore(floor_ge())), render(explore(hostile()))
    assert "caught" not in evil
    assert [t for t, _ in read(evil).tags] == [t for t, _ in read(plain).tags]


def test_every_line_has_its_nodes_whatever_the_names() -> None:
    found = explore(hostile())
    for name, section in found.sections.items():
        texts = [section] if "text" in section else [t for t in section.values() if "text" in t]
        for text in texts:
            assert len(text["text"].split("\n")) == len(text["sets"]), name


def test_a_title_is_escaped(tmp_path: Path) -> None:
    path = tmp_path / "<b>&.onnx"
    onnx.save(floor_ge(), path)
    text = render(explore(str(path)))
    assert "<title>&lt;b&gt;&amp;.onnx - Sardonyx</title>" in text


def test_the_data_come_back() -> None:
    found = explore(hostile())
    text = render(found)
    for name, data in {"main": found.main, **found.sections}.items():
        (packed,) = re.findall(f'id="data-{name}">([^<]*)<', text)
        unpacked: Any = json.loads(gzip.decompress(base64.b64decode(packed)))
        assert unpacked == json.loads(json.dumps(data))


def test_every_script_is_in_the_page() -> None:
    folder = Path(page.__file__).parent / "page"
    assert sorted(page.SCRIPTS) == sorted(p.name for p in folder.glob("*.js"))


def test_the_script_is_valid(tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs node")
    path = tmp_path / "page.js"
    path.write_text(page.script(), encoding="utf-8")
    done = subprocess.run([node, "--check", path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
