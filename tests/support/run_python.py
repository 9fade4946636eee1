"""Runs the unittest tests of one folder; a folder without tests fails.

Called by run-python. tests/deploy is on the path, so `from support import …` works in tests.
"""

import os
import sys
import unittest


def main() -> int:
    folder, names = os.path.abspath(sys.argv[1]), sys.argv[2:]
    sys.path.insert(0, os.path.join(os.environ["FENCEPOST_SOURCE_DIR"], "tests", "deploy"))
    loader = unittest.TestLoader()
    if names:
        sys.path.insert(0, folder)
        suite = loader.loadTestsFromNames(names)
    else:
        suite = loader.discover(folder, pattern="*_test.py", top_level_dir=folder)
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    if result.testsRun == 0 and not result.skipped:
        print(f"no tests in {folder}", file=sys.stderr)
        return 1
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
