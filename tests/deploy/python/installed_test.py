"""The module as pip installs it, with the project that `fencepost create python` writes."""

import os
import pathlib
import re
import shutil
import sys
import tempfile
import textwrap
import unittest

from support.processes import SOURCE, run
from support.python_module import FOLDER

VERSION = re.search(r"project\(fencepost VERSION (\S+)", (SOURCE / "CMakeLists.txt").read_text())[1]


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.site = cls.folder / "site"
        run(sys.executable, "-m", "pip", "install", "--quiet", "--no-build-isolation", "--no-index",
            "--disable-pip-version-check", f"--target={cls.site}", FOLDER)  # fmt: skip
        for name in ("charge.py", "test_charge.py"):
            shutil.copy(SOURCE / "config/examples" / name, cls.folder)

    def pytest(self, *words, check=True):
        # The plugin of cloudcoil needs more packages than there are here.
        return run(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:cloudcoil",
                   "-q", *words, cwd=self.folder, check=check,
                   env={**os.environ, "PYTHONPATH": str(self.site)})  # fmt: skip

    def test_it_is_of_the_programs_version_typed_and_without_dependencies(self):
        said = run(sys.executable, "-c", "import importlib.metadata as m; "
                   "print(m.version('fencepost'), m.requires('fencepost'))",
                   env={**os.environ, "PYTHONPATH": str(self.site)}).stdout  # fmt: skip
        self.assertEqual(said, f"{VERSION} None\n")
        self.assertTrue((self.site / "fencepost/py.typed").exists())

    def test_the_tests_of_the_example_pass_and_find_a_service_that_charges_twice(self):
        self.assertIn("6 passed", self.pytest("test_charge.py").stdout)
        test = (self.folder / "test_charge.py").read_text()
        forgets = self.folder / "test_forgets.py"
        forgets.write_text(test.replace("if record.id not in self.answers:", "if True:"))
        self.assertIn("took effect more than once", self.pytest(forgets, check=False).stdout)

    def test_a_process_that_the_service_kills_amid_a_call_is_started_again(self):
        (self.folder / "test_killed.py").write_text(textwrap.dedent("""\
            import http.server, json, threading

            def test_the_payment_is_charged_once(fencepost_process, fencepost_effects):
                charged = set()

                class Service(http.server.BaseHTTPRequestHandler):
                    def do_POST(self):
                        id = self.headers["Idempotency-Key"]
                        if id not in charged:
                            charged.add(id)
                            fencepost_effects.note(id, int(self.headers["Fencing-Token"]))
                            program.kill()
                            return
                        self.send_response(200)
                        self.end_headers()
                        self.wfile.write(json.dumps({"charge_id": "c", "status": "paid"}).encode())

                server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
                threading.Thread(target=server.serve_forever, daemon=True).start()
                url = f"http://127.0.0.1:{server.server_port}"
                program = fencepost_process("charge.py", batch=2, env={"PSP_URL": url})
                payments = [{"id": f"p-{n}", "value": {"cents": n}} for n in (1, 2, 3)]
                answers = program.bad_day(payments)
                assert [answer.value["cents"] for answer in answers.values()] == [1, 2, 3]
                fencepost_effects.assert_once(answers)
                server.shutdown()
        """))
        self.assertIn("1 passed", self.pytest("test_killed.py").stdout)

    def test_a_program_is_relative_to_the_tests_folder(self):
        tests = self.folder / "tests"
        tests.mkdir()
        (tests / "double.py").write_text(textwrap.dedent("""\
            import sys, fencepost
            @fencepost.handler
            def double(record):
                record.heartbeat()
                return [2 * record.value, *sys.argv[1:]]
            fencepost.run(double)
        """))
        (tests / "test_double.py").write_text(textwrap.dedent("""\
            import pathlib, sys
            def test_it(fencepost_process):
                program = fencepost_process("double.py")
                assert program.call(4).value == [8]
                assert program.heartbeats == 1
                path = pathlib.Path(__file__).parent / "double.py"
                assert fencepost_process([sys.executable, path, "x"]).call(4).value == [8, "x"]
        """))
        self.assertIn("1 passed", self.pytest("tests/test_double.py").stdout)


if __name__ == "__main__":
    unittest.main()
