"""The bill of materials of a program, SPDX 2.3: the Debian packages of the libraries that it links, and
of the headers that were compiled into it."""

import hashlib
import os
import pathlib
import re
import subprocess
import time

# Debian's short names that SPDX spells otherwise.
SPDX = {
    "expat": "MIT",
    "mit": "MIT",
    "apache-2": "Apache-2.0",
    "apache-2.0": "Apache-2.0",
    "bsd-2-clause": "BSD-2-Clause",
    "bsd-3-clause": "BSD-3-Clause",
    "bsl-1.0": "BSL-1.0",
    "boost-1.0": "BSL-1.0",
    "curl": "curl",
    "gpl-2": "GPL-2.0-only",
    "gpl-2+": "GPL-2.0-or-later",
    "gpl-3+": "GPL-3.0-or-later",
    "lgpl-2.1": "LGPL-2.1-only",
    "lgpl-2.1+": "LGPL-2.1-or-later",
    "postgresql": "PostgreSQL",
    "zlib": "Zlib",
}


def _said(*argv) -> str:
    return subprocess.run([str(a) for a in argv], capture_output=True, text=True).stdout


def _packages_of(paths) -> set[str]:
    """The installed packages that hold these files."""
    found = set()
    # What dpkg knows below /lib is in /usr/lib since the merge.
    names = {name for path in paths for name in (path, path.removeprefix("/usr"))}
    for line in _said("dpkg-query", "--search", *sorted(names)).splitlines():
        found.update(name.strip() for name in line.rpartition(": ")[0].split(", "))
    return found


def _linked(program) -> set[str]:
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", _said("readelf", "--dynamic", program))
    folder = pathlib.Path("/usr/lib", os.environ["DEB_HOST_MULTIARCH"])
    return _packages_of({str((folder / name).resolve()) for name in needed})


def _compiled_in(build) -> set[str]:
    headers = set(re.findall(r"(?m)^    (/usr/\S+)$", _said("ninja", "-C", build, "-t", "deps")))
    return _packages_of({str(pathlib.Path(header).resolve()) for header in headers})


def _licences(package: str) -> list[str]:
    """What Debian's copyright file names, where it is one for machines; that of most files first."""
    file = pathlib.Path("/usr/share/doc", package.split(":")[0], "copyright")
    text = file.read_text(errors="replace") if file.exists() else ""
    if not re.match(r"Format(-Specification)?:", text):
        return []
    found = re.findall(r"(?m)^Files:.*\n(?:.+\n)*?License: *(\S[^\n]*)", text)
    return list(dict.fromkeys(name.strip() for name in found))


def _entry(package: str, id_: str) -> dict:
    name, version, source, architecture = _said(
        "dpkg-query", "-W", "-f=${Package}\t${Version}\t${source:Package}\t${Architecture}", package
    ).split("\t")
    licences = _licences(package)
    known = SPDX.get(licences[0].lower()) if len(licences) == 1 else None
    entry = {
        "SPDXID": id_,
        "name": name,
        "versionInfo": version,
        "supplier": "Organization: Debian",
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": known or "NOASSERTION",
        "copyrightText": "NOASSERTION",
        "sourceInfo": f"built from Debian's source package {source}",
        "externalRefs": [{
            "referenceCategory": "PACKAGE-MANAGER",
            "referenceType": "purl",
            "referenceLocator": f"pkg:deb/debian/{name}@{version}?arch={architecture}",
        }],
    }  # fmt: skip
    if licences:
        entry["licenseComments"] = "Debian's copyright file names: " + "; ".join(licences)
    return entry


def document(program, build, version: str, now: int) -> dict:
    own, packages, relations = "SPDXRef-fencepost", [], []
    linked = _linked(program)
    for kind, names in (("DYNAMIC_LINK", linked), ("STATIC_LINK", _compiled_in(build) - linked)):
        for package in sorted(names):
            id_ = "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", package.split(":")[0])
            packages.append(_entry(package, id_))
            relations.append({"spdxElementId": own, "relationshipType": kind, "relatedSpdxElement": id_})
    digest = hashlib.sha256(pathlib.Path(program).read_bytes()).hexdigest()
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"fencepost-{version}",
        "documentNamespace": f"https://fencepost.example/spdx/fencepost-{version}-{digest[:16]}",
        "creationInfo": {
            "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now)),
            "creators": ["Tool: deploy/package/sbom.py"],
        },
        "packages": [{
            "SPDXID": own,
            "name": "fencepost",
            "versionInfo": version,
            "downloadLocation": "NOASSERTION",
            "filesAnalyzed": False,
            "licenseConcluded": "Apache-2.0",
            "licenseDeclared": "Apache-2.0",
            "copyrightText": "NOASSERTION",
        }, *packages],
        "relationships": [
            {"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
             "relatedSpdxElement": own},
            *relations,
        ],
    }  # fmt: skip
