"""Regular expressions as tables: RE2's syntax to an automaton over the bytes of UTF-8.

Parsing makes a nondeterministic automaton (K. Thompson, 1968), the subset construction a deterministic one.
What is no regular language (references, lookaround), flags and Unicode classes are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = ["Automaton", "RegexError", "automaton"]

Array = np.ndarray[Any, Any]
Ranges = tuple[tuple[int, int], ...]

_LAST = 0x10FFFF
_MOST_STATES = 1 << 13
_MOST_REPEATS = 1000  # RE2's own limit
_DIGIT: Ranges = ((48, 57),)
_WORD: Ranges = ((48, 57), (65, 90), (95, 95), (97, 122))
_SPACE: Ranges = ((9, 10), (12, 13), (32, 32))
_CLASSES = {"d": _DIGIT, "w": _WORD, "s": _SPACE}
_POSIX: dict[str, Ranges] = {
    "alnum": ((48, 57), (65, 90), (97, 122)), "alpha": ((65, 90), (97, 122)), "ascii": ((0, 127),),
    "blank": ((9, 9), (32, 32)), "cntrl": ((0, 31), (127, 127)), "digit": _DIGIT, "graph": ((33, 126),),
    "lower": ((97, 122),), "print": ((32, 126),), "punct": ((33, 47), (58, 64), (91, 96), (123, 126)),
    "space": ((9, 13), (32, 32)), "upper": ((65, 90),), "word": _WORD, "xdigit": ((48, 57), (65, 70), (97, 102)),
}  # fmt: skip
_LETTERS = {"a": 7, "f": 12, "t": 9, "n": 10, "r": 13, "v": 11}


class RegexError(ValueError):
    """The pattern is no regular expression of RE2, or not supported."""


@dataclass(frozen=True)
class Automaton:
    """``table[state, classes[byte]]`` is the next state; 0 is the first; ``accepting`` by state."""

    table: Array
    classes: Array
    accepting: Array

    def matches(self, data: bytes) -> bool:
        state = 0
        for byte in data:
            state = int(self.table[state, self.classes[byte]])
        return bool(self.accepting[state])


def _inverse(ranges: Ranges) -> Ranges:
    result, low = [], 0
    for first, last in _merged(ranges):
        if low < first:
            result.append((low, first - 1))
        low = last + 1
    return (*result, (low, _LAST)) if low <= _LAST else tuple(result)


def _merged(ranges: Ranges) -> Ranges:
    result: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if result and first <= result[-1][1] + 1:
            result[-1] = (result[-1][0], max(last, result[-1][1]))
        else:
            result.append((first, last))
    return tuple(result)


def _byte_sequences(first: int, last: int) -> Iterator[list[tuple[int, int]]]:
    """The UTF-8 of a range of code points, as sequences of byte ranges."""
    for low, high in ((0, 0x7F), (0x80, 0x7FF), (0x800, 0xD7FF), (0xE000, 0xFFFF), (0x10000, _LAST)):
        if max(first, low) <= min(last, high):
            yield from _equally_long(max(first, low), min(last, high))


def _equally_long(first: int, last: int) -> Iterator[list[tuple[int, int]]]:
    count = len(chr(first).encode())
    for position in range(1, count):
        unit = 1 << (6 * position)
        if first // unit != last // unit:
            if first % unit:
                middle = first // unit * unit + unit
                yield from _equally_long(first, middle - 1)
                yield from _equally_long(middle, last)
                return
            if last % unit != unit - 1:
                middle = last // unit * unit
                yield from _equally_long(first, middle - 1)
                yield from _equally_long(middle, last)
                return
    yield list(zip(chr(first).encode(), chr(last).encode(), strict=True))


@dataclass
class _Machine:
    """States by number; moves on a byte range, and on nothing: anywhere, or where a condition holds (``^ $ b B``)."""

    bytes: list[list[tuple[int, int, int]]] = field(default_factory=list)
    free: list[list[tuple[int, str]]] = field(default_factory=list)

    def state(self) -> int:
        if len(self.bytes) > 1 << 17:
            raise RegexError("the pattern is too large")
        self.bytes.append([])
        self.free.append([])
        return len(self.bytes) - 1

    def closure(self, states: Sequence[int], allowed: str) -> frozenset[int]:
        found, waiting = set(states), list(states)
        while waiting:
            for target, needs in self.free[waiting.pop()]:
                if target not in found and (not needs or needs in allowed):
                    found.add(target)
                    waiting.append(target)
        return frozenset(found)


class _Parser:
    """Each method returns the (entry, exit) of a piece of the machine."""

    def __init__(self, pattern: str) -> None:
        self.text, self.at = pattern, 0
        self.machine = _Machine()

    def peek(self, ahead: int = 0) -> str:
        return self.text[self.at + ahead : self.at + ahead + 1]

    def take(self, text: str) -> bool:
        if self.text.startswith(text, self.at):
            self.at += len(text)
            return True
        return False

    def fail(self, why: str) -> RegexError:
        return RegexError(f"the pattern {self.text!r} at position {self.at}: {why}")

    def link(self, source: int, target: int, needs: str = "") -> None:
        self.machine.free[source].append((target, needs))

    def alternatives(self) -> tuple[int, int]:
        begin, end = self.machine.state(), self.machine.state()
        while True:
            first, last = self.sequence()
            self.link(begin, first)
            self.link(last, end)
            if not self.take("|"):
                return begin, end

    def sequence(self) -> tuple[int, int]:
        begin = end = self.machine.state()
        while self.peek() and self.peek() not in "|)":
            start = self.at
            first, last = self.atom()
            first, last = self.repeated(start, first, last)
            self.link(end, first)
            end = last
        return begin, end

    def repeated(self, start: int, first: int, last: int) -> tuple[int, int]:
        while True:
            counts = self.counts()
            if counts is None:
                return first, last
            self.take("?")  # which of several matches is taken does not matter
            low, high = counts
            stop = self.at
            begin = end = self.machine.state()
            for number in range(max(low, 1) if high is None else high):
                self.at = start  # the copies are parsed anew
                piece = self.atom() if (low, high) not in ((0, None), (1, None), (0, 1)) else (first, last)
                self.link(end, piece[0])
                if number >= low:
                    self.link(end, stop_state := self.machine.state())
                    self.link(piece[1], stop_state)
                    end = stop_state
                else:
                    end = piece[1]
                if high is None and number == max(low, 1) - 1:
                    self.link(end, piece[0])
            self.at = stop
            start, first, last = -1, begin, end
            if self.counts_ahead():
                raise self.fail("a repetition of a repetition; put it in a group")

    def counts_ahead(self) -> bool:
        at = self.at
        found = self.counts() is not None
        self.at = at
        return found

    def counts(self) -> tuple[int, int | None] | None:
        for sign, counts in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self.take(sign):
                return counts
        end = self.text.find("}", self.at)
        if self.peek() != "{" or end < 0:
            return None
        low, comma, high = self.text[self.at + 1 : end].partition(",")
        if not low.isdecimal() or (high and not high.isdecimal()):
            return None
        self.at = end + 1
        least = int(low)
        most = (int(high) if high else None) if comma else least
        if max(least, most or 0) > _MOST_REPEATS or (most is not None and most < least):
            raise self.fail("a bad number of repetitions")
        return least, most

    def atom(self) -> tuple[int, int]:
        if self.take("("):
            if self.take("?"):
                if self.take("P<") or (self.peek() == "<" and self.peek(1) not in "=!"):
                    self.at = self.text.find(">", self.at) + 1
                elif not self.take(":"):
                    raise self.fail("flags and lookaround are not supported")
            piece = self.alternatives()
            if not self.take(")"):
                raise self.fail("a group without an end")
            return piece
        if self.take("^") or self.take("\\A"):
            return self.assertion("^")
        if self.take("$") or self.take("\\z"):
            return self.assertion("$")
        if self.take("\\b") or self.take("\\B"):
            return self.assertion(self.text[self.at - 1])
        if self.take("."):
            return self.one(_inverse(((10, 10),)))
        if self.take("["):
            return self.one(self.bracket())
        if self.take("\\"):
            return self.one(self.escape())
        if self.peek() in "*+?" or self.peek() == ")":
            raise self.fail("nothing to repeat")
        self.at += 1
        code = ord(self.text[self.at - 1])
        return self.one(((code, code),))

    def assertion(self, needs: str) -> tuple[int, int]:
        begin, end = self.machine.state(), self.machine.state()
        self.link(begin, end, needs)
        return begin, end

    def one(self, ranges: Ranges) -> tuple[int, int]:
        """One character of some ranges."""
        begin, end = self.machine.state(), self.machine.state()
        for first, last in _merged(ranges):
            for sequence in _byte_sequences(first, last):
                at = begin
                for number, (low, high) in enumerate(sequence):
                    target = end if number == len(sequence) - 1 else self.machine.state()
                    self.machine.bytes[at].append((low, high, target))
                    at = target
        return begin, end

    def escape(self) -> Ranges:
        letter = self.peek()
        self.at += 1
        if letter.lower() in _CLASSES:
            ranges = _CLASSES[letter.lower()]
            return _inverse(ranges) if letter.isupper() else ranges
        if letter in _LETTERS:
            code = _LETTERS[letter]
        elif letter == "x":
            digits = self.text[self.at : self.at + 2]
            if self.take("{"):
                end = self.text.find("}", self.at)
                digits, self.at = self.text[self.at : end], end + 1
            else:
                self.at += 2
            try:
                code = int(digits, 16)
            except ValueError:
                raise self.fail("a bad hexadecimal number") from None
        elif not letter or letter.isalnum():
            raise self.fail(f"\\{letter} is not supported")
        else:
            code = ord(letter)
        return ((code, code),)

    def bracket(self) -> Ranges:
        inverse = self.take("^")
        ranges: list[tuple[int, int]] = []
        first = True
        while first or self.peek() != "]":
            if not self.peek():
                raise self.fail("a class without an end")
            first = False
            if self.take("[:"):
                end = self.text.find(":]", self.at)
                name = self.text[self.at : end]
                if name.lstrip("^") not in _POSIX:
                    raise self.fail(f"the class {name!r} is unknown")
                found = _POSIX[name.lstrip("^")]
                ranges += _inverse(found) if name.startswith("^") else found
                self.at = end + 2
                continue
            low = self.member()
            if (
                self.peek() == "-"
                and self.peek(1) not in ("]", "")
                and len(low) == 1
                and low[0][0] == low[0][1]
            ):
                self.at += 1
                high = self.member()
                if high[0][1] < low[0][0]:
                    raise self.fail("a range that runs backwards")
                low = ((low[0][0], high[0][1]),)
            ranges += low
        self.at += 1
        return _inverse(tuple(ranges)) if inverse else tuple(ranges)

    def member(self) -> Ranges:
        if self.take("\\"):
            return self.escape()
        self.at += 1
        code = ord(self.text[self.at - 1])
        return ((code, code),)


def automaton(pattern: str) -> Automaton:
    """The automaton that accepts what a pattern matches as a whole; RegexError if there is none.

    A state is a set of states of the machine and what stands before: nothing, or whether a letter of a word.
    Moves on nothing are made when the next byte is known, for boundaries of words depend on both sides.
    """
    parser = _Parser(pattern)
    start, final = parser.alternatives()
    if parser.at < len(pattern):
        raise parser.fail("a group that was never begun")
    machine = parser.machine
    edges = {0} | {e for moves in machine.bytes for low, high, _ in moves for e in (low, high + 1)}
    needs = "".join(n for moves in machine.free for _, n in moves)
    words = "b" in needs or "B" in needs
    if words:
        edges |= {e for low, high in _WORD for e in (low, high + 1)}
    bounds = sorted(e for e in edges if e < 256)
    classes = np.searchsorted(bounds, np.arange(256), side="right") - 1
    in_word = [words and any(low <= byte <= high for low, high in _WORD) for byte in bounds]
    known: dict[_State, int] = {(frozenset([start]), "^"): 0}
    rows: list[list[int]] = []
    accepting: list[bool] = []

    def reached(state: _State, following: bool, end: str = "") -> frozenset[int]:
        """The machine's states once the next byte is known to be of a word or not, or to be the end."""
        states, before = state
        boundary = "b" if (before == "w") != following else "B"
        return machine.closure(sorted(states), f"{before}{boundary}{end}")

    for state in _growing(known):
        accepting.append(final in reached(state, False, "$"))
        row = []
        both = [reached(state, False), reached(state, True)] if words else [reached(state, False)]
        for low, word in zip(bounds, in_word, strict=True):
            targets = {t for s in both[word] for first, last, t in machine.bytes[s] if first <= low <= last}
            row.append(known.setdefault((frozenset(targets), "w" if word else ""), len(known)))
        rows.append(row)
        if len(known) > _MOST_STATES:
            raise RegexError(f"the pattern {pattern!r} needs more than {_MOST_STATES} states")
    return Automaton(np.array(rows, np.int32), classes.astype(np.uint8), np.array(accepting, np.bool_))


_State = tuple[frozenset[int], str]


def _growing(known: dict[_State, int]) -> Iterator[_State]:
    """The keys of a dict that grows meanwhile, in order."""
    done = 0
    while done < len(known):
        for key in list(known)[done:]:
            done += 1
            yield key
