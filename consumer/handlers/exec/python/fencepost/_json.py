"""JSON that keeps its digits on the way through a handler."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any, Callable

MOST_LEVELS = 200  # of a value, as the worker counts
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_MINUS_ZERO = re.compile(r"-0(?<=[:,\[\s]-0)(?![0-9.eE])").search  # perhaps


class Number(float):
    """A number that a float would write in another way, such as 1.50 or 0.12345678901234567890.

    It counts as the nearest float. Returned unchanged it keeps its digits; Decimal(str(number)) is
    exact.
    """

    __slots__ = ("_text",)
    _text: str

    def __new__(cls, written: str) -> Number:
        if not _NUMBER.fullmatch(written):
            raise ValueError(f"{written!r} is no number of JSON")
        number = super().__new__(cls, written)
        number._text = written
        return number

    def __getnewargs__(self) -> Any:  # for copies
        return (self._text,)

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__


def _float(written: str) -> float:
    number = float(written)
    return number if repr(number) == written else Number(written)


def _int(written: str) -> float:
    """Also -0, and one of more digits than Python takes."""
    return int(written) if written != "-0" and len(written) < 4300 else Number(written)


_decode = json.JSONDecoder(parse_float=_float).decode
_decode_any_int = json.JSONDecoder(parse_float=_float, parse_int=_int).decode


def parse(text: str) -> Any:
    if _MINUS_ZERO(text):
        return _decode_any_int(text)
    try:
        return _decode(text)
    except json.JSONDecodeError:
        raise
    except ValueError:
        return _decode_any_int(text)


_fast = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":")
).encode
_PLAIN = {str, int, float, bool, type(None)}


def _name(name: Any) -> str:
    """With its quotes."""
    return _fast(name) if isinstance(name, str) else _fast({name: 0})[1:-3]


def check(value: Any, levels: int = MOST_LEVELS) -> bool:
    """Raises what is wrong with a value that the worker would refuse. Whether its digits need the
    slow encoder: the fast one writes a Number as any float.
    """
    if isinstance(value, dict):
        try:
            "".join(value)  # the quickest way to see that all names are texts
        except TypeError:
            if len(set(map(_name, value))) < len(value):
                raise ValueError("an object has a name twice") from None
        items: Any = value.values()
    elif isinstance(value, (list, tuple)):
        items = value
    else:
        return isinstance(value, (Number, Decimal))
    if levels == 0:
        raise ValueError(f"it is nested deeper than {MOST_LEVELS} levels")
    if _PLAIN.issuperset(map(type, items)):
        return False
    exact = False
    for item in items:
        if type(item) not in _PLAIN and check(item, levels - 1):
            exact = True
    return exact


def _exact(value: Any, put: Callable[[str], None]) -> None:
    if isinstance(value, dict):
        before = "{"
        for name, item in value.items():
            put(before)
            put(_name(name))
            put(":")
            _exact(item, put)
            before = ","
        put("}" if value else "{}")
    elif isinstance(value, (list, tuple)):
        before = "["
        for item in value:
            put(before)
            _exact(item, put)
            before = ","
        put("]" if value else "[]")
    elif isinstance(value, (Number, Decimal)):
        if isinstance(value, Decimal) and not value.is_finite():
            raise ValueError(f"{value} is not JSON")
        put(str(value))
    else:
        put(_fast(value))


def dump(value: Any, exact: bool) -> str:
    """Of what check() has seen."""
    if not exact:
        return _fast(value)
    parts: list[str] = []
    _exact(value, parts.append)
    return "".join(parts)
