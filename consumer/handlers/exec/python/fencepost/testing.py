"""Calls a handler as the worker does, also as on a bad day. pytest has these as fixtures."""

from __future__ import annotations

import base64
import collections
import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable, Iterable, Mapping, NamedTuple, Optional, Sequence, Union

from . import _calls
from ._json import check, dump, parse
from ._results import CLASS

_ATTEMPTS = 5
_RESULTS = {"value", "values", "value_text", "value_base64", "error"}
_FIELDS = ("topic", "partition", "offset", "timestamp", "attempt", "key", "value", "headers")


class Answer(NamedTuple):
    """What a handler made of a record."""

    values: list[Any]  # of its rows
    error: Optional[str] = None
    error_class: Optional[str] = None
    retry: bool = False

    @property
    def value(self) -> Any:
        """Of its only row."""
        assert self.error is None, f"the record failed: {self.error}"
        assert len(self.values) == 1, f"the record has {len(self.values)} values"
        return self.values[0]


class Worker:
    """Calls a handler with records: mappings of `value`, and of `id`, `key`, `headers`, … where the
    test needs them. Bytes are as under `value: text`. Each call gets a higher token than those
    before, unless the record has one.

    batch: max_records of the pipeline's `handler.exec.batch`; None where it has none.
    """

    def __init__(self, batch: Optional[int]) -> None:
        self.heartbeats = 0
        self._batch = batch
        self._token = 0
        self._offset = 0

    def call(self, value: Any = None, **fields: Any) -> Answer:
        """The answer to one record."""
        (answer,) = self.calls([{"value": value, **fields}])
        return answer

    def calls(self, records: Iterable[Mapping[str, Any]]) -> list[Answer]:
        """The answers to records, in their order, in batches where the pipeline has them."""
        return [answer for some in self._batches(records) for answer in self._answers(some)]

    def bad_day(self, records: Iterable[Mapping[str, Any]]) -> dict[str, Answer]:
        """Each record's last answer, by id, after all that can happen to it: the process is killed
        when the effect is there and the answer is not (a function in the test's own process is
        not: its answer is lost); the record comes again, with a higher token,
        until it is answered, and once more after that; last of all the first call comes late, with
        its lower token. A failure that may be retried is, up to 5 times.
        """
        answers: dict[str, Answer] = {}
        for some in self._batches(records):
            early = [{**one, "token": self._next_token(one)} for one in some]
            again = [{**one, "token": None} for one in some]
            self._answers(early)
            self.kill()
            for _ in ("the call that counts", "a repeat"):
                answers.update(self._until_answered(again))
            self._answers(early)
        return answers

    def kill(self) -> None:
        """SIGKILL for its process, if it has one of its own; the next call starts another one."""

    def close(self) -> None:
        self.kill()

    def _exchange(self, line: bytes) -> Optional[bytes]:
        """The reply; None: the process died."""
        raise NotImplementedError

    def _batches(self, records: Iterable[Mapping[str, Any]]) -> list[list[dict[str, Any]]]:
        all_of_them = []
        for record in records:
            one = {"offset": self._offset, "topic": "records", "partition": 0, **record}
            self._offset = one["offset"] + 1
            one.setdefault("id", f"{one['topic']}/{one['partition']}/{one['offset']}")
            all_of_them.append(one)
        size = self._batch or 1
        return [all_of_them[at : at + size] for at in range(0, len(all_of_them), size)]

    def _next_token(self, record: Mapping[str, Any]) -> int:
        token: Optional[int] = record.get("token")
        if token is None:
            token = self._token + 1
        self._token = max(self._token, token)
        return token

    def _until_answered(self, records: list[dict[str, Any]]) -> dict[str, Answer]:
        answers: dict[str, Answer] = {}
        for attempt in range(1, _ATTEMPTS + 1):
            for one, answer in zip(
                records, self._answers([{**one, "attempt": attempt} for one in records])
            ):
                answers[one["id"]] = answer
            records = [one for one in records if answers[one["id"]].retry]
            if not records:
                break
        return answers

    def _answers(self, records: list[dict[str, Any]]) -> list[Answer]:
        requests = [self._request(one) for one in records]
        sent = requests[0] if self._batch is None else {"batch": requests}
        line = dump(sent, exact=True)
        reply = self._exchange(line.encode())
        if reply is None and len(records) > 1:  # none of them is to blame
            return [answer for one in records for answer in self._answers([one])]
        if reply is None:
            return [Answer([], "the process ended before it replied", "exec", True)]
        read = _parse(reply)
        found = [read] if self._batch is None else read.get("batch")
        assert isinstance(found, list), f"the reply to a batch is no batch: {reply!r}"
        by_id = {one.get("record_id", requests[0]["record_id"]): _answer(one) for one in found}
        wanted = [one["record_id"] for one in requests]
        assert sorted(by_id) == sorted(wanted) and len(found) == len(wanted), (
            f"replies to {sorted(by_id)}, and the records were {wanted}"
        )
        return [by_id[id] for id in wanted]

    def _request(self, record: Mapping[str, Any]) -> dict[str, Any]:
        unknown = set(record) - {"id", "token", *_FIELDS}
        assert not unknown, f"a record has no {sorted(unknown)}"
        token = self._next_token(record)
        defaults: dict[str, Any] = {"timestamp": 0, "attempt": 1, "headers": {}}
        fields = {name: record.get(name, defaults.get(name)) for name in _FIELDS}
        source = f"{fields['topic']}/{fields['partition']}/{fields['offset']}"
        if isinstance(fields["value"], bytes):
            text, raw = _as_text({"value_text": fields.pop("value")})
            fields.update(text or {"value_base64": raw["value_text"]})
        text, raw = _as_text({"key": fields["key"]})
        fields.update(text or {"key": None, "key_base64": raw["key"]})
        fields["headers"], raw = _as_text(fields["headers"])
        if raw:
            fields["headers_base64"] = raw
        return {"record_id": record["id"], "token": token, "source": source, **fields}


