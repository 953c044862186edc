"""Which of a library's levels the CPU can run, and the entry point that goes there, as LLVM IR.

A library for x86-64 looks at the CPU when it first runs.  It takes the last of its levels all of whose
features are there; if there is none, the run ends with a fault and no instruction of the model has run.
"""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.codegen.floating_state import PARAMETERS
from sardonyx.codegen.support import STATUS
from sardonyx_runtime.cpu import WORDS, Requirement
from sardonyx_runtime.faults import CPU

__all__ = ["dispatch_text"]


def dispatch_text(prefix: str, levels: Sequence[Sequence[Requirement]]) -> str:
    """``<prefix>_run``, which calls ``<prefix>_run.<number>`` of the best level."""
    checks, following = [], "none"
    for number, requirements in enumerate(levels):
        checks.append(_check(number, requirements, following))
        following = f"level{number}"
    cases = "\n".join(f"    i32 {n}, label %run{n}" for n in range(len(levels)))
    calls = "\n".join(
        f"run{n}:\n  %code{n} = tail call i32 @{prefix}_run.{n}({PARAMETERS})\n  ret i32 %code{n}"
        for n in range(len(levels))
    )
    declarations = "\n".join(
        f"declare i32 @{prefix}_run.{n}(ptr, ptr, ptr, ptr, ptr)" for n in range(len(levels))
    )
    return _TEXT.format(
        prefix=prefix,
        declarations=declarations,
        words=WORDS,
        bytes=4 * WORDS,
        best=following,
        checks="\n".join(checks),
        cases=cases,
        calls=calls,
        parameters=PARAMETERS,
        status=STATUS,
        code=int(CPU),
    )


def _check(number: int, requirements: Sequence[Requirement], otherwise: str) -> str:
    """The block that returns the level's number if all of its requirements hold, else goes on."""
    lines, good = [f"level{number}:"], "true"
    for i, one in enumerate(requirements):
        name = f"%l{number}.{i}"
        lines += [
            f"  {name}.at = getelementptr i32, ptr %words, i64 {one.word}",
            f"  {name}.word = load i32, ptr {name}.at",
        ]
        if one.mask:
            lines += [
                f"  {name}.bits = and i32 {name}.word, {_signed(one.mask)}",
                f"  {name}.holds = icmp eq i32 {name}.bits, {_signed(one.mask)}",
            ]
        else:
            lines.append(f"  {name}.holds = icmp uge i32 {name}.word, {_signed(one.least)}")
        lines.append(f"  {name} = and i1 {good}, {name}.holds")
        good = name
    lines += [f"  br i1 {good}, label %take{number}, label %{otherwise}"]
    lines += [f"take{number}:", f"  store atomic i32 {number}, ptr @sdx.level monotonic, align 4"]
    return "\n".join([*lines, f"  ret i32 {number}"])


def _signed(bits: int) -> int:
    return bits - (1 << 32) if bits >> 31 else bits


_TEXT = """
@sdx.level = internal global i32 -2, align 4 ; not looked for yet

declare void @sdx_cpu(ptr)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
{declarations}

define internal i32 @sdx.find.level() noinline nounwind {{
entry:
  %words = alloca [{words} x i32], align 16
  call void @llvm.memset.p0.i64(ptr %words, i8 0, i64 {bytes}, i1 false)
  call void @sdx_cpu(ptr %words)
  br label %{best}
{checks}
none:
  store atomic i32 -1, ptr @sdx.level monotonic, align 4
  ret i32 -1
}}

define i32 @{prefix}_run({parameters}) nounwind {{
entry:
  %known = load atomic i32, ptr @sdx.level monotonic, align 4
  %new = icmp eq i32 %known, -2
  br i1 %new, label %look, label %choose
look:
  %found = call i32 @sdx.find.level()
  br label %choose
choose:
  %level = phi i32 [ %known, %entry ], [ %found, %look ]
  switch i32 %level, label %unfit [
{cases}
  ]
unfit:
  %status.at = getelementptr i64, ptr %context, i64 {status}
  store i64 {code}, ptr %status.at
  ret i32 {code}
{calls}
}}
"""
