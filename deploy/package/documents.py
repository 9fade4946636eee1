#!/usr/bin/python3
"""documents.py BUILD: what the packages hold beside what is compiled, into BUILD/documents/PACKAGE, laid
out as below /usr/share: manual pages from --help, completions, changelogs, copyright, bill of materials."""

import email.utils
import gzip
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
import sbom  # noqa: E402  (after that setting)

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv[1]).resolve()
NOW = int(os.environ["SOURCE_DATE_EPOCH"])
# zsh loads a file by its first line, and runs it for each completion.
ZSH = """\
#compdef fencepost
local -a offered=(${(f)"$(fencepost completion zsh -- "${(@)words[2,CURRENT]}" 2>/dev/null)"})
if (( $#offered )); then compadd -a offered; else _files; fi
"""


def said(*argv) -> str:
    return subprocess.run([str(a) for a in argv], check=True, capture_output=True, text=True).stdout


def write(path: pathlib.Path, text: str, packed=False):
    path.parent.mkdir(parents=True, exist_ok=True)
    data = text.encode()
    path.write_bytes(gzip.compress(data, 9, mtime=0) if packed else data)


def manual(program: str, version: str, folder: pathlib.Path, words=(), summary=""):
    """The page of a command, and those of its subcommands."""
    name = "-".join(("fencepost", *words))
    text = said("help2man", "--no-info", f"--version-string={version}", "--source",
                f"fencepost {version}", f"--name={summary or 'Kafka consumer with effects once'}",
                " ".join([program, *words]))  # fmt: skip
    text = re.sub(r"(?m)^\.TH \S+", f".TH {name.upper()}", text)
    text = re.sub(r"(?m)^(\.SH NAME\n).*? \\-", rf"\1{name} \\-", text)
    write(folder / f"{name}.1.gz", text, packed=True)
    subcommands = said(*program.split(), *words, "--help").partition("\nSubcommands:\n")[2]
    for word, about in re.findall(r"(?m)^  (\S+) +(\S.*)$", subcommands):
        manual(program, version, folder, (*words, word), about)


def changelog(package: str, control: dict) -> str:
    codename = re.search(r"(?m)^VERSION_CODENAME=(\w+)", pathlib.Path("/etc/os-release").read_text())[1]
    return (f"{package} ({control['version']}) {codename}; urgency=medium\n\n"
            f"  * Version {control['version'].split('-')[0]}.\n\n"
            f" -- {control['contact']}  {email.utils.formatdate(NOW)}\n")


def main():
    config = (BUILD / "CPackConfig.cmake").read_text()
    value = dict(re.findall(r'(?m)^set\((\w+) "([^"]*)"\)', config))
    version = value["CPACK_PACKAGE_VERSION"]
    control = {"version": f"{version}-{value['CPACK_DEBIAN_PACKAGE_RELEASE']}",
               "contact": value["CPACK_PACKAGE_CONTACT"]}  # fmt: skip
    for package in ("fencepost", "fencepost-locking-dev"):
        doc = BUILD / "documents" / package / "doc" / package
        write(doc / "changelog.Debian.gz", changelog(package, control), packed=True)
        write(doc / "changelog.gz", (SOURCE / "CHANGELOG.md").read_text(), packed=True)
        shutil.copy(SOURCE / "deploy/package/copyright", doc)
    share = BUILD / "documents" / "fencepost"
    program = BUILD / "fencepost"
    command = f"{value.get('CPACK_EMULATOR', '')} {program}".strip()
    manual(command, version, share / "man/man1")
    for shell, file in (("bash", "bash-completion/completions/fencepost"),
                        ("fish", "fish/vendor_completions.d/fencepost.fish")):  # fmt: skip
        write(share / file, said(*command.split(), "completion", shell))
    write(share / "zsh/vendor-completions/_fencepost", ZSH)
    bill = sbom.document(program, BUILD, version, NOW)
    write(share / "doc/fencepost/fencepost.spdx.json", json.dumps(bill, indent=1) + "\n")


if __name__ == "__main__":
    main()
