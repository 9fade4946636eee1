"""Certificates of a CA of one's own."""

import pathlib

from support.processes import run


class Authority:
    """A CA, and certificates of it for names."""

    def __init__(self, home: pathlib.Path):
        self._home, self.ca = home, home / "ca.crt"
        run("openssl", "req", "-x509", *self._new("ca"), "-subj", "/CN=ca", "-out", self.ca)

    def _new(self, name):
        return ("-newkey", "rsa:2048", "-nodes", "-days", "2",
                "-keyout", self._home / f"{name}.key")  # fmt: skip

    def sign(self, name: str, hosts: list[str]) -> tuple[pathlib.Path, pathlib.Path]:
        """(certificate, key)"""
        names = "subjectAltName=" + ",".join(f"DNS:{host}" for host in hosts)
        file = self._home / f"{name}.crt"
        run("openssl", "req", "-x509", *self._new(name), "-subj", f"/CN={name}", "-addext", names,
            "-addext", "basicConstraints=critical,CA:FALSE", "-CA", self.ca,
            "-CAkey", self._home / "ca.key", "-out", file)  # fmt: skip
        return file, self._home / f"{name}.key"
