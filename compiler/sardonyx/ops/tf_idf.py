"""TfIdfVectorizer: counts of n-grams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sardonyx.core.builder import Builder
from sardonyx.errors import CompileError
from sardonyx.ir.graph import Value
from sardonyx.ops.label_encoder import lookup
from sardonyx.ops.registry import onnx_op
from sardonyx.ops.strings import as_text
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import maximum

__all__: list[str] = []

Array = np.ndarray[Any, Any]


@onnx_op("TfIdfVectorizer", since=9)
def tf_idf_vectorizer(
    b: Builder,
    x: Value,
    *,
    max_gram_length: int,
    max_skip_count: int,
    min_gram_length: int,
    mode: str,
    ngram_counts: Sequence[int],
    ngram_indexes: Sequence[int],
    pool_int64s: Sequence[int] | None = None,
    pool_strings: Sequence[str | bytes] | None = None,
    weights: Sequence[float] | None = None,
) -> Value:
    """Tokens become the numbers of those in the pool; each n-gram is compared with every window of tokens."""
    if mode not in ("TF", "IDF", "TFIDF"):
        raise CompileError(f"mode is {mode!r}; known are TF, IDF, TFIDF")
    if x.type.rank not in (1, 2):
        raise CompileError(f"TfIdfVectorizer takes [C] or [N, C], not {x.type.describe()}")
    of_text = x.type.dtype is dtypes.string
    given = pool_strings if of_text else pool_int64s
    if not given:
        raise CompileError(
            f"TfIdfVectorizer of {x.type.describe()} needs pool_{'strings' if of_text else 'int64s'}"
        )
    tokens = [as_text(t) for t in given] if of_text else list(given)  # type: ignore[arg-type]
    known = sorted(set(tokens))
    number = {token: i for i, token in enumerate(known)}
    pool = np.array([number[t] for t in tokens], np.int64)
    rows = x if x.type.rank == 2 else b.reshape(x, (1, *x.type.shape))
    keys = np.array(known, object if of_text else np.int64)
    wide = rows if of_text else b.convert(rows, dtypes.i64)
    ids = lookup(b, wide, keys, np.arange(len(known)), -1, dtypes.i64)
    parts = []
    for length, start in enumerate(ngram_counts, 1):
        end = ngram_counts[length] if length < len(ngram_counts) else len(pool)
        grams = pool[start:end].reshape(-1, length)
        wanted = min_gram_length <= length <= max_gram_length
        parts.append(_counts(b, ids, grams, max_skip_count if length > 1 else 0, wanted=wanted))
    counts = b.op("core.concat", *parts, axis=1)
    total = len(ngram_indexes)
    if counts.type.shape[1] != total or len(set(ngram_indexes)) != total:
        raise CompileError(
            f"{total} ngram_indexes, which have to be unlike, for {counts.type.shape[1]} n-grams"
        )
    result = _weighted(b, counts, mode, weights)
    return _placed(b, result, ngram_indexes, squeeze=x.type.rank == 1)


def _counts(b: Builder, ids: Value, grams: Array, skips: int, *, wanted: bool) -> Value:
    """How often each n-gram stands in each row, with up to ``skips`` tokens left out between neighbours."""
    rows, width = ids.type.shape
    count, length = grams.shape
    total = b.broadcast_to(b.constant(0.0, dtypes.f32), (rows, count))
    for distance in range(1, skips + 2) if wanted and count else ():
        positions = maximum(width - (length - 1) * distance, 0)
        if positions == 0:
            continue
        shape = (rows, positions, count)
        same: Value | None = None
        for place in range(length):
            part = b.op(
                "core.slice", ids, starts=(0, place * distance), sizes=(rows, positions), steps=(1, 1)
            )
            spread = b.broadcast_to(b.reshape(part, (rows, positions, 1)), shape)
            hit = b.eq(spread, b.broadcast_to(b.constant(grams[:, place]), shape))
            same = hit if same is None else b.and_(same, hit)
        assert same is not None
        total = b.add(total, b.reduce("sum", b.convert(same, dtypes.f32), (1,)))
    return total


def _weighted(b: Builder, counts: Value, mode: str, weights: Sequence[float] | None) -> Value:
    if mode == "TF":
        return counts
    if mode == "IDF":
        counts = b.convert(b.gt(counts, b.full(0, counts)), dtypes.f32)
    if not weights:
        return counts
    if len(weights) != counts.type.shape[1]:
        raise CompileError(f"{len(weights)} weights for {counts.type.shape[1]} n-grams")
    return b.mul(counts, b.broadcast_to(b.constant(list(weights), dtypes.f32), counts.type.shape))


def _placed(b: Builder, counts: Value, indexes: Sequence[int], *, squeeze: bool) -> Value:
    """Every count in the column that its n-gram names; other columns are 0."""
    total = counts.type.shape[1]
    columns = np.full(max(indexes) + 1, total, np.int64)
    columns[np.asarray(indexes)] = np.arange(len(indexes))
    closed = b.op("core.pad", counts, b.constant(0.0, dtypes.f32), low=(0, 0), high=(0, 1))
    result = b.op("core.gather", closed, b.constant(columns), axis=1, trusted=True)
    return b.reshape(result, result.type.shape[1:]) if squeeze else result
