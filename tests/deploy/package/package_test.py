"""The Debian packages: made of the sources that .dockerignore lets through, judged by lintian; and those
of deploy/Dockerfile installed, used and removed on a Debian of debootstrap."""

import hashlib
import json
import os
import pathlib
import re
import sys
import tempfile
import unittest

from support.dockerfile import Root, package
from support.processes import SOURCE, run

VERSION = re.search(r"project\(fencepost VERSION (\S+)", (SOURCE / "CMakeLists.txt").read_text())[1]
PROJECT = """\
cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES CXX)
find_package(fencepost {version} CONFIG REQUIRED COMPONENTS locking)
add_executable(user user.cc)
target_link_libraries(user PRIVATE fencepost::locking)
"""
USER = """\
#include <locking/locking.h>

#include <cstdio>

int main() {
  using namespace fencepost::locking;
  const auto lock = QuorumLock::Connect({.redis = {.nodes = {"127.0.0.1:1"}}});
  std::puts(lock && !(*lock)->WaitReady(Millis(100)) ? "no quorum" : "?");
}
"""


class Made(unittest.TestCase):
    """For the Debian that the tests run on."""

    @classmethod
    def setUpClass(cls):
        cls.folder = SOURCE / "build" / "package-test"  # what is compiled there is kept
        cls.folder.mkdir(parents=True, exist_ok=True)
        for old in cls.folder.iterdir():
            if old.name != "build":
                run("rm", "-r", old)
        allowed = (SOURCE / ".dockerignore").read_text().split()
        names = [line[1:] for line in allowed if line.startswith("!")]
        run("cp", "-r", "--parents", "--preserve=timestamps", *names, cls.folder, cwd=SOURCE)
        cls.sums = cls.make()

    @classmethod
    def make(cls) -> dict[str, str]:
        # Many sources are compiled as one, behind the tests that measure time.
        run("nice", "-n5", cls.folder / "deploy/package/make", limit=3000,
            env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"})  # fmt: skip
        cls.packages = sorted((cls.folder / "build/packages").iterdir())
        return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in cls.packages}

    def test_they_are_three_and_packaging_once_more_gives_the_same_bytes(self):
        self.assertEqual(
            {name.split("_")[0] for name in self.sums},
            {"fencepost", "fencepost-dbgsym", "fencepost-locking-dev"},
        )
        self.assertEqual(self.make(), self.sums)

    def test_nothing_in_them_names_the_folder_of_the_build(self):
        for one in self.packages:
            with tempfile.TemporaryDirectory() as content:
                run("dpkg-deb", "-x", one, content)
                run("dpkg-deb", "-e", one, content + "/DEBIAN")
                found = run("grep", "-rlaF", self.folder.name, content, check=False)
                self.assertEqual(found.stdout, "", one.name)
                self.assertEqual(found.returncode, 1, found.stderr)

    def test_lintian_finds_no_error(self):
        run("lintian", "--allow-root", "--fail-on", "error", *self.packages, limit=300)

    def test_the_program_is_hardened(self):
        (main,) = [p for p in self.packages if p.name.startswith("fencepost_")]
        with tempfile.TemporaryDirectory() as content:
            run("dpkg-deb", "-x", main, content)
            program = content + "/usr/bin/fencepost"
            said = run("readelf", "-hldW", "--dyn-syms", program).stdout
        for sign in (r"Type:\s+DYN", r"GNU_RELRO", r"BIND_NOW", r"GNU_STACK.* RW ",
                     r"__stack_chk_fail", r"__memcpy_chk"):  # fmt: skip
            self.assertRegex(said, sign)

    def test_python_finds_the_module_and_pytest_its_fixtures(self):
        (main,) = [p for p in self.packages if p.name.startswith("fencepost_")]
        program = ("import importlib.metadata as m, fencepost; d = m.distribution('fencepost'); "
                   "print(d.version, *d.entry_points, fencepost.__file__)")  # fmt: skip
        with tempfile.TemporaryDirectory() as content:
            run("dpkg-deb", "-x", main, content)
            site = content + "/usr/lib/python3/dist-packages"
            said = run(sys.executable, "-c", program, env={**os.environ, "PYTHONPATH": site}).stdout
        self.assertIn(f"{VERSION} EntryPoint(name='fencepost', value='fencepost.pytest_plugin', "
                      "group='pytest11')", said)  # fmt: skip
        self.assertIn(f"{site}/fencepost/__init__.py", said)

    def test_the_bill_of_materials_names_the_libraries_that_the_package_depends_on(self):
        (main,) = [p for p in self.packages if p.name.startswith("fencepost_")]
        with tempfile.TemporaryDirectory() as content:
            run("dpkg-deb", "-x", main, content)
            file = pathlib.Path(content, "usr/share/doc/fencepost/fencepost.spdx.json")
            bill = json.loads(file.read_text())
        named = {p["name"]: p for p in bill["packages"]}
        depends = run("dpkg-deb", "-f", main, "Depends").stdout
        needed = set(re.findall(r"(?:^|, )([\w.+-]+)", depends))
        self.assertGreater(len(needed), 10)
        # A name of the library's interface (libspdlog1.10-fmt9) is one that a package provides.
        libraries = named.keys() - {"fencepost"}
        provided = run("dpkg-query", "-W", "-f=${Provides}, ", *libraries).stdout
        self.assertEqual(needed - named.keys() - set(re.findall(r"[\w.+-]+", provided)), set())
        self.assertIn("nlohmann-json3-dev", named, "headers that are compiled in")
        for one in named.values():
            self.assertTrue(one["versionInfo"], one["name"])
        ids = {p["SPDXID"] for p in bill["packages"]}
        self.assertEqual({r["relatedSpdxElement"] for r in bill["relationships"]}, ids)
        self.assertEqual(named["libhiredis-dev"]["licenseDeclared"], "BSD-3-Clause")


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = Root(cls, "user")
        cls.before = cls.files()
        cls.names = ("fencepost", "fencepost-locking-dev")
        for name in cls.names:
            cls.root.add(package(name), f"/src/{name}.deb")
        cls.install()

    @classmethod
    def install(cls):
        cls.root.change("dpkg", "-i", *(f"/src/{name}.deb" for name in cls.names))

    @classmethod
    def files(cls) -> set[str]:
        """All but what dpkg and caches write."""
        skipped = [word for path in ("/src", "/tmp", "/var/cache", "/var/lib/dpkg", "/var/log")
                   for word in ("-path", path, "-prune", "-o")]  # fmt: skip
        found = cls.root.change("find", "/", "-xdev", *skipped, "-print")
        return set(found.stdout.splitlines())

    def as_user(self, *argv, **options):
        return run(*self.root.command(*argv, tmpfs="/tmp"), **options)

    def test_the_program_is_of_this_version_and_has_a_page_for_each_command(self):
        self.assertIn(f"fencepost {VERSION} (", self.as_user("fencepost", "version").stdout)
        said = self.as_user("fencepost", "--help").stdout
        commands = re.findall(r"(?m)^  (\w+)  ", said.partition("Subcommands:")[2])
        self.assertIn("lint", commands)
        for command in commands:
            self.assertIn(f"/usr/share/man/man1/fencepost-{command}.1.gz", self.files())

    def test_lint_and_the_tests_of_the_examples_pass(self):
        found = sorted(name for name in self.files() - self.before
                       if re.fullmatch(r"/usr/share/doc/fencepost/examples/.*\.yaml", name))
        self.assertEqual(len(found), len(list((SOURCE / "config/examples").glob("*.yaml"))))
        # The handler of one is a Python that this root does not have.
        found = [f for f in found if not f.endswith("/python.yaml")]
        self.as_user("fencepost", "lint", *found)
        tested = [f for f in found if "\ntests:" in pathlib.Path(self.root.path + f).read_text()]
        self.assertIn(", 0 failed", self.as_user("fencepost", "test", *tested).stdout)

    def test_the_files_that_the_documents_name_are_there(self):
        for name in ("redis/make-acl", "postgres/ledger.sql", "mysql/ledger.sql",
                     "postgres/grants.sql", "mysql/grants.sql", "grafana/fencepost.json",
                     "prometheus/alerts.yaml"):  # fmt: skip
            self.assertIn(f"/usr/share/fencepost/{name}", self.files())
        made = self.as_user("/usr/share/fencepost/redis/make-acl", input="secret\n")
        self.assertIn("user fencepost", made.stdout)
        made = self.as_user("/usr/share/fencepost/kafka/make-acls", "--principal", "User:app",
                            "--topic", "orders")  # fmt: skip
        self.assertIn("--operation Read --topic 'orders'", made.stdout)

    def test_the_demo_ends_without_a_difference(self):
        said = self.as_user("fencepost", "demo", "--records", "2000", limit=200)
        last = json.loads(said.stdout.splitlines()[-1])
        self.assertEqual((last["lost"], last["duplicated"]), (0, 0), said.stdout)

    def test_systemd_accepts_the_units_and_neither_is_enabled(self):
        units = [f"/usr/lib/systemd/system/{name}@.service" for name in ("fencepost", "redis-lock")]
        done = run("systemd-analyze", "verify", "--man=no", f"--root={self.root.path}", *units,
                   check=False)  # fmt: skip
        ours = [line for line in done.stderr.splitlines() if "fencepost@" in line or "redis-lock" in line]
        self.assertEqual((done.returncode, ours), (0, []), done.stderr)
        self.assertEqual([f for f in self.files() - self.before if f.startswith("/etc/systemd")], [])

    def test_a_program_finds_the_library_by_cmake_and_by_pkg_config(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "CMakeLists.txt").write_text(PROJECT.format(version=VERSION))
            pathlib.Path(folder, "user.cc").write_text(USER)
            self.root.add(folder, "/src/user")
        by_hand = ("g++ -std=c++20 -o /src/by-hand /src/user/user.cc "
                   "$(pkg-config --cflags --libs fencepost-locking)")  # fmt: skip
        for line in ("cmake -S /src/user -B /src/b", "cmake --build /src/b", by_hand):
            self.root.change("sh", "-c", line, limit=300)
        for program in ("/src/b/user", "/src/by-hand"):
            self.assertEqual(self.as_user(program).stdout, "no quorum\n")

    def test_removal_leaves_nothing(self):
        self.assertGreater(len(self.files() - self.before), 50)
        self.root.change("dpkg", "--purge", *self.names)
        self.assertEqual(self.files() ^ self.before, set())
        self.install()


class Release(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tree = pathlib.Path(folder.name)
        run("cp", SOURCE / "dev", SOURCE / "CMakeLists.txt", SOURCE / "CHANGELOG.md", self.tree)
        run("git", "init", "-q", self.tree)

    def commit(self):
        user = ("-c", "user.name=one", "-c", "user.email=one@example.org")
        run("git", "add", "-A", cwd=self.tree)
        run("git", *user, "commit", "-qm", "all", cwd=self.tree)

    def refusal(self) -> str:
        done = run(self.tree / "dev", "release", check=False)
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        return done.stderr

    def test_what_is_not_committed_is_not_released(self):
        self.commit()
        (self.tree / "more").touch()
        self.assertIn("the tree differs from HEAD", self.refusal())

    def test_a_version_that_the_changelog_does_not_date_is_not_released(self):
        log = self.tree / "CHANGELOG.md"
        log.write_text(log.read_text().replace(f"## {VERSION} - ", f"## {VERSION}.1 - "))
        self.commit()
        self.assertIn(f'no line "## {VERSION} - YYYY-MM-DD"', self.refusal())


if __name__ == "__main__":
    unittest.main()
