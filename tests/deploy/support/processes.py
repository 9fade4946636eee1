"""Processes that cannot outlive the test, free ports, and waiting for a condition."""

import ctypes
import functools
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

SOURCE = pathlib.Path(os.environ["FENCEPOST_SOURCE_DIR"])
FENCEPOST = os.environ["FENCEPOST_BINARY"]
CACHE = pathlib.Path(
    os.environ.get("FENCEPOST_CACHE") or pathlib.Path.home() / ".cache" / "fencepost"
)
# How often ./dev torture deploy goes round; 0 in ./dev test.
TORTURE = int(os.environ.get("FENCEPOST_TORTURE", "0"))

long_run = unittest.skipUnless(TORTURE, "runs by ./dev torture deploy")


def as_root(*argv: str) -> list[str]:
    """The command line that runs argv as root: with sudo where we are not."""
    return list(argv) if os.geteuid() == 0 else ["sudo", "-n", *argv]


def run(*argv, limit=120, check=True, **options) -> subprocess.CompletedProcess:
    """Runs to the end and returns code and text; with check a failure shows what was said."""
    done = subprocess.run(
        [str(a) for a in argv], capture_output=True, text=True, timeout=limit, **options
    )
    if check and done.returncode != 0:
        raise AssertionError(f"{argv}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def sanitized() -> bool:
    """Whether the program under test was built with a sanitizer."""
    return "san.so" in run("ldd", FENCEPOST).stdout


def wait_until(condition, limit=20.0, what="the condition"):
    """Polls until condition() is true and returns its value. `limit`: the seconds that it may take on
    a machine that has nothing else to do; a busy one gets three times as long."""
    limit *= 3
    deadline = time.monotonic() + limit
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {limit} s for {what}")
        time.sleep(0.05)
    return value


def _ephemeral_start() -> int:
    return int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])


_reserved = []  # abstract sockets, as tests/support/process.cc has them: a port stays ours


def free_port() -> int:
    """A port on 127.0.0.1 below the ephemeral range, reserved among the tests of this machine."""
    for _ in range(1000):
        port = random.randrange(10000, _ephemeral_start())
        reservation = socket.socket(socket.AF_UNIX)
        try:
            reservation.bind(f"\0fencepost-test-port-{port}")
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(("", port))
        except OSError:
            reservation.close()
            continue
        _reserved.append(reservation)
        return port
    raise AssertionError("no free port")


def _die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Process:
    """A child that gets SIGKILL when the test (its addCleanup) or this program ends."""

    def __init__(self, test: unittest.TestCase, argv, env=None, **options):
        self._log = tempfile.TemporaryFile("w+b")
        self._process = subprocess.Popen(
            [str(a) for a in argv],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(env or {})},
            preexec_fn=_die_with_parent,
            **options,
        )
        test.addCleanup(self.kill)

    @property
    def pid(self) -> int:
        return self._process.pid

    def running(self) -> bool:
        return self._process.poll() is None

    def send(self, sig=signal.SIGTERM):
        if self.running():
            self._process.send_signal(sig)

    def kill(self):
        if self.running():
            self._process.kill()
        self._process.wait()

    def stop(self, sig=signal.SIGTERM, limit=20.0):
        """Lets it clean up after itself; whoever does not end by then is killed."""
        self.send(sig)
        try:
            self._process.wait(timeout=limit)
        except subprocess.TimeoutExpired:
            self.kill()

    def wait(self, limit=30.0) -> int:
        """The exit code, 128 + n for signal n."""
        code = self._process.wait(timeout=limit)
        return code if code >= 0 else 128 - code

    def output(self) -> str:
        return os.pread(self._log.fileno(), 1 << 24, 0).decode(errors="replace")


APART = ("unshare", "--mount", "--pid", "--fork", "--kill-child")


class Contained(Process):
    """What a command line with APART runs: process 1 of a PID namespace, which takes all others
    of it along. unshare stays outside, waits for it, and forwards no signal."""

    def _first(self) -> int | None:
        """The pid that process 1 has out here."""
        for path in pathlib.Path("/proc").glob("[0-9]*/status"):
            try:
                status = dict(re.findall(r"(?m)^(PPid|NSpid):\s+(.*)$", path.read_text()))
            except OSError:
                continue  # gone meanwhile
            pids = status["NSpid"].split()
            if status["PPid"] == str(self.pid) and pids[1:] == ["1"]:
                return int(pids[0])
        return None

    def send(self, sig=signal.SIGTERM):
        """Once it is there; it may have ended meanwhile."""
        wait_until(lambda: self._first() or not self.running(), what="process 1 of the namespace")
        if first := self._first():
            run(*as_root("kill", f"-{int(sig)}", str(first)), check=False)

    def kill(self):
        """Ends when the namespace has."""
        if self.running() and (first := self._first()):
            run(*as_root("kill", "-KILL", str(first)), check=False)
            try:
                self._process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                pass
        super().kill()


@functools.cache
def _no_namespaces() -> str:
    done = run(*as_root(*APART, "true"), check=False)
    if done.returncode == 0:
        return ""
    why = f"the image's root needs namespaces (CAP_SYS_ADMIN is missing?): {done.stderr.strip()}"
    print(f"\nNOT TESTED HERE: {why}", file=sys.stderr, flush=True)
    return why


def require_namespaces():
    """Ends the test or class where unshare is refused: red in CI (CI=true), skipped by hand."""
    if why := _no_namespaces():
        raise AssertionError(why) if os.environ.get("CI") == "true" else unittest.SkipTest(why)


def inside(folder) -> list[str]:
    """The living processes whose root is at or below the folder, as `PID NAME`."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            root, name = os.readlink(path / "root"), (path / "comm").read_text().strip()
        except OSError:
            continue  # gone meanwhile, or a kernel thread
        if pathlib.Path(root).is_relative_to(folder):
            found.append(f"{path.name} {name}")
    return found


def http_get(url: str, limit=5.0) -> tuple[int, str]:
    """(status, body); status 0 when nobody answers."""
    try:
        with urllib.request.urlopen(url, timeout=limit) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""
