"""What a handler can make of a record, and the reply that says it."""

from __future__ import annotations

import base64
import re
from typing import Any, Optional

CLASS = re.compile(r"[a-z_]{1,64}|[0-9]{3}")


class Failed(Exception):
    """Retry and Reject: a failure that the handler names."""

    retry = True
    what = "the handler failed"

    def __init__(self, message: str = "", *, class_: Optional[str] = None) -> None:
        super().__init__(message or self.what)
        if class_ is not None and not CLASS.fullmatch(class_):
            raise ValueError(f"class_ is a word of a-z and _, or an HTTP status: not {class_!r}")
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
    return Result({"value_text": value})


def reply(record_id: str, result: Any) -> dict[str, Any]:
    """The reply to a record; the result is what its handler returned or raised."""
    if type(result) is dict or result is None:
        return {"record_id": record_id, "value": result}
    if isinstance(result, type) and issubclass(result, BaseException):
        result = result()
    if isinstance(result, BaseException):
        return {"record_id": record_id, **_failure(result)}
    if isinstance(result, Result):
        return {"record_id": record_id, **result.reply}
    if isinstance(result, (bytes, bytearray)):
        return {"record_id": record_id, "value_base64": base64.b64encode(result).decode()}
    return {"record_id": record_id, "value": result}


def unexpected(result: Any) -> bool:
    """An exception that the handler did not mean to raise."""
    return isinstance(result, BaseException) and not isinstance(result, (Failed, Skip))


def _failure(error: BaseException) -> dict[str, Any]:
    if isinstance(error, Skip):
        return {"values": []}
    if not isinstance(error, Failed):
        return {"error": _last_line(error)}
    failure: dict[str, Any] = {"error": _utf8(str(error)), "retry": error.retry}
    if error.class_ is not None:
        failure["class"] = error.class_
    return failure


def _last_line(error: BaseException) -> str:
    """Of its traceback."""
    kind = type(error)
    name = kind.__qualname__
    if kind.__module__ not in ("builtins", "__main__"):
        name = f"{kind.__module__}.{name}"
    try:
        message = str(error)
    except Exception:
        message = "<exception str() failed>"
    return _utf8(" ".join(f"{name}: {message}".split()) if message else name)


def _utf8(written: str) -> str:
    return written.encode(errors="replace").decode()
