"""The program that the worker starts."""

from __future__ import annotations

import io
import os
import select
import signal
import sys
import threading
import time
from typing import Any, Callable, Iterator, Optional

from . import _calls

_CHUNK = 1 << 16
_BEAT_EVERY = 0.2  # seconds


_TAKEN = "FENCEPOST_PIPES_TAKEN"  # tells a child that its pipes are not the worker's
_pipes: Optional[tuple[int, int]] = None


def take_pipes() -> tuple[int, int]:
    """From here on what is printed goes to stderr, also by programs that the handler starts, and
    stdin is empty.
    """
    global _pipes
    if _pipes is None:
        _pipes = requests, replies = os.dup(0), os.dup(1)
        os.environ[_TAKEN] = "1"
        os.register_at_fork(after_in_child=_close_pipes)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        os.dup2(2, 1)
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(line_buffering=True)
        sys.stdout.flush()
    return _pipes


def _close_pipes() -> None:
    for fd in _pipes or ():
        os.close(fd)


def take_pipes_of_worker() -> None:
    """At the import: what the program prints before run() is no reply either."""
    if "FENCEPOST_PIPELINE" in os.environ and _TAKEN not in os.environ and not os.isatty(0):
        take_pipes()


def run(function: Callable[..., Any]) -> None:
    """Handles records until there are no more, or SIGTERM: then a call that runs ends first."""
    calls = _calls.Calls(function)
    if _pipes is None and os.isatty(0):
        sys.exit(f"{sys.argv[0]} is a handler: a fencepost pipeline starts it (handler.exec)")
    requests, replies = take_pipes()
    stop = _Stop()
    speaker = _Speaker(replies, calls.settings.heartbeat_for)
    _calls.beat = speaker.beat

    def in_child() -> None:
        stop.forget()
        speaker.forget()

    os.register_at_fork(after_in_child=in_child)
    try:
        for line in _lines(requests, stop):
            speaker.begin()
            speaker.end(calls.answer(line) + b"\n")
    except _calls.NoRequest as error:
        sys.exit(f"fencepost: a line that is no request: {error}")
    except BrokenPipeError:
        pass  # the worker has gone
    calls.close()


class _Stop:
    """Asked for by SIGTERM. Readable then, so that a wait for the next request ends."""

    def __init__(self) -> None:
        self.asked = False
        self.fd, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, self._ask)

    def _ask(self, _number: int, _frame: object) -> None:
        self.asked = True

    def forget(self) -> None:
        """In a child: SIGTERM ends it."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.close(self.fd)
        os.close(self._wake)


def _lines(fd: int, stop: _Stop) -> Iterator[bytes]:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    poll.register(stop.fd, select.POLLIN)
    parts: list[bytes] = []
    while True:
        ready = [one for one, _ in poll.poll()]
        if stop.asked:
            return
        if fd not in ready:
            os.read(stop.fd, _CHUNK)  # another signal
            continue
        data = os.read(fd, _CHUNK)
        if not data:
            return
        parts.append(data)
        if b"\n" in data:
            *lines, rest = b"".join(parts).split(b"\n")
            parts = [rest]
            yield from lines


def beats(now: float, since: Optional[float], longest: float) -> bool:
    """A heartbeat is due for a call that began then."""
    return since is not None and _BEAT_EVERY <= now - since < longest


class _Speaker:
    """Writes replies, and heartbeats while a call runs."""

    def __init__(self, fd: int, heartbeat_for: Optional[float]) -> None:
        self._fd = fd
        self._lock = threading.Lock()
        self._since: Optional[float] = None  # when the call that runs began
        if heartbeat_for is not None:
            threading.Thread(target=self._beat_for, args=(heartbeat_for,), daemon=True).start()

    def begin(self) -> None:
        with self._lock:
            self._since = time.monotonic()

    def end(self, reply: bytes) -> None:
        with self._lock:
            self._since = None
            self._write(reply)

    def beat(self) -> None:
        with self._lock:
            if self._since is not None:
                self._write(b'{"heartbeat": true}\n')

    def forget(self) -> None:
        """In a child: it says nothing to the worker."""
        self._fd = -1
        self._lock = threading.Lock()
        self._since = None

    def _beat_for(self, longest: float) -> None:
        while True:
            time.sleep(_BEAT_EVERY)
            if beats(time.monotonic(), self._since, longest):
                self.beat()

    def _write(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[os.write(self._fd, left) :]
