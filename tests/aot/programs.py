"""C programs that run an exported model on given arrays, and what comes of them."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..helpers import Array

__all__ = ["C_LIBRARY", "c_program", "results_of", "same_bits"]

# What a library may want of the C library.
C_LIBRARY = {
    *"calloc free malloc posix_memalign memcpy memset memmove getpid syscall sched_yield fmaf fma floorf".split(),
    *"pthread_create pthread_detach pthread_join pthread_sigmask sigfillset".split(),
}

_PROGRAM = """
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

extern const uint32_t {prefix}_abi;
extern int64_t *{prefix}_create(int64_t threads);
extern void {prefix}_destroy(int64_t *context);
extern int32_t {prefix}_run(int64_t *context, const void *const *inputs, const int64_t *input_dims,
                            void **outputs, int64_t *output_dims);

static const size_t in_bytes[] = {{ {in_bytes} 0 }}, out_bytes[] = {{ {out_bytes} 0 }};
static const int64_t in_dims[] = {{ {in_dims} 0 }};

int main(int count, char **names) {{
    void *inputs[{inputs} + 1], *outputs[{outputs} + 1];
    int64_t out_dims[{rank} + 1];
    if ({prefix}_abi != 1 || count != 3) return 90;
    FILE *from = fopen(names[1], "rb");
    for (int i = 0; i < {inputs}; i++) {{
        inputs[i] = malloc(in_bytes[i] + 1);
        if (fread(inputs[i], 1, in_bytes[i], from) != in_bytes[i]) return 91;
    }}
    for (int i = 0; i < {outputs}; i++) outputs[i] = malloc(out_bytes[i] + 1);
    int64_t *context = {prefix}_create({threads});
    if (context == NULL) return 92;
    int32_t code = {prefix}_run(context, (const void *const *)inputs, in_dims, outputs, out_dims);
    FILE *to = fopen(names[2], "wb");
    for (int i = 0; i < {outputs} && code == 0; i++) fwrite(outputs[i], 1, out_bytes[i], to);
    fclose(to);
    {prefix}_destroy(context);
    return code;
}}
"""


def c_program(
    feeds: Sequence[Array], results: Sequence[Array], *, prefix: str = "sdx_model", threads: int = 1
) -> str:
    """A program that reads the feeds from the file of its first argument and writes the outputs to the second."""
    return _PROGRAM.format(
        prefix=prefix,
        threads=threads,
        inputs=len(feeds),
        outputs=len(results),
        rank=sum(r.ndim for r in results),
        in_bytes="".join(f"{x.nbytes}," for x in feeds),
        out_bytes="".join(f"{r.nbytes}," for r in results),
        in_dims="".join(f"{d}," for x in feeds for d in x.shape),
    )


def results_of(
    command: Sequence[str | Path], feeds: Sequence[Array], like: Sequence[Array], folder: Path
) -> list[Array]:
    """Run a program of `c_program`; its outputs, of the types and shapes of others."""
    source, target = folder / "inputs.bin", folder / "outputs.bin"
    source.write_bytes(b"".join(np.ascontiguousarray(x).tobytes() for x in feeds))
    done = subprocess.run(
        [str(c) for c in (*command, source, target)], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])
    data = target.read_bytes()
    results, position = [], 0
    for array in like:
        part = data[position : position + array.nbytes]
        results.append(np.frombuffer(part, array.dtype).reshape(array.shape))
        position += array.nbytes
    assert position == len(data)
    return results


def same_bits(got: Sequence[Array], want: Sequence[Array]) -> bool:
    return len(got) == len(want) and all(
        g.dtype == w.dtype and g.shape == w.shape and g.tobytes() == w.tobytes()
        for g, w in zip(got, want, strict=True)
    )
