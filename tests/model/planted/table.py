"""The planted bugs, and what caught each: table.py BUILD_FOLDER RESULTS (of ctest --output-junit).

Ends with 1 where a bug survived, or a test of one could not be judged.
"""
import json
import subprocess
import sys
import xml.etree.ElementTree as xml

PREFIX = "model/planted/"


def commands(build):
    """What each test runs, by its name: [PROGRAM, BUG] or [PROGRAM, BUG, TEST]."""
    told = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], check=True,
                          capture_output=True, text=True)
    return {test["name"]: test.get("command", [test["name"]])
            for test in json.loads(told.stdout)["tests"] if test["name"].startswith(PREFIX)}


def main(build, results):
    runs = commands(build)
    rows, survivors = [], 0
    for case in xml.parse(results).getroot().iter("testcase"):
        name = case.get("name")
        program, *arguments = runs[name]
        program = program.rsplit("/", 1)[-1]
        caught = case.get("status") == "run" and case.find("failure") is None
        survivors += not caught
        where = program.removeprefix("planted_").replace("_", "/", 1)
        if len(arguments) < 2:
            where, arguments = "model/simulator", arguments + ["its invariants"]
        rows.append((name.removeprefix(PREFIX), where if caught else "NOT CAUGHT", arguments[1],
                     f"{float(case.get('time')):.1f}"))
    rows.sort()
    rows.insert(0, ("bug", "caught by", "test", "s"))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths)]
        print("  ".join(cells + [row[3].rjust(6)]))
    bugs = {run[1] for run in runs.values() if len(run) > 1}
    print(f"{len(bugs)} bugs in {len(rows) - 1} runs, {survivors} not caught")
    return survivors > 0 or len(rows) - 1 != len(runs)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
