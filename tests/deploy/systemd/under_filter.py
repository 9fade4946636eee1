"""under_filter.py UNIT_FILE COMMAND...: runs a command under the system call filters that systemd would
set up for the unit. For Debian's own Python with python3-seccomp; systemd itself need not run."""

import errno
import os
import pathlib
import subprocess
import sys

import seccomp

PROT_WRITE, PROT_EXEC = 2, 4
SHM_EXEC = 0o100000


def settings(unit: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    text = pathlib.Path(unit).read_text().replace("\\\n", " ")
    for line in text.splitlines():
        key, equals, value = line.partition("=")
        if equals and not line.startswith(("#", ";", "[")):
            found.setdefault(key, []).append(value)
    return found


def calls_of(group: str) -> set[str]:
    """System calls of a name, or of a group such as @system-service, as this systemd knows it."""
    if not group.startswith("@"):
        return {group}
    listed = subprocess.run(["systemd-analyze", "syscall-filter", "--no-pager", group],
                            check=True, capture_output=True, text=True).stdout.splitlines()
    names = [line.strip() for line in listed if line.startswith("    ")]
    names = [name for name in names if not name.startswith("#")]
    return set().union(*(calls_of(name) for name in names))


def allowed_calls(filters: list[str]) -> set[str]:
    allowed: set[str] = set(calls_of("@default"))
    for line in filters:
        calls = set().union(*(calls_of(word) for word in line.removeprefix("~").split()))
        allowed = allowed - calls if line.startswith("~") else allowed | calls
    return allowed


def load_calls(unit: dict[str, list[str]]):
    code = getattr(errno, unit["SystemCallErrorNumber"][0])
    calls = seccomp.SyscallFilter(seccomp.ERRNO(code))
    # systemd lets through what it needs itself to start the program.
    for name in allowed_calls(unit["SystemCallFilter"]) | {"execve", "exit_group"}:
        try:
            calls.add_rule(seccomp.ALLOW, name)
        except (RuntimeError, ValueError):
            pass  # not on this architecture
    calls.load()


def load_no_new_code():
    """MemoryDenyWriteExecute."""
    code = seccomp.SyscallFilter(seccomp.ALLOW)
    both = PROT_WRITE | PROT_EXEC
    refuse = seccomp.ERRNO(errno.EPERM)
    code.add_rule(refuse, "mmap", seccomp.Arg(2, seccomp.MASKED_EQ, both, both))
    for name in ("mprotect", "pkey_mprotect"):
        code.add_rule(refuse, name, seccomp.Arg(2, seccomp.MASKED_EQ, PROT_EXEC, PROT_EXEC))
    code.add_rule(refuse, "shmat", seccomp.Arg(2, seccomp.MASKED_EQ, SHM_EXEC, SHM_EXEC))
    code.load()


def load_families(allowed: list[str]):
    """RestrictAddressFamilies."""
    import socket

    numbers = {getattr(socket, name) for name in allowed}
    families = seccomp.SyscallFilter(seccomp.ALLOW)
    for number in range(64):
        if number not in numbers:
            families.add_rule(seccomp.ERRNO(errno.EAFNOSUPPORT), "socket",
                              seccomp.Arg(0, seccomp.EQ, number))
    families.load()


def main():
    unit = settings(sys.argv[1])
    if unit["MemoryDenyWriteExecute"] == ["yes"]:
        load_no_new_code()
    load_families(unit["RestrictAddressFamilies"][0].split())
    load_calls(unit)
    os.execvp(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
