"""The stand-in for a worker that tests of handlers use."""

import pathlib
import tempfile
import textwrap
import unittest

from support.python_module import FOLDER, testing

import fencepost


class BadDay(unittest.TestCase):
    def calls(self, batch, records, answer=lambda record: None) -> list[list[tuple[str, int, int]]]:
        """What bad_day calls: (id, token, attempt) of each record, call by call."""
        seen = []

        @fencepost.batch_handler
        def note(records):
            seen.append([(record.id, record.token, record.attempt) for record in records])
            return [answer(record) for record in records]

        worker = testing.InProcess(note, batch=batch)
        self.answers = worker.bad_day(records)
        worker.close()
        return seen

    def test_a_record_is_killed_answered_repeated_and_late(self):
        self.assertEqual(self.calls(None, [{"id": "a"}, {"id": "b"}]), [
            [("a", 1, 1)], [("a", 2, 1)], [("a", 3, 1)], [("a", 1, 1)],
            [("b", 4, 1)], [("b", 5, 1)], [("b", 6, 1)], [("b", 4, 1)],
        ])  # fmt: skip
        self.assertEqual(self.calls(2, [{"id": "a"}, {"id": "b"}]), [
            [("a", 1, 1), ("b", 2, 1)], [("a", 3, 1), ("b", 4, 1)],
            [("a", 5, 1), ("b", 6, 1)], [("a", 1, 1), ("b", 2, 1)],
        ])  # fmt: skip

    def test_a_failure_is_retried_with_a_higher_token_unless_it_is_final(self):
        def answer(record):
            if record.id == "c":
                return fencepost.Reject("no")
            return fencepost.Retry("not yet") if record.attempt < 3 and record.id == "b" else 1

        calls = self.calls(3, [{"id": id} for id in "abc"], answer)
        self.assertEqual(calls[1:4], [[("a", 4, 1), ("b", 5, 1), ("c", 6, 1)], [("b", 7, 2)],
                                      [("b", 8, 3)]])  # fmt: skip
        self.assertEqual([self.answers["b"].value, self.answers["c"].error], [1, "no"])
        calls = self.calls(None, [{"id": "a"}], lambda record: ValueError("always"))
        self.assertEqual([attempt for ((_, _, attempt),) in calls], [1, *range(1, 6), *range(1, 6), 1])
        self.assertEqual(self.answers["a"].error, "ValueError: always")

    def test_a_service_without_the_checks_is_found_out(self):
        for once, falls in ((True, True), (True, False), (False, True), (False, False)):
            effects = testing.Effects()
            done, last = set(), {}

            @fencepost.handler
            def charge(record):
                id = record.id
                if (once or id not in done) and (falls or record.token >= last.get(id, 0)):  # noqa: B023
                    effects.note(id, record.token)  # noqa: B023
                done.add(id)  # noqa: B023
                last[id] = record.token  # noqa: B023

            worker = testing.InProcess(charge)
            worker.bad_day([{"id": "a"}, {"id": "b"}])
            checks = {effects.assert_once: once, effects.assert_tokens_never_fall: once and falls}
            for check, is_broken in checks.items():
                with self.subTest(once=once, falls=falls, check=check.__name__):
                    if is_broken:
                        self.assertRaisesRegex(AssertionError, "a.*took effect|took effect.*a", check)
                    else:
                        check()
        effects.assert_once(["a", "b"])
        for ids, message in (["a"], "'b'.*which nobody"), (["a", "b", "c"], "no effect of .'c'"):
            self.assertRaisesRegex(AssertionError, message, effects.assert_once, ids)

    def test_a_token_is_never_lower_than_one_before(self):
        tokens = []

        @fencepost.handler
        def charge(record):
            tokens.append(record.token)

        worker = testing.InProcess(charge)
        worker.call(token=50)
        worker.call()
        worker.bad_day([{"token": 60}])
        self.assertEqual(tokens, [50, 51, 60, 61, 62, 60])

    def test_the_records_of_a_batch_that_died_are_tried_alone(self):
        with tempfile.TemporaryDirectory() as folder:  # where nothing hides a module of its name
            program = pathlib.Path(folder) / "charge.py"
            program.write_text(textwrap.dedent("""\
                import os, fencepost
                @fencepost.batch_handler
                def charge(records):
                    if any(record.value == "deadly" for record in records):
                        os._exit(1)
                    return [len(records) for _ in records]
                fencepost.run(charge)
            """))
            worker = testing.Process(str(program), batch=3, env={"PYTHONPATH": str(FOLDER)})
            self.addCleanup(worker.close)
            answers = worker.calls([{}, {"value": "deadly"}, {}])
            self.assertEqual([one.values for one in answers], [[1], [], [1]])
            self.assertEqual([one.error_class for one in answers], [None, "exec", None])

    def test_bytes_come_as_the_worker_gives_them(self):
        @fencepost.handler
        def show(record):
            return repr([record.value, record.key, record.headers])

        worker = testing.InProcess(show)
        for given in (b"\xff", b"text", "text"):
            seen = given if given == b"\xff" else "text"
            answer = worker.call(given, key=given, headers={"a": given, "b": None})
            self.assertIn(answer.value, (repr([seen, seen, {"a": seen, "b": None}]),
                                         repr([seen, seen, {"b": None, "a": seen}])))  # fmt: skip

    def test_no_row_is_an_empty_list(self):
        @fencepost.handler
        def skip(record):
            raise fencepost.Skip

        self.assertEqual(testing.InProcess(skip).call().values, [])

    def test_what_breaks_the_protocol_fails_the_test(self):
        replies = {
            "hello": "what is no reply goes to stderr",
            '{"record_id": "b", "value": 1}': "the records were",
            '{"record_id": "a"}': "a reply has one of",
            '{"record_id": "a", "value": 1, "error": "x"}': "a reply has one of",
            '{"error": "x", "class": "Two words"}': "no class of a failure",
            '{"error": "x", "retry": "no"}': "retry is neither",
            '{"error": 5}': "error is no text",
            '{"error": "x", "class": "cancelled"}': "no class of a failure",
            '{"value_text": 5}': "value_text is no text",
            '{"values": 5}': "values is no list",
            '{"value": {"a": 1, "a": 2}}': "a name twice",
            '{"value": NaN}': "NaN is not JSON",
            '{"value": ' + "[" * 201 + "]" * 201 + "}": "deeper than 200 levels",
        }
        for reply, message in replies.items():
            program = testing.Process(["sh", "-c", 'read -r line; printf "%s\\n" "$0"', reply])
            self.addCleanup(program.close)
            self.assertRaisesRegex(AssertionError, message, program.call, id="a")
        silent = testing.Process(["sleep", "1000"], timeout=0)
        self.addCleanup(silent.close)
        self.assertRaisesRegex(AssertionError, "no answer within", silent.call)
        gone = testing.Process(["sh", "-c", "read -r line; exit 3"])
        self.addCleanup(gone.close)
        self.assertEqual(gone.call().error_class, "exec")
        self.assertRaisesRegex(AssertionError, "a record has no", gone.call, vlaue=1)


if __name__ == "__main__":
    unittest.main()
