"""The Dockerfile's last stage made real without a container engine: the root and the worker that
tests/support/fetch-root made by debootstrap and the stages' own RUN lines."""

import tempfile
import unittest

from support.processes import (APART, SOURCE, Contained, as_root, inside, require_namespaces, run,
                               wait_until)
from support.stages import stages


def kept(*argv: str) -> str:
    """A file of the cache, which ./dev test has made before the tests: see tests/support/fetch-root."""
    return run(SOURCE / "tests/support/fetch-root", *argv, limit=3600).stdout.strip()


def image_worker() -> str:
    """The program that the build stage makes."""
    return kept("worker")


# In namespaces of its own: the root read-only, a /proc, then the user, without any right.
_ENTER = """
mount --make-rprivate / && mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" &&
mount -t proc proc "$1/proc" && { [ -z "$2" ] || mount -t tmpfs tmpfs "$1/tmp"; } &&
root=$1 && shift 2 && cd / &&
exec chroot "$root" /usr/bin/setpriv --reuid "$1" --regid "$1" --clear-groups \
  --bounding-set=-all --no-new-privs --pdeathsig KILL "${@:2}"
"""


class Root:
    """The image's file system, in a temporary folder until the test class ends."""

    def __init__(self, test_class: type[unittest.TestCase]):
        require_namespaces()
        self.stage = stages()[-1]
        self.path = tempfile.mkdtemp(prefix="fencepost-root-")
        test_class.addClassCleanup(self._remove)
        run(*as_root("tar", "-C", self.path, "-xf", kept()), limit=200)
        run(*as_root("chmod", "755", self.path))
        for folder in ("/etc/fencepost", "/src"):
            run(*as_root("mkdir", "-p", self.path + folder))

    def _remove(self):
        """Of a class that ended its processes: none is left that runs in here."""
        try:
            wait_until(lambda: not inside(self.path), 10, "the processes in the root to end")
        except AssertionError as left:
            raise AssertionError(f"left behind: {inside(self.path)}") from left
        finally:
            run(*as_root("rm", "-rf", "--one-file-system", self.path))

    def add(self, source, target: str):
        """Copies a file or folder to where the image, or a mount, would have it."""
        run(*as_root("cp", "-rT", str(source), self.path + target))
        run(*as_root("chmod", "-R", "a+rX", self.path + target))

    def command(self, *argv: str, tmpfs="") -> list[str]:
        """The command line that runs argv in the image: read-only, as its user. With tmpfs=/tmp
        there is a temporary folder, as docker run --tmpfs /tmp gives."""
        user = self.stage.values("USER")[-1]
        environment = self.stage.values("ENV")
        return as_root(*APART, "bash", "-c", _ENTER, "enter", self.path, tmpfs, user,
                       "/usr/bin/env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
                       *environment, *argv)

    def start(self, test, *argv: str) -> Contained:
        return Contained(test, self.command(*argv))
