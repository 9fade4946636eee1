"""Pipeline files that are rendered or shipped: do they lint, how long do they take to stop?"""

import os
import pathlib
import re
import tempfile

import yaml
from support.processes import FENCEPOST, run


def seconds(duration: str) -> float:
    number, unit = re.fullmatch(r"(\d+)(ms|s|m|h|d)", duration).groups()
    return int(number) * {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}[unit]


def shutdown_timeout(text: str) -> float:
    """In seconds; the default is the one of config/REFERENCE.md."""
    return seconds(str(yaml.safe_load(text).get("shutdown_timeout", "25s")))


def check_lint(test, files: dict[str, str]):
    """`fencepost lint` accepts these files, given the variables and secrets that they name."""
    with tempfile.TemporaryDirectory() as folder:
        environment, paths = dict(os.environ), []
        for name, text in files.items():
            for variable in re.findall(r"\$\{([A-Z_]+)\}", text):
                environment[variable] = "warn" if variable == "LOG_LEVEL" else "x"
            for secret in re.findall(r"\$\{file:([^}]+)\}", text):
                path = pathlib.Path(folder + secret)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("postgresql://app@db/shop" if "dsn" in secret else "x")
                text = text.replace(f"${{file:{secret}}}", f"${{file:{path}}}")
            for ca in re.findall(r"\bca: (/run/secrets/\S+\.pem)", text):
                path = pathlib.Path(folder + ca)
                path.parent.mkdir(parents=True, exist_ok=True)
                run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                    "-subj", "/CN=ca", "-keyout", f"{folder}/key.pem", "-out", path)
                text = text.replace(ca, str(path))
            paths.append(pathlib.Path(folder, name))
            paths[-1].write_text(text)
        done = run(FENCEPOST, "lint", *paths, env=environment, check=False)
        test.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        test.assertNotIn("error", done.stdout)
