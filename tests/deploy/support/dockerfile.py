"""Reads a Dockerfile, and makes its last stage real without a container engine: the root that
tests/support/fetch-root made by debootstrap and the stage's own RUN lines."""

import dataclasses
import re
import tempfile
import unittest

from support.processes import (APART, SOURCE, Contained, as_root, inside, require_namespaces, run,
                               wait_until)

DOCKERFILE = SOURCE / "deploy" / "Dockerfile"


@dataclasses.dataclass
class Stage:
    image: str
    name: str
    instructions: list[tuple[str, str]]  # ("RUN", "apt-get update && …")

    def values(self, instruction: str) -> list[str]:
        return [value for word, value in self.instructions if word == instruction]

    def packages(self) -> list[str]:
        """What its apt-get install lines name."""
        found = []
        for line in self.values("RUN"):
            for command in re.split(r"&&|;", line):
                words = command.split()
                if words[:2] == ["apt-get", "install"]:
                    found += [word for word in words[2:] if not word.startswith("-")]
        return found


def stages(path=DOCKERFILE) -> list[Stage]:
    text = re.sub(r"(?m)^\s*#.*\n", "", path.read_text()).replace("\\\n", " ")
    found: list[Stage] = []
    for line in text.splitlines():
        if not line.strip():
            continue
        word, _, value = line.strip().partition(" ")
        if word == "FROM":
            image, _, name = value.partition(" AS ")
            found.append(Stage(image.strip(), name.strip(), []))
        else:
            found[-1].instructions.append((word, " ".join(value.split())))
    return found


def _kept(*argv: str) -> str:
    """A tar file of the cache, which ./dev test has made before the tests."""
    return run(SOURCE / "tests/support/fetch-root", *argv, limit=1800).stdout.strip()


def _make_root(folder: str):
    """The bare Debian, with the names of this machine's network."""
    run(*as_root("tar", "-C", folder, "-xf", _kept("base")), limit=200)
    for name in ("resolv.conf", "hosts"):
        run(*as_root("cp", "-L", f"/etc/{name}", f"{folder}/etc/{name}"))


def _carry_out(folder: str, line: str, work="/", limit=1200, **environment: str):
    """A RUN line."""
    clean = ["env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive"]
    clean += [f"{name}={value}" for name, value in environment.items()]
    script = f"cd {work}; {line}"
    run(*as_root(*APART, "chroot", folder, *clean, "sh", "-ec", script), limit=limit)


def build_program(target: str):
    """Carries out the build stage, from the sources that .dockerignore lets through, and copies the
    program that it makes to `target`. Takes as long as a build on this machine."""
    stage = stages()[0]
    root = tempfile.mkdtemp(prefix="fencepost-build-")
    arguments: dict[str, str] = {}
    try:
        _make_root(root)
        work = "/"
        for word, value in stage.instructions:
            if word == "WORKDIR":
                work = value
                run(*as_root("mkdir", "-p", root + work))
            elif word == "ARG":
                name, _, default = value.partition("=")
                arguments[name] = default
            elif word == "COPY":
                assert value == ". .", value
                for line in (SOURCE / ".dockerignore").read_text().split():
                    if line.startswith("!"):
                        run(*as_root("cp", "-r", str(SOURCE / line[1:]), root + work))
            else:
                assert word == "RUN", word
                _carry_out(root, value, work, limit=7200, **arguments)
        source, _ = stages()[-1].values("COPY")[0].removeprefix("--from=build ").split()
        run(*as_root("cp", root + source, target))
    finally:
        run(*as_root("rm", "-rf", "--one-file-system", root))


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
        run(*as_root("tar", "-C", self.path, "-xf", _kept()), limit=200)
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
