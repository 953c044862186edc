"""The lexical layer of the text form: strings, value names, number literals and tokens.

Everything here is a pair of inverse functions, one used by the printer and one by the parser.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from typing import Any

from sardonyx.errors import CompileError

__all__ = [
    "IRSyntaxError",
    "Tokens",
    "float_text",
    "key_text",
    "legal_float",
    "name_meant",
    "name_text",
    "parse_float",
    "quote",
    "quote_bytes",
    "resource_meant",
    "resource_text",
    "tokenize",
    "unquote",
    "unquote_bytes",
]


class IRSyntaxError(CompileError):
    """The text is no module.  The message shows the line with a caret; ``line``, ``column`` count from 1."""

    def __init__(self, message: str, text: str, position: int) -> None:
        self.line = text.count("\n", 0, position) + 1
        start = text.rfind("\n", 0, position) + 1
        self.column = position - start + 1
        end = text.find("\n", position)
        shown = text[start : end if end >= 0 else len(text)]
        # Of a very long line (constants, locations) only the surroundings are of use.
        left = max(0, self.column - 100)
        shown, caret = shown[left : left + 160], " " * (self.column - 1 - left) + "^"
        super().__init__(f"line {self.line}, column {self.column}: {message}\n  {shown}\n  {caret}")


# --- strings: MLIR's escapes, \\ \" \n \t and \XX for any other byte -----------------------------------

_TEXT_ESCAPES = re.compile(r'[\\"\x00-\x1f\x7f\ud800-\udfff]')
_BYTE_ESCAPES = re.compile(rb"[^ !#-\[\]-~]")
_ESCAPED = re.compile(rb'\\(?:([\\"])|([nt])|([0-9A-Fa-f]{2}))')
_SHORT = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t"}
_CONTROL = {b"n": b"\n", b"t": b"\t"}


def _escape(match: re.Match[str]) -> str:
    char = match.group()
    return _SHORT.get(char) or "".join(f"\\{b:02X}" for b in char.encode("utf-8", "surrogatepass"))


def quote(text: str) -> str:
    """A string literal; characters beyond ASCII stay readable."""
    return f'"{_TEXT_ESCAPES.sub(_escape, text)}"'


def quote_bytes(data: bytes) -> str:
    """A string literal of bytes: printable ASCII as it is, all else as ``\\XX``."""
    return '"' + _BYTE_ESCAPES.sub(lambda m: b"\\%02X" % m.group()[0], data).decode("ascii") + '"'


def _unescape(match: re.Match[bytes]) -> bytes:
    same, control, code = match.groups()
    return same or _CONTROL.get(control) or bytes([int(code, 16)])


def unquote_bytes(literal: str) -> bytes:
    """The bytes of a string literal, quotes included."""
    data = literal[1:-1].encode("utf-8", "surrogatepass")
    return _ESCAPED.sub(_unescape, data) if b"\\" in data else data


def unquote(literal: str) -> str:
    """The text of a string literal, quotes included."""
    if "\\" not in literal:
        return literal[1:-1]
    return unquote_bytes(literal).decode("utf-8", "surrogatepass")


_BARE_KEY = re.compile(r"[A-Za-z_][\w$.]*\Z", re.ASCII)


def key_text(key: str) -> str:
    """A key of a dictionary or a symbol's name: bare where MLIR's grammar allows it."""
    return key if _BARE_KEY.match(key) else quote(key)


def resource_text(key: str) -> str:
    """The handle of a constant elsewhere: its key, an underscore in front where it begins with a digit."""
    return f"_{key}" if key[:1].isdigit() and _BARE_KEY.match(f"_{key}") else key_text(key)


def resource_meant(text: str) -> str:
    """The key of a handle."""
    return text[1:] if text[:1] == "_" and text[1:2].isdigit() else text


# --- value names -------------------------------------------------------------------------------------

_TO_ID = str.maketrans({"/": "$", ":": "-"})
_FROM_ID = str.maketrans({"$": "/", "-": ":"})
_NOT_ID = re.compile(r"[^\w$.-]", re.ASCII)


def name_text(name: str) -> str:
    """A value's name as an MLIR identifier: ``/enc/Add_output`` is ``$enc$Add_output``, ``7`` is ``_7``."""
    text = _NOT_ID.sub("_", name.translate(_TO_ID))
    return f"_{text}" if text[:1].isdigit() else text


def name_meant(text: str) -> str:
    """The name an identifier stands for where nothing else is said: the inverse of :func:`name_text`.

    Digits alone stand for no name.  A name that does not survive both functions is kept in a table.
    """
    if text.isdigit():
        return ""
    if text[0] == "_" and text[1:2].isdigit():
        text = text[1:]
    return text.translate(_FROM_ID)


# --- numbers -----------------------------------------------------------------------------------------

_DECIMAL = re.compile(r"(-?\d+)(\.\d+)?(e[+-]?\d+)?\Z")


def legal_float(text: str) -> str | None:
    """A decimal of Python's with the point that MLIR demands (``1.0e-05``); None for NaN and infinity."""
    match = _DECIMAL.match(text)
    return match and f"{match[1]}{match[2] or '.0'}{match[3] or ''}"


def float_text(value: float) -> str:
    """The shortest decimal that gives the value back, or the bits of an infinity or NaN in hexadecimal."""
    return legal_float(repr(value)) or f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def parse_float(text: str) -> float:
    """The value of a literal, decimal or the 64 bits in hexadecimal."""
    if text.startswith("0x"):
        value: float = struct.unpack("<d", struct.pack("<Q", int(text, 16)))[0]
        return value
    return float(text)


# --- tokens ------------------------------------------------------------------------------------------

_STRING = r'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"'
_PLAIN = rf'[^<>"\n]++|{_STRING}'
_TOKEN = re.compile(
    rf"""(?:\s++|//[^\n]*+)*+(?:
      (?P<value>%[\w$.-]+(?:\#\d+)?)
    | (?P<shaped>(?:tensor|vector)<(?:{_PLAIN}|<(?:{_PLAIN})*+>)*+>)
    | (?P<word>[A-Za-z_][\w$.]*)
    | (?P<string>{_STRING})
    | (?P<number>-?(?:0x[0-9A-Fa-f]+|[0-9]+(?:\.[0-9]*(?:[eE][-+]?[0-9]+)?)?))
    | (?P<punct>->|\{{-\#|\#-\}}|[(){{}}\[\]<>,:=*+-])
    | (?P<dialect>[!\#][A-Za-z_][\w$.]*)
    | (?P<symbol>@(?:[A-Za-z_][\w$.-]*|{_STRING}))
    | (?P<label>\^[\w$.-]+)
    | (?P<end>\Z)
    | (?P<bad>.)
    )""",
    re.VERBOSE | re.ASCII,
)


@dataclass(slots=True)
class Tokens:
    """The tokens of a text in parallel lists: kind, spelling and position.  The last one is ``end``."""

    text: str
    kinds: list[str]
    texts: list[str]
    starts: list[int]


def tokenize(text: str) -> Tokens:
    """Cut a text into tokens; IRSyntaxError where there is none."""
    tokens = Tokens(text, [], [], [])
    kinds, texts, starts = tokens.kinds.append, tokens.texts.append, tokens.starts.append
    for match in _TOKEN.finditer(text):
        kind: Any = match.lastgroup
        kinds(kind)
        texts(match[kind])
        starts(match.start(kind))
        if kind == "bad":
            char = match[kind]
            message = "a string without its end" if char == '"' else f"unexpected character {char!r}"
            raise IRSyntaxError(message, text, match.start(kind))
        if kind == "end":
            break
    return tokens
