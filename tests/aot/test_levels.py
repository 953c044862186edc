"""Several levels of x86-64 in one library: which one runs, and that each computes what it computes alone."""

from __future__ import annotations

import ctypes
import json
import shutil
from pathlib import Path

import pytest

import sardonyx
import sardonyx_runtime
from sardonyx import CompileError
from sardonyx.aot.levels import compile_levels
from sardonyx.cli.demo_model import demo_images, demo_model
from sardonyx.targets.cpus import targets_for
from sardonyx.targets.host import host_target
from sardonyx_runtime.cpu import FEATURES, WORDS, missing_features, requirements

from ..helpers import Array
from .programs import same_bits

LEVELS = ["x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"]
FEEDS = [demo_images(5)[0]]

pytestmark = pytest.mark.skipif(
    host_target().machine != "x86_64" or not shutil.which("cc"), reason="needs an x86-64 and a C compiler"
)


def runs_here(level: str) -> bool:
    (target,) = targets_for(None, level, ())
    return set(target.features) <= set(host_target().features)


def alone(level: str, folder: Path) -> list[Array]:
    sardonyx.compile_to(demo_model(), folder / f"{level}.so", cpu=level)
    return sardonyx_runtime.load(folder / f"{level}.so").run(FEEDS)


def chosen(library: Path) -> int:
    """The level that a loaded library takes: that of the entry point, an internal variable, is read off its results."""
    description = sardonyx_runtime.artifact.read_description(library)
    words = (ctypes.c_int32 * WORDS)()
    ctypes.CDLL(str(library)).sdx_cpu(words)
    fitting = [
        n for n, x in enumerate(description["levels"]) if not missing_features(list(words), x["features"])
    ]
    return fitting[-1]


@pytest.mark.parametrize("levels", [["x86-64-v3", "x86-64"], LEVELS])
def test_a_run_takes_the_best_that_is_there(levels: list[str], tmp_path: Path) -> None:
    path = tmp_path / "model.so"
    sardonyx.compile_to(demo_model(), path, cpu=",".join(levels))
    best = max((level for level in levels if runs_here(level)), key=LEVELS.index)
    described = sardonyx_runtime.artifact.read_description(path)["levels"]
    assert [x["cpu"] for x in described] == sorted(levels, key=LEVELS.index)
    assert described[chosen(path)]["cpu"] == best
    assert same_bits(sardonyx_runtime.load(path).run(FEEDS), alone(best, tmp_path))


def test_levels_share_what_is_equal() -> None:
    """Constants that do not depend on the vector width are there once."""
    targets = targets_for(None, "x86-64-v2,x86-64-v3", ())
    together = compile_levels(demo_model(), targets, "sdx_model", {}).weights.size
    apart = [compile_levels(demo_model(), [t], "sdx_model", {}).weights.size for t in targets]
    assert max(apart) <= together < sum(apart)
    same = compile_levels(demo_model(), [targets[0], targets[0]], "sdx_model", {}).weights.size
    assert same == apart[0]


def test_a_cpu_that_none_of_the_levels_fits(tmp_path: Path) -> None:
    """The run ends with a status before the first instruction of the model; loading from Python says it too."""
    lacking = [
        f for f in FEATURES if f not in host_target().features and f.startswith(("avx", "xop", "fma4"))
    ]
    if not lacking:
        pytest.skip("this CPU has everything")
    path = tmp_path / "model.so"
    sardonyx.compile_to(demo_model(), path, features=lacking[:1])
    library = ctypes.CDLL(str(path))
    library.sdx_model_create.restype = ctypes.c_void_p
    context = ctypes.c_void_p(library.sdx_model_create(ctypes.c_int64(1)))
    assert library.sdx_model_run(context, None, None, None, None) == 7
    text = ctypes.create_string_buffer(200)
    library.sdx_model_error(context, text, ctypes.c_int64(200))
    assert b"does not have the features" in text.value
    library.sdx_model_destroy(context)
    with pytest.raises(sardonyx.RuntimeFault, match=lacking[0]):
        sardonyx_runtime.load(path)


def test_requirements_say_what_the_runtime_checks() -> None:
    """Code and runtime look at the same bits: taking any of them away makes both refuse."""
    features = ["avx512f", "avx512vl", "avxvnni", "fma", "lzcnt", "sse4.2"]
    needed = requirements(features)
    words = [0] * WORDS
    for one in needed:
        words[one.word] |= one.mask | one.least
    assert not missing_features(words, features)
    for one in needed:
        for bit in range(32):
            if one.mask >> bit & 1:
                less = [w & ~(1 << bit) if i == one.word else w for i, w in enumerate(words)]
                assert missing_features(less, features), (one.word, bit)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cpu": "skylake,znver1"}, "no best of the two"),
        ({"cpu": "x86-64-v3,x86-64-v3"}, "no best of the two"),
        ({"cpu": "cortex-a53,cortex-a76", "target": "aarch64-linux-gnu"}, "several CPUs(.|\n)*name one"),
    ],
)
def test_levels_that_cannot_be_chosen_from(options: dict[str, str], message: str, tmp_path: Path) -> None:
    with pytest.raises(CompileError, match=message):
        sardonyx.compile_to(demo_model(), tmp_path / "model.o", **options)


def test_the_manifest_lists_levels(tmp_path: Path) -> None:
    sardonyx.compile_to(demo_model(), tmp_path / "model.o", cpu="x86-64-v2,x86-64-v3")
    manifest = json.loads((tmp_path / "model.json").read_text())
    assert [x["cpu"] for x in manifest["levels"]] == ["x86-64-v2", "x86-64-v3"]
