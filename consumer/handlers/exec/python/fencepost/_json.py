"""JSON that keeps its digits on the way through a handler."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any, Callable


class Number(float):
    """A number that a float would write in another way, such as 1.50 or 0.12345678901234567890.

    It counts as the nearest float. Returned unchanged it keeps its digits; Decimal(str(number)) is
    exact.
    """

    __slots__ = ("_text",)
    _text: str

    def __new__(cls, written: str) -> Number:
        number = super().__new__(cls, written)
        number._text = written
        return number

    def __getnewargs__(self) -> Any:  # for copies
        return (self._text,)

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__


# The fast encoder writes a Number as any float: once there is one, the slow one writes everything.
_numbers_seen = False


def _number(written: str) -> Number:
    global _numbers_seen
    _numbers_seen = True
    return Number(written)


def _float(written: str) -> float:
    number = float(written)
    return number if repr(number) == written else _number(written)


def _long_int(written: str) -> float:
    """Of more digits than Python takes for an int."""
    return int(written) if len(written) < 4300 else _number(written)


_decode = json.JSONDecoder(parse_float=_float).decode
_decode_long = json.JSONDecoder(parse_float=_float, parse_int=_long_int).decode


def parse(text: str) -> Any:
    try:
        return _decode(text)
    except json.JSONDecodeError:
        raise
    except ValueError:
        return _decode_long(text)


class _NeedsDigits(Exception):
    pass


def _other(value: object) -> None:
    if isinstance(value, Decimal):
        raise _NeedsDigits
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


_fast = json.JSONEncoder(
    ensure_ascii=False,
    allow_nan=False,
    check_circular=False,
    separators=(",", ":"),
    default=_other,
).encode


def _exact(value: Any, put: Callable[[str], None]) -> None:
    kind = type(value)
    if kind is str or value is None or kind is bool or kind is int:
        put(_fast(value))
    elif isinstance(value, dict):
        before = "{"
        for name, item in value.items():
            put(before)
            put(_fast(name) if isinstance(name, str) else _fast({name: 0})[1:-3])
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
    elif kind is Number or isinstance(value, Decimal):
        if isinstance(value, Decimal) and not value.is_finite():
            raise ValueError(f"{value} is not JSON")
        put(str(value))
    else:
        put(_fast(value))


def dump(value: Any) -> str:
    if not _numbers_seen:
        try:
            return _fast(value)
        except _NeedsDigits:
            pass
    parts: list[str] = []
    _exact(value, parts.append)
    return "".join(parts)
