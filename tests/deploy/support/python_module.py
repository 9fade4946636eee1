"""The Python package of handlers, from the checkout."""

import sys

from support.processes import SOURCE

FOLDER = SOURCE / "consumer" / "handlers" / "exec" / "python"
sys.path.insert(0, str(FOLDER))

from fencepost import testing  # noqa: E402  (after that path)

__all__ = ["FOLDER", "testing"]
