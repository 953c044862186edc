"""Native support code, written as LLVM IR once: arena chunks, the thread pool, the gate from Python.

A context is an array of 64-bit words; its layout is part of the ABI (docs/abi.md):

====  ==================================================
word  meaning
====  ==================================================
0     address of the constant blob
1     threads a run may use
2     status: fault code
3     status: node or message number
4     status: a value that explains the fault
5     status: a second value
6     number of arena chunks
7     cost of this run's launches so far (private to the thread pool)
8     what random numbers without a seed start from; changes with each run that makes any
9     strings: where the next one of this run may begin
10    strings: the end of the block of memory it is in
11    strings: the last of the blocks, each of which begins with the address of the one before
12-14 the allocator: allocate, release, and what is passed to both (see memory.py)
15    reserved
16+2i address of chunk i
17+2i bytes of chunk i
====  ==================================================
"""

from __future__ import annotations

from sardonyx.codegen.gate import gate_text
from sardonyx.codegen.memory import memory_text
from sardonyx.codegen.pool import pool_text
from sardonyx.codegen.strings import strings_text
from sardonyx.codegen.text_gate import text_gate_text

__all__ = [
    "CHUNKS",
    "ENTROPY",
    "EXPORTS",
    "STATUS",
    "STRINGS",
    "THREADS",
    "WEIGHTS",
    "context_words",
    "support_text",
]

EXPORTS = (
    "sdx_take",
    "sdx_give",
    "sdx_reserve",
    "sdx_grow",
    "sdx_allocate",
    "sdx_launch",
    "sdx_stop",
    "sdx_gate",
    "sdx_new_string",
    "sdx_forget_strings",
)  # what the other modules use

WEIGHTS, THREADS, STATUS, ENTROPY, STRINGS, CHUNKS = 0, 1, 2, 8, 9, 16


def context_words(chunks: int) -> int:
    return CHUNKS + 2 * chunks


def support_text(triple: str, pointer_bits: int = 64) -> str:
    """The LLVM text shared by all programs of a process."""
    return (
        memory_text(triple, pointer_bits)
        + strings_text(STRINGS)
        + pool_text(triple)
        + gate_text()
        + text_gate_text()
    )
