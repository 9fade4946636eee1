"""Handlers, and what a call of one says: a line in, a line out."""

from __future__ import annotations

import inspect
import traceback
from typing import TYPE_CHECKING, Any, Callable, NamedTuple, Optional, TypeVar, overload

from ._json import MOST_LEVELS, check, dump, parse
from ._record import Record
from ._results import ENDS, meant, reply, say, unexpected

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
    an exception: the failure of that record alone. Where the function raises, it is called again for
    each record alone.
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
            self._get_loop()  # now, and not in the first call
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
        self._shown = ""
        self._exact = False
        replies = [self._reply(*one) for one in zip(records, self._results(records))]
        try:
            return dump(replies[0] if batch is None else {"batch": replies}, self._exact).encode()
        except Exception:
            each = [self._alone(one) for one in replies]
            return each[0] if batch is None else b'{"batch":[' + b",".join(each) + b"]}"

    def _reply(self, record: Record, result: Any) -> dict[str, Any]:
        """Whatever fails here is the record's failure."""
        try:
            result = meant(result)
            if unexpected(result):
                self._show(result)
            made = reply(record.id, result)
            if check(made, MOST_LEVELS + (2 if "values" in made else 1)):
                self._exact = True
            return made
        except Exception as error:
            self._show(error)
            return reply(record.id, error)

    def _alone(self, made: dict[str, Any]) -> bytes:
        """So is a value that has no JSON."""
        try:
            return dump(made, self._exact).encode()
        except Exception as error:
            self._show(error)
            return dump(reply(made["record_id"], error), False).encode()

    def _show(self, error: BaseException) -> None:
        """An error of many records once."""
        shown = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        if shown != self._shown:
            say(shown)
        self._shown = shown

    def _of_each(self, records: list[Record]) -> list[Any]:
        return self._finish([_call(self._function, record) for record in records])

    def _of_all(self, records: list[Record]) -> list[Any]:
        (results,) = self._finish([_call(self._function, records)])
        if isinstance(results, (str, bytes, dict)):
            kind = type(results).__name__
            results = [TypeError(f"the results of a batch are a list, not a {kind}")] * len(records)
        elif not isinstance(results, BaseException):
            results = _call(list, results)
        if isinstance(results, BaseException):
            if len(records) == 1:
                return [results]
            if unexpected(results):
                self._show(results)
            return [result for record in records for result in self._of_all([record])]
        if len(results) != len(records):
            error = ValueError(f"{len(results)} results for {len(records)} records")
            return [error] * len(records)
        return list(results)

    def _finish(self, made: list[Any]) -> list[Any]:
        return self._get_loop().finish(made) if any(map(inspect.isawaitable, made)) else made

    def _get_loop(self) -> Loop:
        if self._loop is None:
            from ._async import Loop  # others start without asyncio

            self._loop = Loop()
        return self._loop


def _call(function: Callable[[Any], Any], argument: Any) -> Any:
    """What it returns or raises."""
    try:
        return function(argument)
    except ENDS:
        raise
    except BaseException as error:  # a CancelledError is no Exception
        return error
