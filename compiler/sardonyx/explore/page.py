"""The page: one HTML file with its style, its scripts and the data, which needs nothing else.

The data are JSON, compressed and in base64, so that nothing in a model can become markup.  The page shows
them by way of the DOM's text only.  Its content security policy forbids every connection and every script
but the one that is written here.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
from importlib.resources import files
from string import Template
from typing import Any

from sardonyx.explore.collect import Exploration

__all__ = ["SCRIPTS", "render", "script"]

# In the order in which they need each other.
SCRIPTS = (
    "dom.js",
    "data.js",
    "state.js",
    "syntax.js",
    "lines.js",
    "camera.js",
    "overview.js",
    "graph.js",
    "details.js",
    "stages.js",
    "passes.js",
    "memory.js",
    "kernels.js",
    "panes.js",
    "search.js",
    "main.js",
)


def script() -> str:
    """All scripts of the page as one, in a scope of its own."""
    parts = "\n".join(_asset(name) for name in SCRIPTS)
    return f'"use strict";\n(() => {{\n{parts}\n}})();\n'


def render(exploration: Exploration) -> str:
    """The text of the page."""
    code = script()
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    sections = {"main": exploration.main, **exploration.sections}
    blocks = "\n".join(
        f'<script type="application/octet-stream" id="data-{name}">{_packed(data)}</script>'
        for name, data in sections.items()
    )
    return Template(_asset("index.html")).substitute(
        title=html.escape(str(exploration.main["title"])),
        style=_asset("style.css"),
        digest=digest,
        data=blocks,
        script=code,
    )


def _asset(name: str) -> str:
    return files("sardonyx.explore").joinpath("page", name).read_text(encoding="utf-8")


def _packed(data: Any) -> str:
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode(), 6, mtime=0)).decode()
