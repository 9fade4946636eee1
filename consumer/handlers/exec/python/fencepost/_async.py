"""The event loop of a handler that is `async def`; it stands still between calls."""

from __future__ import annotations

import asyncio
import inspect
import sys
from typing import Any

from ._results import ENDS


class Loop:
    def __init__(self) -> None:
        # Before 3.10 a Semaphore that a module made belongs to the thread's own loop.
        self._shared = sys.version_info < (3, 10)
        self._loop = asyncio.get_event_loop() if self._shared else asyncio.new_event_loop()

    def finish(self, made: list[Any]) -> list[Any]:
        """With what the awaitables among them return or raise, side by side."""
        return self._loop.run_until_complete(_gather(made))

    def close(self) -> None:
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        if not self._shared:
            self._loop.close()


async def _gather(made: list[Any]) -> list[Any]:
    return await asyncio.gather(*map(_finished, made))


async def _finished(made: Any) -> Any:
    if not inspect.isawaitable(made):
        return made
    try:
        return await made
    except ENDS:
        raise
    except BaseException as error:  # a CancelledError is no Exception
        return error
