"""Reads a Dockerfile, and makes its last stage real without a container engine: a debootstrap root
in which the stage's own RUN lines ran."""

import dataclasses
import hashlib
import os
import re
import tempfile
import unittest

from support.processes import CACHE, SOURCE, as_root, run

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


def _make_root(folder: str):
    """Debian 12 as small as its slim image, with the names of this machine's network."""
    run(*as_root("debootstrap", "--variant=minbase", "bookworm", folder), limit=1200)
    for name in ("resolv.conf", "hosts"):
        run(*as_root("cp", "-L", f"/etc/{name}", f"{folder}/etc/{name}"))


def _carry_out(folder: str, line: str, work="/", limit=1200, **environment: str):
    """A RUN line."""
    clean = ["env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive"]
    clean += [f"{name}={value}" for name, value in environment.items()]
    run(*as_root("chroot", folder, *clean, "sh", "-ec", f"cd {work}; {line}"), limit=limit)


def _built_root(stage: Stage) -> str:
    """A tar file in the cache: Debian as in the stage's image, and its RUN lines carried out."""
    lines = stage.values("RUN")
    state = hashlib.sha256("\n".join([stage.image, *lines]).encode()).hexdigest()[:12]
    tar = CACHE / f"image-{state}.tar"
    if tar.exists():
        return str(tar)
    CACHE.mkdir(parents=True, exist_ok=True)
    root = tempfile.mkdtemp(prefix="fencepost-image-")
    try:
        _make_root(root)
        for line in lines:
            _carry_out(root, line)
        part = f"{tar}.{os.getpid()}"
        run(*as_root("tar", "--one-file-system", "-C", root, "-cf", part, "."), limit=200)
        run(*as_root("mv", part, str(tar)))
    finally:
        run(*as_root("rm", "-rf", "--one-file-system", root))
    return str(tar)


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


# In a mount namespace of its own: the root read-only, a /proc, then the user, without any right.
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
        self.stage = stages()[-1]
        self.path = tempfile.mkdtemp(prefix="fencepost-root-")
        test_class.addClassCleanup(
            lambda: run(*as_root("rm", "-rf", "--one-file-system", self.path))
        )
        run(*as_root("tar", "-C", self.path, "-xf", _built_root(self.stage)), limit=200)
        run(*as_root("chmod", "755", self.path))
        for folder in ("/etc/fencepost", "/src"):
            run(*as_root("mkdir", "-p", self.path + folder))

    def add(self, source, target: str):
        """Copies a file or folder to where the image, or a mount, would have it."""
        run(*as_root("cp", "-rT", str(source), self.path + target))
        run(*as_root("chmod", "-R", "a+rX", self.path + target))

    def command(self, *argv: str, tmpfs="") -> list[str]:
        """The command line that runs argv in the image: read-only, as its user. With tmpfs=/tmp
        there is a temporary folder, as docker run --tmpfs /tmp gives."""
        user = self.stage.values("USER")[-1]
        environment = self.stage.values("ENV")
        return as_root("unshare", "--mount", "bash", "-c", _ENTER, "enter", self.path, tmpfs, user,
                       "/usr/bin/env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
                       *environment, *argv)