def _as_text(fields: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Those that are text, bytes decoded, and in base64 those that are none."""
    text, raw = dict(fields), {}
    for name, value in fields.items():
        if isinstance(value, bytes):
            try:
                text[name] = value.decode()
            except UnicodeDecodeError:
                raw[name] = base64.b64encode(text.pop(name)).decode()
    return text, raw


def _once(pairs: list[tuple[str, Any]]) -> None:
    names = collections.Counter(name for name, _ in pairs)
    assert len(names) == len(pairs), f"an object has a name twice: {names.most_common(1)}"


def _no_number(word: str) -> None:
    raise AssertionError(f"{word} is not JSON")


_look = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_no_number).decode


def _parse(reply: bytes) -> Any:
    """Fails where the worker finds no JSON."""
    _look(reply.decode())
    return parse(reply.decode())


def _answer(reply: Mapping[str, Any]) -> Answer:
    named = _RESULTS & set(reply)
    assert len(named) == 1, f"a reply has one of {sorted(_RESULTS)}: {reply}"
    for name in ("record_id", "error", "class", "value_text", "value_base64"):
        assert isinstance(reply.get(name, ""), str), f"{name} is no text: {reply}"
    if "error" in reply:
        error_class = reply.get("class", "exec_error")
        assert CLASS.fullmatch(error_class), f"no class of a failure: {error_class!r}"
        retry = reply.get("retry", True)
        assert isinstance(retry, bool), f"retry is neither true nor false: {reply}"
        return Answer([], reply["error"], error_class, retry)
    values = reply["values"] if "values" in reply else [reply[named.pop()]]
    assert isinstance(values, list), f"values is no list: {reply}"
    for value in values:
        try:
            check(value)
        except ValueError as error:
            raise AssertionError(f"a value is no JSON: {error}") from None
    if "value_base64" in reply:
        values = [base64.b64decode(reply["value_base64"], validate=True)]
    return Answer(values)


class InProcess(Worker):
    """Calls the function in the test's own process: what the test replaces is replaced, and nothing
    is killed.
    """

    def __init__(self, function: Callable[..., Any], batch: Optional[int] = None) -> None:
        super().__init__(batch)
        self._calls = _calls.Calls(function)

    def close(self) -> None:
        self._calls.close()

    def _exchange(self, line: bytes) -> Optional[bytes]:
        before, _calls.beat = _calls.beat, self._beat
        try:
            return self._calls.answer(line)
        finally:
            _calls.beat = before

    def _beat(self) -> None:
        self.heartbeats += 1


class Process(Worker):
    """Starts the program as the worker does. kill() may be called while a call runs, by the service
    that a test puts in the place of the real one.

    program: a file for this Python, or a command. timeout: of a call, in seconds.
    """

    def __init__(
        self,
        program: Union[str, Path, Sequence[str]],
        batch: Optional[int] = None,
        env: Optional[Mapping[str, str]] = None,
        timeout: float = 30,
    ) -> None:
        super().__init__(batch)
        if isinstance(program, (str, Path)):
            program = [sys.executable, str(program)]
        self._command = list(program)
        self._env = {**os.environ, "FENCEPOST_PIPELINE": "test", **(env or {})}
        self._timeout = timeout
        self._process: Optional[subprocess.Popen[bytes]] = None
        self._started: list[subprocess.Popen[bytes]] = []
        self._said = b""  # on stdout, and not read yet

    def kill(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            _end(process)

    def terminate(self) -> int:
        """SIGTERM, and the exit code."""
        process, self._process = self._process, None
        assert process is not None, "no process runs: it starts with the first call"
        process.terminate()
        try:
            return process.wait(self._timeout)
        finally:
            _end(process)

    def close(self) -> None:
        super().close()
        for process in self._started:
            process.__exit__(None, None, None)  # closes the pipes

    def _exchange(self, line: bytes) -> Optional[bytes]:
        process = self._process or self._start()
        assert process.stdin is not None
        assert not self._said, f"a line that nobody asked for: {self._said!r}"
        try:
            left = memoryview(line + b"\n")
            while left:
                left = left[process.stdin.write(left) :]
        except BrokenPipeError:
            pass
        while True:
            reply = self._line(process)
            if reply is None:
                self.kill()
                return None
            try:
                if parse(reply.decode()) != {"heartbeat": True}:
                    return reply
            except ValueError:
                raise AssertionError(f"what is no reply goes to stderr: {reply!r}") from None
            self.heartbeats += 1

    def _start(self) -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            self._command, bufsize=0, stdin=pipe, stdout=pipe, env=self._env, start_new_session=True
        )
        self._started.append(self._process)
        self._said = b""
        return self._process

    def _line(self, process: subprocess.Popen[bytes]) -> Optional[bytes]:
        """None: the process died."""
        assert process.stdout is not None
        deadline = time.monotonic() + self._timeout
        while b"\n" not in self._said:
            left = max(deadline - time.monotonic(), 0)
            if not select.select([process.stdout], [], [], left)[0]:
                self.kill()
                raise AssertionError(f"no answer within {self._timeout} s")
            data = os.read(process.stdout.fileno(), 1 << 16)
            if not data:
                return None
            self._said += data
        line, _, self._said = self._said.partition(b"\n")
        return line


def _end(process: subprocess.Popen[bytes]) -> None:
    """With its group, as the worker ends it."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


class Effects:
    """What a service did, as its fake noted it, in that order."""

    def __init__(self) -> None:
        self.noted: list[tuple[str, int]] = []

    def note(self, record_id: str, token: int) -> None:
        """Called where the effect happens."""
        self.noted.append((record_id, token))

    def assert_once(self, ids: Optional[Iterable[str]] = None) -> None:
        """No id took effect twice; with ids, each of them once, and no other."""
        counts = collections.Counter(id for id, _ in self.noted)
        twice = {id: [t for i, t in self.noted if i == id] for id, n in counts.items() if n > 1}
        assert not twice, f"took effect more than once (id: tokens): {twice}"
        if ids is not None:
            wanted = set(ids)
            assert set(counts) == wanted, (
                f"no effect of {sorted(wanted - set(counts))}, "
                f"and of {sorted(set(counts) - wanted)}, which nobody asked for"
            )

    def assert_tokens_never_fall(self) -> None:
        """No effect of an id came with a lower token than one before it."""
        last: dict[str, int] = {}
        for id, token in self.noted:
            assert token >= last.get(id, token), (
                f"{id} took effect with token {token} after {last[id]}: a late call was not refused"
            )
            last[id] = token
