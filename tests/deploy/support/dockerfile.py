"""The Dockerfile's last stage made real without a container engine: the root and the packages that
tests/support/fetch-root made by debootstrap and the stages' own RUN lines."""

import pathlib
import tempfile
import unittest

from support.processes import (APART, SOURCE, Contained, as_root, inside, require_namespaces, run,
                               wait_until)
from support.stages import stages


def kept(*argv: str) -> str:
    """A file of the cache, which ./dev test has made before the tests: see tests/support/fetch-root."""
    return run(SOURCE / "tests/support/fetch-root", *argv, limit=3600).stdout.strip()


def package(name: str) -> pathlib.Path:
    """The .deb of that name, as the build stage makes it of this checkout."""
    (found,) = pathlib.Path(kept("packages")).glob(f"{name}_*.deb")
    return found


# In namespaces of its own: the root read-only, a /proc, then the user, without any right.
_ENTER = """
mount --make-rprivate / && mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" &&
mount -t proc proc "$1/proc" && { [ -z "$2" ] || mount -t tmpfs tmpfs "$1/tmp"; } &&
root=$1 && shift 2 && cd / &&
exec chroot "$root" /usr/bin/setpriv --reuid "$1" --regid "$1" --clear-groups \
  --bounding-set=-all --no-new-privs --pdeathsig KILL "${@:2}"
"""


class Root:
    """A file system of fetch-root, in a temporary folder until the test class ends: the image's, with
    this checkout's package, or another, as it is kept."""

    def __init__(self, test_class: type[unittest.TestCase], *kind: str):
        require_namespaces()
        self.stage = stages()[-1]
        self.path = tempfile.mkdtemp(prefix="fencepost-root-")
        test_class.addClassCleanup(self._remove)
        run(*as_root("tar", "-C", self.path, "-xf", kept(*kind)), limit=200)
        run(*as_root("chmod", "755", self.path))
        run(*as_root("mkdir", self.path + "/src"))
        if not kind:
            self.add(package("fencepost"), "/src/fencepost.deb")
            self.change("dpkg", "-i", "/src/fencepost.deb")

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

    def change(self, *argv: str, **options):
        """Runs a command as root, in a root that it may write to."""
        return run(*as_root("chroot", self.path, "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
                            "LC_ALL=C.UTF-8", *argv), **options)  # fmt: skip

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
