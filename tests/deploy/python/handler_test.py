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


def batch(*records: dict) -> str:
    return json.dumps({"batch": records})


class Handler:
    """A program in a folder of its own."""

    def __init__(self, test: unittest.TestCase, body: str):
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
                env={**os.environ, "PYTHONPATH": str(FOLDER)})  # fmt: skip
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
            ('throw(fencepost.Retry("x", class_="Not a word"))',
             {"error": "ValueError: class_ is a word of a-z and _, or an HTTP status: "
                       "not 'Not a word'"}),
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
import decimal, json
def throw(error):
    raise error
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
        for number in ("0.1", "1.50", "12345678901234567.123456789012", "1E+2", "1e400", "-0.0",
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


class Outside(unittest.TestCase):
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
