"""Identifiers of programming languages for the names of a model's tensors."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

__all__ = ["identifiers"]


def identifiers(names: Iterable[str], taken: Collection[str], *, upper: bool = False) -> list[str]:
    """An identifier of ASCII letters, digits and single underscores for each name.

    All are different, and none is one of those that are taken: keywords get an underscore, what is there
    already a number.  ``upper``: in capitals.
    """
    used = set(taken)
    result = []
    for name in names:
        plain = re.sub(r"[\W_]+", "_", name, flags=re.ASCII).strip("_") or "unnamed"
        plain = f"t{plain}" if plain[0].isdigit() else plain
        plain = plain.upper() if upper else plain
        plain = f"{plain}_" if plain in taken else plain
        chosen, number = plain, 1
        while chosen in used:
            number += 1
            chosen = f"{plain}{number}"
        used.add(chosen)
        result.append(chosen)
    return result
