"""Handlers, and what a call of one says: a line in, a line out."""

from __future__ import annotations

import inspect
import traceback
from typing import TYPE_CHECKING, Any, Callable, Iterable, NamedTuple, Optional, TypeVar, overload

from ._json import dump, parse
from ._record import Record
from ._results import reply, unexpected

if TYPE_CHECKING:
    from ._async import Loop

_One = TypeVar("_One", bound=Callable[[Record], Any])
_Many = TypeVar("_Many", bound=Callable[[list[Record]], Any])
_Any = TypeVar("_Any", bound=Callable[..., Any])


class Settings(NamedTuple):
    batch: bool
    heartbeat_for: Optional[float]


def _decorator(settings: Settings) -> Callable[[_Any], _Any]:
    def decorate(function: _Any) -> _Any:
        function.__fencepost__ = settings  # type: ignore[attr-defined]
        return function

    return decorate


@overload
def handler(function: _One) -> _One: ...
@overload
def handler(*, heartbeat_for: Optional[float] = None) -> Callable[[_One], _One]: ...
def handler(function: Any = None, *, heartbeat_for: Optional[float] = None) -> Any:
    """A function of one Record. The records of a batch are one after the other; with `async def`
    side by side.

    heartbeat_for: a call may take so many seconds, however short the pipeline's timeout is.
    """
    decorate = _decorator(Settings(False, heartbeat_for))
    return decorate if function is None else decorate(function)


@overload
def batch_handler(function: _Many) -> _Many: ...
@overload
def batch_handler(*, heartbeat_for: Optional[float] = None) -> Callable[[_Many], _Many]: ...
def batch_handler(function: Any = None, *, heartbeat_for: Optional[float] = None) -> Any:
    """A function of a list of Records that returns as many results, in their order. A result may be
    an exception: the failure of that record alone. What the function raises is the failure of all.
    """
    decorate = _decorator(Settings(True, heartbeat_for))
    return decorate if function is None else decorate(function)


def _nobody_waits() -> None:
    pass


beat: Callable[[], None] = _nobody_waits  # run() says what it does


def heartbeat() -> None:
    """Starts the timeout of the running call anew."""
    beat()


class NoRequest(Exception):
    """A line of the worker's that is none."""


class Calls:
    """Of one handler."""

    def __init__(self, function: Callable[..., Any]) -> None:
        settings = getattr(function, "__fencepost__", None)
        if not isinstance(settings, Settings):
            name = getattr(function, "__name__", repr(function))
            raise TypeError(f"{name} is no handler: decorate it with @fencepost.handler")
        self.settings = settings
        self._function = function
        self._loop: Optional[Loop] = None
        if inspect.iscoroutinefunction(function):
            from ._async import Loop  # others start without asyncio

            self._loop = Loop()
        self._results = self._of_all if settings.batch else self._of_each

    def close(self) -> None:
        if self._loop is not None:
            self._loop.close()

    def answer(self, line: bytes) -> bytes:
        """The reply to a request, without its newline."""
        try:
            request = parse(line.decode())
            batch = request.get("batch")
            records = [Record(request)] if batch is None else [Record(one) for one in batch]
        except (ValueError, AttributeError, TypeError) as error:
            raise NoRequest(str(error)) from None
        replies = []
        last: Any = None
        for record, result in zip(records, self._results(records)):
            if unexpected(result) and result is not last:
                traceback.print_exception(type(result), result, result.__traceback__)
                last = result
            replies.append(reply(record.id, result))
        try:
            return dump(replies[0] if batch is None else {"batch": replies}).encode()
        except Exception:
            each = [_encodable(one) for one in replies]
            return (each[0] if batch is None else '{"batch":[' + ",".join(each) + "]}").encode()

    def _of_each(self, records: list[Record]) -> Iterable[Any]:
        function = self._function
        if self._loop is not None:
            return self._loop.each(function, records)
        results = []
        for record in records:
            try:
                results.append(function(record))
            except Exception as error:
                results.append(error)
        return results

    def _of_all(self, records: list[Record]) -> Iterable[Any]:
        try:
            if self._loop is not None:
                results = self._loop.all(self._function, records)
            else:
                results = self._function(records)
            if isinstance(results, (str, bytes, dict)):
                kind = type(results).__name__
                raise TypeError(f"the results of a batch are a list, not a {kind}")
            results = list(results)
            if len(results) != len(records):
                raise ValueError(f"{len(results)} results for {len(records)} records")
        except Exception as error:
            return [error] * len(records)
        return results


def _encodable(one: dict[str, Any]) -> str:
    """The reply as JSON; where its value has none, that is the record's failure."""
    try:
        line = dump(one)
        line.encode()
        return line
    except Exception as error:
        traceback.print_exception(type(error), error, error.__traceback__)
        return dump(reply(one["record_id"], error))
