"""Real database servers of Debian's packages."""

import pathlib
import signal

from support.processes import Process, as_root, free_port, run


def postgres(cls, folder: pathlib.Path, words: list[str]) -> tuple[int, Process]:
    """A PostgreSQL on 127.0.0.1; `folder` becomes its user's, and goes with the class."""
    programs = max(pathlib.Path("/usr/lib/postgresql").iterdir()) / "bin"
    user = as_root("setpriv", "--reuid", "postgres", "--regid", "postgres", "--init-groups")
    run(*as_root("chown", "-R", "postgres:", str(folder)))
    run(*user, programs / "initdb", "--no-sync", "--auth-local=trust",
        "--auth-host=scram-sha-256", "--username=postgres", "-D", folder / "data",
        cwd="/")  # fmt: skip
    cls.addCleanup(run, *as_root("rm", "-rf", str(folder)))
    port = free_port()
    server = Process(cls, [
        *user, "--pdeathsig", "KILL", programs / "postgres", "-D", folder / "data", "-p", port,
        "-c", "listen_addresses=127.0.0.1", "-c", f"unix_socket_directories={folder}",
        "-c", "fsync=off", "-c", "dynamic_shared_memory_type=mmap", *words], cwd="/")  # fmt: skip
    # A fast shutdown gives its shared memory back; a kill leaves it.
    cls.addCleanup(server.stop, signal.SIGINT)
    return port, server


def mariadb(cls, folder: pathlib.Path) -> int:
    """The port of a MariaDB on 127.0.0.1 whose account `admin` may do everything, without a
    password; `folder` becomes its user's, and goes with the class."""
    (folder / "tmp").mkdir()  # not /tmp: a server that starts removes what others have there
    (folder / "init.sql").write_text(
        "CREATE USER admin;\nGRANT ALL ON *.* TO admin WITH GRANT OPTION;\n")
    user = as_root("setpriv", "--reuid", "mysql", "--regid", "mysql", "--init-groups")
    run(*as_root("chown", "-R", "mysql:", str(folder)))
    cls.addCleanup(run, *as_root("rm", "-rf", str(folder)))
    here = ["--no-defaults", f"--datadir={folder}/data", f"--tmpdir={folder}/tmp"]
    run(*user, "mariadb-install-db", "--skip-test-db", "--auth-root-authentication-method=normal",
        *here, cwd="/")  # fmt: skip
    port = free_port()
    Process(cls, [
        *user, "--pdeathsig", "KILL", "mariadbd", *here, "--bind-address=127.0.0.1",
        f"--port={port}", f"--socket={folder}/socket", f"--init-file={folder}/init.sql",
        "--skip-name-resolve", "--innodb-buffer-pool-size=64M",
        "--innodb-log-file-size=16M"], cwd="/")  # fmt: skip
    return port
