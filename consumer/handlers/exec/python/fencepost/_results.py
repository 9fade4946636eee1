"""What a handler can make of a record, and the reply that says it."""

from __future__ import annotations

import base64
import builtins
import contextlib
import re
import sys
from typing import Any, Union

# The worker keeps `cancelled` for itself.
CLASS = re.compile(r"(?!cancelled\Z)[a-z_]{1,64}|[0-9]{3}")
ENDS = (SystemExit, KeyboardInterrupt)  # of the process, and no result
_GROUP: Any = getattr(builtins, "BaseExceptionGroup", ())  # Python 3.11


class Failed(Exception):
    """Retry and Reject: a failure that the handler names."""

    retry = True
    what = "the handler failed"
    class_: Union[str, int, None] = None

    def __init__(self, message: str = "", *, class_: Union[str, int, None] = None) -> None:
        super().__init__(message or self.what)
        if class_ is not None:
            self.class_ = class_


class Retry(Failed):
    """The record is tried again later, as `retry` in the pipeline says."""

    what = "to be tried again"


class Reject(Failed):
    """The record becomes a dead letter at once."""

    retry = False
    what = "rejected"


class Skip(Exception):
    """The record is done, and writes no row."""


class Result:
    """What values() and text() return."""

    __slots__ = ("reply",)

    def __init__(self, reply: dict[str, Any]) -> None:
        self.reply = reply


def values(*rows: Any) -> Result:
    """Several values of one record, a row each; without any, no row."""
    return Result({"values": list(rows)})


def text(value: str) -> Result:
    """The value is this text itself, where a returned str is a JSON string."""
    if not isinstance(value, str):
        raise TypeError(f"text() takes a str, not a {type(value).__name__}")
    return Result({"value_text": value})


def meant(result: Any) -> Any:
    """What a result stands for: a class for an exception of it, a group of one for that one."""
    if isinstance(result, type) and issubclass(result, BaseException):
        result = result()
    while isinstance(result, _GROUP) and len(result.exceptions) == 1:
        result = result.exceptions[0]
    return result


def reply(record_id: str, result: Any) -> dict[str, Any]:
    """The reply to a record; the result is what its handler returned or raised, as meant."""
    if type(result) is dict or result is None:
        return {"record_id": record_id, "value": result}
    if isinstance(result, BaseException):
        return {"record_id": record_id, **_failure(result)}
    if isinstance(result, Result):
        return {"record_id": record_id, **result.reply}
    if isinstance(result, (bytes, bytearray)):
        return {"record_id": record_id, "value_base64": base64.b64encode(result).decode()}
    return {"record_id": record_id, "value": result}


def say(text: str) -> None:
    """On stderr, where there is one: a reply does not depend on it."""
    with contextlib.suppress(Exception):
        sys.stderr.write(text)


def unexpected(result: Any) -> bool:
    """An exception that the handler did not mean to raise."""
    return isinstance(result, BaseException) and not isinstance(result, (Failed, Skip))


def _failure(error: BaseException) -> dict[str, Any]:
    if isinstance(error, Skip):
        return {"values": []}
    if not isinstance(error, Failed):
        return {"error": _utf8(_last_line(error))}
    failure: dict[str, Any] = {"error": _utf8(_message(error)), "retry": bool(error.retry)}
    if error.class_ is not None:
        word = str(int(error.class_) if isinstance(error.class_, int) else error.class_)
        if CLASS.fullmatch(word):
            failure["class"] = word
        else:
            say(f"class_ is a word of a-z and _, or an HTTP status: not {word!r}\n")
    return failure


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return "<exception str() failed>"


def _last_line(error: BaseException) -> str:
    """Of its traceback."""
    kind = type(error)
    name = kind.__qualname__
    if kind.__module__ not in ("builtins", "__main__"):
        name = f"{kind.__module__}.{name}"
    message = _message(error)
    return " ".join(f"{name}: {message}".split()) if message else name


def _utf8(written: str) -> str:
    return written.encode(errors="replace").decode()
