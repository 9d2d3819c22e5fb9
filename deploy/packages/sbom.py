#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints an SBOM (SPDX 2.3 JSON) of programs: the Debian packages of the libraries that the programs load.

sbom.py NAME VERSION PROGRAM...: ldd names the libraries. UCX loads its modules without the linker, and some libraries
are headers only: both are named here.
"""

import datetime
import glob
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

UCX_MODULES = "/usr/lib/x86_64-linux-gnu/ucx/libuct_*.so.0"
HEADER_PACKAGES = ("nlohmann-json3-dev", "libcli11-dev", "libboost1.74-dev")
FIELDS = ("binary:Package", "Version", "Architecture", "Maintainer", "source:Package", "Homepage")


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def libraries(files):
    """The files that the linker loads for `files`, as ldd finds them."""
    found = set()
    for file in files:
        text = output("ldd", file)
        if "not found" in text:
            raise SystemExit(f"{file}: a library is missing:\n{text}")
        found.update(re.findall(r"(?:=> |^\t)(/\S+)", text, re.MULTILINE))
    return found


def packages_of(files):
    """The packages of `files`. A package names its file below /lib or /usr/lib, and dpkg knows only this name."""
    names = {file: {name for path in (file, os.path.realpath(file))
                    for name in (path, path.removeprefix("/usr"), "/usr" + path)} for file in files}
    every = sorted(set().union(*names.values()))
    search = subprocess.run(["dpkg", "-S", *every], capture_output=True, text=True, check=False).stdout
    owner = {path: package.split(",")[0] for package, path in re.findall(r"^(?!diversion)(.+?): (/.+)$", search, re.MULTILINE)}
    found = set()
    for file, candidates in names.items():
        owners = {owner[name] for name in candidates if name in owner}
        if not owners:
            raise SystemExit(f"{file}: no Debian package has this file")
        found |= owners
    return found


def spdx_id(name):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)


def described(package):
    values = output("dpkg-query", "-W", "-f", "\\t".join(f"${{{field}}}" for field in FIELDS), package).split("\t")
    name, version, architecture, maintainer, source, homepage = values
    name = name.split(":")[0]
    return {"SPDXID": spdx_id(name), "name": name, "versionInfo": version, "supplier": f"Organization: {maintainer}",
            "downloadLocation": "NOASSERTION", "filesAnalyzed": False, "licenseConcluded": "NOASSERTION",
            "licenseDeclared": "NOASSERTION", "copyrightText": "NOASSERTION", "homepage": homepage or "NOASSERTION",
            "sourceInfo": f"built from the Debian source package {source}; licence in /usr/share/doc/{name}/copyright",
            "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                              "referenceLocator": f"pkg:deb/debian/{name}@{version.replace(':', '%3A').replace('+', '%2B')}"
                                                  f"?arch={architecture}&distro=debian-12"}]}


def loaded_by(programs):
    """UCX's modules, and the files that the linker loads for `programs` and for these modules."""
    modules = set(glob.glob(UCX_MODULES)) if "libucp" in output("ldd", *programs) else set()
    return libraries([*programs, *modules]) | modules


def sbom(name, version, programs):
    dynamic = packages_of(loaded_by(programs))
    own = {"SPDXID": spdx_id(name), "name": name, "versionInfo": version, "supplier": "NOASSERTION",
           "downloadLocation": "NOASSERTION", "filesAnalyzed": False, "licenseConcluded": "Apache-2.0",
           "licenseDeclared": "Apache-2.0", "copyrightText": "Copyright 2026 The Baton authors",
           "comment": "\n".join(f"{pathlib.Path(program).name} sha256 {hashlib.sha256(pathlib.Path(program).read_bytes()).hexdigest()}"
                                for program in programs)}
    packages, relations = [own], [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
                                   "relatedSpdxElement": own["SPDXID"]}]
    for group, kind in ((sorted(dynamic), "DYNAMIC_LINK"), (HEADER_PACKAGES, "STATIC_LINK")):
        for package in group:
            packages.append(described(package))
            relations.append({"spdxElementId": own["SPDXID"], "relationshipType": kind,
                              "relatedSpdxElement": packages[-1]["SPDXID"]})
    seconds = float(os.environ.get("SOURCE_DATE_EPOCH") or max(os.stat(program).st_mtime for program in programs))
    created = datetime.datetime.fromtimestamp(int(seconds), datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    digest = hashlib.sha256(json.dumps(packages).encode()).hexdigest()
    return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"{name}-{version}",
            "documentNamespace": f"https://spdx.org/spdxdocs/{name}-{version}-{digest}",
            "creationInfo": {"created": created, "creators": ["Tool: baton-sbom.py"]},
            "packages": packages, "relationships": relations}


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    json.dump(sbom(sys.argv[1], sys.argv[2], sys.argv[3:]), sys.stdout, indent=1)
