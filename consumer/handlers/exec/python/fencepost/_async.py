"""The event loop of a handler that is `async def`; it stands still between calls."""

from __future__ import annotations

import asyncio
from typing import Any, Awaitable, Callable

from ._record import Record


class Loop:
    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()

    def each(
        self, function: Callable[[Record], Awaitable[Any]], records: list[Record]
    ) -> list[Any]:
        """What the records' calls, side by side, return or raise."""
        return self._loop.run_until_complete(_gather(function, records))

    def all(self, function: Callable[[list[Record]], Awaitable[Any]], records: list[Record]) -> Any:
        (result,) = self._loop.run_until_complete(_gather(function, [records]))
        if isinstance(result, BaseException):
            raise result if isinstance(result, Exception) else RuntimeError(repr(result))
        return result

    def close(self) -> None:
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()


async def _gather(function: Callable[[Any], Awaitable[Any]], calls: list[Any]) -> list[Any]:
    return await asyncio.gather(*map(function, calls), return_exceptions=True)
