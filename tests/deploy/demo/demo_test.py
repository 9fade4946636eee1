"""The demo as a user sees it: in a terminal, in a pipe, stopped on the way.

FENCEPOST_WRITE_SCREENSHOTS=1 writes deploy/screenshots/demo.svg again, from this run.
"""

import json
import os
import pathlib
import re
import subprocess
import unittest
import xml.etree.ElementTree as ElementTree

import terminal
from support.alongside import alongside, wait_for_all
from support.fleet import folder
from support.processes import FENCEPOST, SOURCE, run

PICTURE = SOURCE / "deploy" / "screenshots" / "demo.svg"
LARGEST_PICTURE = 30_000
COLUMNS = 100
DEMO = (FENCEPOST, "demo")
KEYS = ["produced", "unique", "effects", "lost", "duplicated", "workers_killed", "workers_frozen",
        "lock_contended", "lock_expired", "fencing_rejected", "dedupe_skipped",
        "records_per_second"]  # fmt: skip
WORDS = ("N orders, one worker killed, one frozen while it held locks: none lost, none doubled.",
         "The frozen worker's N late writes were refused.")  # fmt: skip
OTHER_WORDS = {"The frozen worker's N late write was refused.": WORDS[1],
               "The frozen worker saw that its locks were over, and wrote nothing late.": WORDS[1]}
STORY = ["starting Kafka", "starting 5 Redis nodes", "starting 3 workers", "killed worker-",
         "froze worker-", "thawed worker-"]  # fmt: skip


def ending(lines: list[str]) -> tuple[list[str], dict]:
    """The two sentences, with N for each number, and the JSON, which a terminal wraps."""
    first = max(n for n, line in enumerate(lines) if line.startswith("{"))
    words = [re.sub(r"[\d,]*\d", "N", line) for line in lines[first - 2 : first]]
    return [OTHER_WORDS.get(one, one) for one in words], json.loads("".join(lines[first:]))


def lines_of(picture: str) -> list[str]:
    """The text of a picture, line by line."""
    lines = {}
    for text in ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}text"):
        lines.setdefault(float(text.get("y")), []).append(text.text)
    return [" ".join(lines[y]) for y in sorted(lines)]


class Demo(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.addClassCleanup(wait_for_all, cls)

    def temporary(self) -> tuple[pathlib.Path, dict]:
        """A folder for its files, to see that it leaves none."""
        made = folder(self)
        return made, {"TMPDIR": str(made)}

    def check_ending(self, lines, records):
        words, told = ending(lines)
        self.assertEqual(words, list(WORDS))
        self.assertEqual(list(told), KEYS)
        self.assertEqual((told["produced"], told["lost"], told["duplicated"]), (records, 0, 0))
        self.assertEqual(told["effects"], told["unique"])
        self.assertEqual((told["workers_killed"], told["workers_frozen"]), (1, 1))
        self.assertGreater(told["dedupe_skipped"], 0)

    @alongside
    def test_in_a_terminal_it_is_a_picture_and_the_last_lines_say_what_was_proved(self):
        home, variables = self.temporary()
        seen = terminal.Recording([*DEMO], COLUMNS, NO_COLOR="", **variables)
        self.assertEqual(seen.status, 0, seen.raw)
        lines = [line for line in seen.screen.lines() if line]
        self.check_ending(lines, 20_000)
        for words in (*STORY, "orders in the table"):
            self.assertEqual(sum(words in line for line in lines), 1, (words, lines))
        self.assertGreater(len(seen.frames), 20)
        self.assertLess(seen.longest_silence, 5, "a second, on a machine that does nothing else")
        self.assertIn("\x1b[31mkilled", seen.raw)
        self.assertEqual(list(home.iterdir()), [])
        drawn = terminal.svg(
            [("a moment after a worker was killed", seen.last_frame("killed worker-", "froze worker-")),
             ("the end", seen.screen.rows)], COLUMNS)  # fmt: skip
        if os.environ.get("FENCEPOST_WRITE_SCREENSHOTS") == "1":
            PICTURE.write_text(drawn)
        for picture in (drawn, PICTURE.read_text()):
            self.assertLess(len(picture), LARGEST_PICTURE)
            shown = lines_of(picture)
            self.check_ending(shown, 20_000)
            self.assertIn("held", next(line for line in shown if re.match(r"worker-\d killed", line)))

    @alongside
    def test_in_a_pipe_it_is_lines_and_few_of_them(self):
        home, variables = self.temporary()
        done = run(*DEMO, "--records", "8000", "--seed", "7", limit=200, env={**os.environ, **variables})
        lines = done.stdout.splitlines()
        self.check_ending(lines, 8000)
        self.assertNotIn("\x1b", done.stdout)
        self.assertEqual([s for s in STORY if s not in done.stdout], [])
        ages = [int(age) for age in re.findall(r"(?m)^ *(\d+) s  [\d,]+ of ", done.stdout)]
        self.assertEqual(ages, sorted(set(ages)), "one a second at most")
        self.assertEqual(list(home.iterdir()), [])

    @alongside
    def test_stopped_by_ctrl_c_it_leaves_terminal_and_files_as_they_were(self):
        home, variables = self.temporary()
        seen = terminal.Recording([*DEMO], columns=50, NO_COLOR="1", **variables,
                                  stop=lambda screen: "1 s  waiting" in "\n".join(screen.lines()))
        self.assertEqual(seen.status, 1, seen.raw)
        self.assertTrue(seen.settings_kept)
        self.assertIn("fencepost: demo: interrupted", seen.raw)
        self.assertEqual(set(re.findall(r"\x1b\[\d*([A-Za-z])", seen.raw)), {"A", "J"}, "no color")
        self.assertEqual(list(home.iterdir()), [])
        self.assertEqual(run("pgrep", "-f", str(home), check=False).stdout, "")

    @alongside
    def test_it_ends_when_nobody_reads_what_it_says(self):
        home, variables = self.temporary()
        with subprocess.Popen(DEMO, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env={**os.environ, **variables}) as process:  # fmt: skip
            process.stdout.readline()
            process.stdout.close()
            self.assertEqual(process.wait(timeout=100), 1)
            self.assertIn(b"interrupted", process.stderr.read())
        self.assertEqual(list(home.iterdir()), [])

    def test_too_few_workers_are_a_usage_error(self):
        self.assertEqual(run(FENCEPOST, "demo", "--workers", "2", check=False).returncode, 2)


if __name__ == "__main__":
    unittest.main()
