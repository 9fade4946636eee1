"""The handlers in other languages that the page of the protocol links."""

import pathlib
import shutil
import tempfile
import unittest

from support.processes import SOURCE, run
from support.python_module import testing

EXAMPLES = SOURCE / "consumer/handlers/exec/examples"


def needs(program: str):
    return unittest.skipUnless(shutil.which(program), f"NOT TESTED HERE: no {program}")


class Examples(unittest.TestCase):
    def check(self, command: list[str]):
        for batch in (None, 2):
            program = testing.Process(command, batch=batch)
            self.addCleanup(program.close)
            records = [{"id": f"p-{n}", "value": {"amount": n}} for n in range(5)]
            self.assertEqual([answer.value for answer in program.calls(records)],
                             [{"order": f"p-{n}", "cents": 100 * n} for n in range(5)])  # fmt: skip
            refused = program.call(None)
            self.assertEqual((refused.error_class, refused.retry), ("no_payment", False))
            program.bad_day(records)

    @needs("node")
    def test_node_follows_the_protocol(self):
        self.check(["node", str(EXAMPLES / "handler.js")])

    @needs("go")
    def test_go_follows_the_protocol(self):
        with tempfile.TemporaryDirectory() as folder:
            run("go", "build", "-o", folder + "/handler", EXAMPLES / "handler.go", limit=300)
            self.check([str(pathlib.Path(folder, "handler"))])


if __name__ == "__main__":
    unittest.main()
