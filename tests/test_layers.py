"""How the modules may depend on each other, read from their sources."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROOTS = {"sardonyx": ROOT / "compiler", "sardonyx_runtime": ROOT / "runtime"}


def sources() -> dict[str, Path]:
    """All modules by name."""
    found = {}
    for package, root in ROOTS.items():
        for path in sorted((root / package).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = sources()


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """The modules that a module imports when it is loaded, and whether inside a function."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    inside = {id(n) for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) for n in ast.walk(f)}
    hidden = {
        id(n)
        for i in ast.walk(tree)
        if isinstance(i, ast.If) and "TYPE_CHECKING" in ast.unparse(i.test)
        for n in ast.walk(i)
    }
    for node in ast.walk(tree):
        if id(node) in hidden:
            continue
        if isinstance(node, ast.Import):
            names = [a.name for a in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [f"{node.module}.{a.name}" for a in node.names]
            names = [n if n in MODULES else node.module for n in names]
        else:
            continue
        yield from ((name, id(node) in inside) for name in names)


GRAPH = {name: {n for n, _ in imports(path) if n in MODULES} for name, path in MODULES.items()}


def cycle(graph: Mapping[str, set[str]]) -> list[str]:
    """A cycle of the graph; empty if there is none."""
    try:
        list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        return list(error.args[1])
    return []


def test_modules_have_no_cycle() -> None:
    assert not cycle(GRAPH)


def test_packages_have_no_cycle() -> None:
    """Packages depend downward only: ``ir`` knows nothing of ``passes``, ``passes`` nothing of ``cli``."""

    def package(name: str) -> str:
        parts = name.replace("sardonyx.errors", "sardonyx.ir").split(".")  # the two know each other
        return ".".join(parts[:2]) if parts[0] == "sardonyx" else parts[0]

    graph: dict[str, set[str]] = {}
    for name, targets in GRAPH.items():
        if name != "sardonyx":
            mine = graph.setdefault(package(name), set())
            mine |= {package(t) for t in targets if t != "sardonyx"} - {package(name)}
    assert not cycle(graph)


def test_the_runtime_stands_alone() -> None:
    allowed = {"numpy", "ml_dtypes", "sardonyx_runtime"}
    for name, path in MODULES.items():
        if name.startswith("sardonyx_runtime"):
            used = {n.partition(".")[0] for n, _ in imports(path)} - set(sys.stdlib_module_names)
            assert used <= allowed, name


def test_the_runtime_loads_without_the_compiler() -> None:
    code = """
import sys
for name in ("llvmlite", "onnx", "sardonyx"):
    sys.modules[name] = None
import pkgutil, sardonyx_runtime
for module in pkgutil.walk_packages(sardonyx_runtime.__path__, "sardonyx_runtime."):
    __import__(module.name)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_only_the_frontend_knows_protobuf() -> None:
    allowed = ("sardonyx.frontend", "sardonyx.cli.demo_model")
    for name, path in MODULES.items():
        if not name.startswith(allowed):
            used = {n.partition(".")[0] for n, _ in imports(path)}
            assert not used & {"onnx", "google"}, name


def test_no_import_inside_a_function() -> None:
    found = [name for name, path in MODULES.items() if any(inside for _, inside in imports(path))]
    assert not found


def test_no_module_is_named_like_the_standard_librarys() -> None:
    fields_own_words = {"math", "select", "types"}  # always read with their package: ``ir.types``
    own = {name.rpartition(".")[2] for name in MODULES} - {"__main__"}
    assert not (own & set(sys.stdlib_module_names)) - fields_own_words


def test_every_package_is_one_on_disk() -> None:
    """A folder without ``__init__.py`` would be left out of the checks, and maybe of the wheel."""
    for package, root in ROOTS.items():
        for path in (root / package).rglob("*.py"):
            assert (path.parent / "__init__.py").exists(), path
