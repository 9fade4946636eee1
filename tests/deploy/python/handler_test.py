"""Handlers in Python, as a worker runs them: lines in, lines out."""

import base64
import json
import os
import pathlib
import pty
import signal
import subprocess
import sys
import tempfile
import textwrap
import unittest

from support.processes import run
from support.python_module import FOLDER

HEAD = "import fencepost\n"
RUN = """
if __name__ == "__main__":
    fencepost.run(charge)
    fencepost.heartbeat()  # no call runs: nothing is sent
"""


def request(record_id="r", **fields) -> dict:
    plain = {"record_id": record_id, "token": 7, "source": "t/0/1", "topic": "t", "partition": 0,
             "offset": 1, "timestamp": 5, "attempt": 1, "key": "k", "headers": {}}  # fmt: skip
    return {**plain, **({} if "value_text" in fields or "value_base64" in fields else
                        {"value": None}), **fields}  # fmt: skip


def nested(levels: int):
    return [nested(levels - 1)] if levels else 1


def batch(*records: dict) -> str:
    return json.dumps({"batch": records})


class Handler:
    """A program in a folder of its own."""

    def __init__(self, test: unittest.TestCase, body: str, **env: str):
        folder = tempfile.TemporaryDirectory()
        test.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.path = self.folder / "charge.py"
        self.path.write_text(HEAD + textwrap.dedent(body) + RUN)
        self.errors = self.folder / "stderr"
        with self.errors.open("w") as errors:
            self.process = subprocess.Popen(
                [sys.executable, self.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=errors, text=True, cwd=folder.name,
                env={**os.environ, "PYTHONPATH": str(FOLDER), "FENCEPOST_PIPELINE": "p", **env})  # fmt: skip
        test.addCleanup(self.process.__exit__, None, None, None)
        test.addCleanup(self.process.kill)

    def send(self, line: str):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def line(self) -> str:
        return self.process.stdout.readline().rstrip("\n")

    def said(self, line: str) -> dict:
        self.send(line)
        return json.loads(self.line())

    def end(self) -> int:
        self.process.stdin.close()
        return self.process.wait(60)


class Results(unittest.TestCase):
    def test_what_a_handler_returns_or_raises_is_the_reply(self):
        table = [
            ("None", {"value": None}),
            ('{"a": [1, "ü"]}', {"value": {"a": [1, "ü"]}}),
            ('"text"', {"value": "text"}),
            ('fencepost.text("text")', {"value_text": "text"}),
            ("b'\\xff'", {"value_base64": base64.b64encode(b"\xff").decode()}),
            ("fencepost.values(1, None)", {"values": [1, None]}),
            ("fencepost.values()", {"values": []}),
            ("throw(fencepost.Skip)", {"values": []}),
            ('throw(fencepost.Retry("busy", class_="503"))',
             {"error": "busy", "class": "503", "retry": True}),
            ('throw(fencepost.Reject("no"))', {"error": "no", "retry": False}),
            ("throw(fencepost.Reject)", {"error": "rejected", "retry": False}),
            ('throw(fencepost.Reject("x", class_=402))',
             {"error": "x", "class": "402", "retry": False}),
            ('throw(fencepost.Reject("x", class_=http.HTTPStatus.CONFLICT))',
             {"error": "x", "class": "409", "retry": False}),
            ('throw(fencepost.Reject("x", class_="Not a word"))', {"error": "x", "retry": False}),
            ('throw(fencepost.Reject("x", class_="cancelled"))', {"error": "x", "retry": False}),
            ('throw(fencepost.Reject("x", class_=True))', {"error": "x", "retry": False}),
            ("throw(Plain(1))", {"error": "1", "retry": False}),
            ("throw(OfAClass)", {"error": "rejected", "class": "worn", "retry": False}),
            ("throw(Dumb())", {"error": "<exception str() failed>", "retry": False}),
            ("NotMade", {"error": "ValueError: not made"}),
            ("throw(asyncio.CancelledError())", {"error": "asyncio.exceptions.CancelledError"}),
            ("group(fencepost.Skip())", {"values": []}),
            ("group(group(fencepost.Reject()))", {"error": "rejected", "retry": False}),
            ("later(5)", {"value": 5}),
            ("later(fencepost.Skip())", {"values": []}),
            ("fencepost.text(5)", {"error": "TypeError: text() takes a str, not a int"}),
            ('{1: 2, "1": 3}', {"error": "ValueError: an object has a name twice"}),
            ('[{None: 2, "null": 3}]', {"error": "ValueError: an object has a name twice"}),
            ('{1: 2, "a": 3}', {"value": {"1": 2, "a": 3}}),
            ("nested(200)", {"value": nested(200)}),
            ("fencepost.values(nested(200))", {"values": [nested(200)]}),
            ("nested(201)", {"error": "ValueError: it is nested deeper than 200 levels"}),
            ("fencepost.values(nested(201))",
             {"error": "ValueError: it is nested deeper than 200 levels"}),
            ('fencepost.Number("1.50")', {"value": 1.5}),
            ('fencepost.Number("1_0")', {"error": "ValueError: '1_0' is no number of JSON"}),
            ('fencepost.Number("nan")', {"error": "ValueError: 'nan' is no number of JSON"}),
            ('throw(ValueError("two\\nlines"))', {"error": "ValueError: two lines"}),
            ("throw(KeyError)", {"error": "KeyError"}),
            ('json.loads("{")',
             {"error": "json.decoder.JSONDecodeError: Expecting property name enclosed in double "
                       "quotes: line 1 column 2 (char 1)"}),
            ("object()", {"error": "TypeError: Object of type object is not JSON serializable"}),
            ("float('nan')", {"error": "ValueError: Out of range float values are not JSON "
                                       "compliant"}),
            ('decimal.Decimal("NaN")', {"error": "ValueError: NaN is not JSON"}),
            ("decimal.Decimal('1.50')", {"value": 1.5}),
            ("{1: decimal.Decimal(2), None: (3, True)}", {"value": {"1": 2, "null": [3, True]}}),
            ("{(1, 2): 3}", {"error": "TypeError: keys must be str, int, float, bool or None, "
                                      "not tuple"}),
            ("'\\ud800'", {"error": "UnicodeEncodeError: 'utf-8' codec can't encode character "
                                    "'\\ud800' in position 26: surrogates not allowed"}),
        ]  # fmt: skip
        results = "\n".join(f"    lambda: {result}," for result, _ in table)
        handler = Handler(self, f"""\
import asyncio, decimal, http, json
def throw(error):
    raise error
def group(error):
    return getattr(__builtins__, "ExceptionGroup", lambda _, errors: errors[0])("", [error])
async def later(result):
    return result
def nested(levels):
    return [nested(levels - 1)] if levels else 1
class Plain(fencepost.Reject):
    def __init__(self, number):
        Exception.__init__(self, number)
class OfAClass(fencepost.Reject):
    class_ = "worn"
class Dumb(fencepost.Reject):
    def __str__(self):
        raise ValueError
class NotMade(Exception):
    def __init__(self):
        raise ValueError("not made")
RESULTS = [
{results}
]
@fencepost.handler
def charge(record):
    return RESULTS[record.value]()
""")
        for n, (result, reply) in enumerate(table):
            for line in (json.dumps(request(value=n)), batch(request(value=n))):
                with self.subTest(result=result, line=line):
                    said = handler.said(line)
                    (said,) = said.get("batch", [said])
                    said["error"] = said["error"].split(": nan")[0] if "error" in said else None
                    self.assertEqual({"record_id": "r", "error": None, **reply}, said)
        self.assertEqual(handler.end(), 0)

    def test_numbers_that_are_passed_on_keep_their_digits(self):
        handler = Handler(self, """\
            @fencepost.handler
            def charge(record):
                return {"kept": [record.value], "as_float": record.value * 2}
        """)  # fmt: skip
        for number in ("0.1", "1.50", "-0", "-0e1", "12345678901234567.123456789012", "1E+2", "1e400", "-0.0",
                       "123456789012345678901", "7" * 5000):  # fmt: skip
            with self.subTest(number=number[:40]):
                line = json.dumps(request(value=0)).replace('"value": 0', f'"value": {number}')
                handler.send(line)
                said = handler.line()
                kept = '"kept":[' + number + "]"
                # 1e400 counts as infinity: it can be passed on, and not be counted with.
                self.assertIn("not JSON compliant" if len(number) > 400 or "e400" in number
                              else kept, said)  # fmt: skip
        handler = Handler(self, """\
            @fencepost.handler
            def charge(record):
                return record.value
        """)  # fmt: skip
        for value in ('{"a":[1e400,{"b":1.50}],"c":{},"d":[],"e":"ü\\n","f":true,"g":null}',
                      "7" * 5000):  # fmt: skip
            handler.send(json.dumps(request(value=0)).replace('"value": 0', f'"value": {value}'))
            self.assertEqual(handler.line(), '{"record_id":"r","value":' + value + "}")

    def test_a_number_with_digits_of_its_own_slows_its_own_value_alone(self):
        from fencepost import _json

        self.assertTrue(_json.check({"a": [_json.parse("1.50")]}))
        self.assertFalse(_json.check({"a": [_json.parse("1.5")]}))

    def test_a_record_has_what_the_worker_gives(self):
        handler = Handler(self, """\
            @fencepost.handler
            def charge(record):
                return repr([record.id, record.token, record.key, record.value, record.headers,
                             record.topic, record.partition, record.offset, record.timestamp,
                             record.attempt])
        """)  # fmt: skip
        plain = request(value={"a": 1}, headers={"x": "1", "y": None})
        self.assertEqual(handler.said(json.dumps(plain))["value"],
                         "['r', 7, 'k', {'a': 1}, {'x': '1', 'y': None}, 't', 0, 1, 5, 1]")
        raw = base64.b64encode(b"\xff").decode()
        encoded = request(key=None, key_base64=raw, value_base64=raw, headers_base64={"x": raw},
                          timestamp=None)  # fmt: skip
        self.assertEqual(handler.said(json.dumps(encoded))["value"],
                         "['r', 7, b'\\xff', b'\\xff', {'x': b'\\xff'}, 't', 0, 1, None, 1]")
        for text in ("plain", None):
            said = handler.said(json.dumps(request(value_text=text)))
            self.assertIn(f"'k', {text!r}, {{}}", said["value"])


class Batches(unittest.TestCase):
    def test_a_record_of_a_batch_fails_alone(self):
        handler = Handler(self, """\
            @fencepost.batch_handler
            def charge(records):
                made = {"bad": object(), "failed": ValueError("no"), "skipped": fencepost.Skip}
                return (made.get(record.id, record.value) for record in records)
        """)  # fmt: skip
        said = handler.said(batch(*(request(id, value=1) for id in ("a", "bad", "failed",
                                                                    "skipped", "b"))))  # fmt: skip
        self.assertEqual(said["batch"], [
            {"record_id": "a", "value": 1},
            {"record_id": "bad",
             "error": "TypeError: Object of type object is not JSON serializable"},
            {"record_id": "failed", "error": "ValueError: no"},
            {"record_id": "skipped", "values": []},
            {"record_id": "b", "value": 1},
        ])  # fmt: skip
        self.assertEqual(handler.said(json.dumps(request(value=2))), {"record_id": "r", "value": 2})

    def test_results_that_cannot_be_told_apart_fail_all_records(self):
        for form in ("def", "async def"):
            handler = Handler(self, f"""\
                RESULTS = {{"few": [1], "many": [1, 2, 3], "text": "ab", "dict": {{"a": 1, "b": 2}},
                           "none": None}}
                @fencepost.batch_handler
                {form} charge(records):
                    return RESULTS[records[0].value]
            """)  # fmt: skip
            for value, error in (
                ("few", "ValueError: 1 results for 2 records"),
                ("many", "ValueError: 3 results for 2 records"),
                ("text", "TypeError: the results of a batch are a list, not a str"),
                ("dict", "TypeError: the results of a batch are a list, not a dict"),
                ("none", "TypeError: 'NoneType' object is not iterable"),
                ("unknown", "KeyError: 'unknown'"),
            ):
                with self.subTest(form=form, value=value):
                    said = handler.said(batch(*(request(id, value=value) for id in "ab")))
                    self.assertEqual(said["batch"],
                                     [{"record_id": id, "error": error} for id in "ab"])
            handler.end()
            shown = handler.errors.read_text()
            self.assertEqual(shown.count("KeyError: 'unknown'"), 1, "a traceback an error")

    def test_async_calls_of_a_batch_run_side_by_side(self):
        handler = Handler(self, """\
            import asyncio
            waiting = []
            @fencepost.handler
            async def charge(record):
                waiting.append(asyncio.get_running_loop().create_future())
                if len(waiting) == 3:
                    for one in waiting:
                        one.set_result(record.id)
                found = await waiting[int(record.id)]
                if record.id == "1":
                    raise asyncio.CancelledError
                return found
        """)  # fmt: skip
        said = handler.said(batch(*(request(str(n)) for n in range(3))))
        self.assertEqual(said["batch"], [{"record_id": "0", "value": "2"},
                                         {"record_id": "1",
                                          "error": "asyncio.exceptions.CancelledError"},
                                         {"record_id": "2", "value": "2"}])  # fmt: skip


    def test_a_record_that_a_batch_raises_for_is_found_alone(self):
        for form in ("def", "async def"):
            handler = Handler(self, f"""\
                calls = []
                @fencepost.batch_handler
                {form} charge(records):
                    calls.append([record.id for record in records])
                    for record in records:
                        if record.value:
                            raise getattr(fencepost, record.value)
                    return [list(calls)] * len(records)
            """)  # fmt: skip
            for error, reply in (("Skip", {"values": []}),
                                 ("Reject", {"error": "rejected", "retry": False})):  # fmt: skip
                said = handler.said(batch(request("a"), request("b", value=error), request("c")))
                first, bad, last = said["batch"]
                with self.subTest(form=form, error=error):
                    self.assertEqual({**bad, "record_id": "b"}, {"record_id": "b", **reply})
                    self.assertEqual(first["value"][-2:], [["a", "b", "c"], ["a"]])
                    self.assertEqual(last["value"][-2:], [["b"], ["c"]])
            handler.end()
            self.assertEqual(handler.errors.read_text(), "", "all were meant")

    def test_a_call_that_raises_at_once_is_its_records_failure(self):
        handler = Handler(self, """\
            import functools
            async def later(record):
                return 1
            @fencepost.handler
            def charge(record):
                if record.id == "bad":
                    raise fencepost.Reject
                return later(record)
        """)  # fmt: skip
        said = handler.said(batch(request("a"), request("bad")))
        self.assertEqual(said["batch"],
                         [{"record_id": "a", "value": 1},
                          {"record_id": "bad", "error": "rejected", "retry": False}])  # fmt: skip

    def test_a_semaphore_of_the_module_can_be_awaited(self):
        handler = Handler(self, """\
            import asyncio
            room = asyncio.Semaphore(1)
            @fencepost.handler
            async def charge(record):
                async with room:
                    await asyncio.sleep(0)
                    return 1
        """)  # fmt: skip
        said = handler.said(batch(request("a"), request("b")))
        self.assertEqual([one.get("value") for one in said["batch"]], [1, 1], said)
        self.assertEqual(handler.end(), 0)


class Outside(unittest.TestCase):
    def test_what_a_module_prints_goes_to_stderr_once_it_has_imported_fencepost(self):
        for env in ({"PYTHONUNBUFFERED": "1"}, {"PYTHONUNBUFFERED": ""}):
            handler = Handler(self, """\
                import os, subprocess, sys
                print("printed")
                subprocess.run(["sh", "-c", "echo by a child; cat"], check=True)
                @fencepost.handler
                def charge(record):
                    code = "import fencepost; print(input())"
                    done = subprocess.run([sys.executable, "-c", code], input="of a child",
                                          stdout=subprocess.PIPE, text=True)
                    return done.stdout
            """, **env)  # fmt: skip
            self.assertEqual(handler.said(json.dumps(request())),
                             {"record_id": "r", "value": "of a child\n"})  # fmt: skip
            self.assertEqual(handler.end(), 0)
            self.assertEqual(handler.errors.read_text(), "printed\nby a child\n")

    def test_a_forked_child_ends_by_sigterm_and_says_nothing_to_the_worker(self):
        handler = Handler(self, """\
            import os, signal
            @fencepost.handler
            def charge(record):
                ready, tell = os.pipe()
                child = os.fork()
                if child == 0:
                    fencepost.heartbeat()
                    if record.id == "returns":
                        return "of the child"
                    os.write(tell, b"1")
                    while True:
                        signal.pause()
                os.close(tell)
                os.read(ready, 1)
                os.kill(child, signal.SIGTERM)
                status = os.waitpid(child, 0)[1]
                return os.WTERMSIG(status) if os.WIFSIGNALED(status) else "ended"
        """)  # fmt: skip
        self.assertEqual(handler.said(json.dumps(request())), {"record_id": "r", "value": 15})
        said = handler.said(json.dumps(request("returns")))
        self.assertIn(said["value"], (15, "ended"))
        self.assertEqual(handler.end(), 0)
        self.assertEqual(handler.process.stdout.read(), "")

    def test_a_reply_does_not_depend_on_stderr(self):
        handler = Handler(self, """\
            import os, sys
            @fencepost.handler
            def charge(record):
                if record.id == "a":
                    os.close(2)
                if record.id == "none":
                    sys.stderr = None
                raise {"b": fencepost.Reject("no", class_="Not a word")}.get(record.id, KeyError)
        """)  # fmt: skip
        self.assertEqual(handler.said(json.dumps(request("a")))["error"], "KeyError")
        self.assertEqual(handler.said(json.dumps(request("b")))["retry"], False)
        self.assertEqual(handler.said(json.dumps(request("none")))["error"], "KeyError")

    def test_what_is_printed_goes_to_stderr_and_stdin_is_empty(self):
        handler = Handler(self, """\
            import os, subprocess, sys
            @fencepost.handler
            def charge(record):
                print("printed")
                os.write(1, b"written\\n")
                subprocess.run(["sh", "-c", "echo by a child; cat"], check=True)
                return sys.stdin.read()
        """)  # fmt: skip
        self.assertEqual(handler.said(json.dumps(request())), {"record_id": "r", "value": ""})
        self.assertEqual(handler.end(), 0)
        self.assertEqual(handler.process.stdout.read(), "")
        self.assertEqual(handler.errors.read_text(),
                         "printed\nwritten\nby a child\n")  # fmt: skip

    def test_a_traceback_is_on_stderr_and_that_of_a_named_failure_is_not(self):
        handler = Handler(self, """\
            @fencepost.handler
            def charge(record):
                raise {"a": ValueError("unforeseen"), "b": fencepost.Retry("foreseen")}[record.id]
        """)  # fmt: skip
        handler.said(batch(request("a"), request("b")))
        handler.end()
        shown = handler.errors.read_text()
        self.assertRegex(shown, r"(?s)^Traceback .* in charge\n.*\nValueError: unforeseen\n$")

    def test_sigterm_ends_an_idle_process_and_lets_a_call_end(self):
        body = """\
            import os, signal
            signal.signal(signal.SIGUSR1, lambda *_: None)
            @fencepost.handler
            def charge(record):
                if record.value:
                    record.heartbeat()
                    open(record.value).read()
                return 1
        """
        idle = Handler(self, body)
        idle.said(json.dumps(request()))
        idle.process.send_signal(signal.SIGUSR1)  # no reason to end
        self.assertEqual(idle.said(json.dumps(request()))["value"], 1)
        idle.process.terminate()
        self.assertEqual(idle.process.wait(60), 0)

        busy = Handler(self, body)
        gate = busy.folder / "gate"
        os.mkfifo(gate)
        self.assertEqual(busy.said(json.dumps(request(value=str(gate)))), {"heartbeat": True})
        busy.process.terminate()
        with gate.open("w"):
            pass
        self.assertEqual(json.loads(busy.line()), {"record_id": "r", "value": 1})
        self.assertEqual(busy.process.wait(60), 0)

    def test_heartbeats_are_sent_while_a_call_runs(self):
        handler = Handler(self, """\
            @fencepost.handler(heartbeat_for=60)
            def charge(record):
                return open(record.value).read()
            fencepost.heartbeat()
        """)  # fmt: skip
        gate = handler.folder / "gate"
        os.mkfifo(gate)
        handler.send(json.dumps(request(value=str(gate))))
        for _ in range(3):
            self.assertEqual(json.loads(handler.line()), {"heartbeat": True})
        with gate.open("w"):
            pass
        while (said := json.loads(handler.line())) == {"heartbeat": True}:
            pass
        self.assertEqual(said, {"record_id": "r", "value": ""})
        self.assertEqual(handler.end(), 0)
        self.assertEqual(handler.process.stdout.read(), "")

    def test_heartbeats_end_after_the_time_that_a_call_may_take(self):
        from fencepost._process import beats

        for now, since, due in ((10.0, None, False), (10.0, 9.9, False), (10.0, 9.7, True),
                                (14.6, 9.7, True), (14.8, 9.7, False)):  # fmt: skip
            self.assertEqual(beats(now, since, longest=5), due, (now, since))

    def test_a_program_that_is_no_handler_or_gets_no_requests_says_so(self):
        plain = Handler(self, "def charge(record): pass\n")
        self.assertEqual(plain.end(), 1)
        self.assertIn("TypeError: charge is no handler: decorate it with @fencepost.handler\n",
                      plain.errors.read_text())  # fmt: skip
        good = "@fencepost.handler\ndef charge(record): pass\n"
        other = Handler(self, good)
        other.send("hello")
        self.assertEqual(other.process.wait(60), 1)
        self.assertEqual(other.errors.read_text(),
                         "fencepost: a line that is no request: Expecting value: line 1 column 1 "
                         "(char 0)\n")  # fmt: skip
        by_hand = Handler(self, good)
        master, terminal = pty.openpty()
        done = run(sys.executable, by_hand.path, stdin=terminal, check=False,
                   env={**os.environ, "PYTHONPATH": str(FOLDER)})  # fmt: skip
        os.close(master)
        os.close(terminal)
        self.assertEqual(done.returncode, 1)
        self.assertIn("is a handler: a fencepost pipeline starts it", done.stderr)

    def test_a_handler_that_ends_the_process_is_not_held_back(self):
        handler = Handler(self, """\
            import sys
            @fencepost.handler
            def charge(record):
                sys.exit(3)
        """)  # fmt: skip
        handler.send(json.dumps(request()))
        self.assertEqual((handler.line(), handler.process.wait(60)), ("", 3))


if __name__ == "__main__":
    unittest.main()
