# SPDX-License-Identifier: Apache-2.0
"""Reads OTLP with OpenTelemetry's own JavaScript code, which npm fetches."""

import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "deploy" / "helm"))

import get_tool  # noqa: E402

FOLDER = get_tool.TOOLS_FOLDER / "otlp-reader"


def extract_messages(package, folder):
    source = package.extractfile("package/build/src/generated/root.js").read().decode()
    (folder / "root.js").write_text(source)


def extract_protobuf(package, folder):
    minimal = folder / "protobufjs"
    minimal.mkdir()
    (minimal / "minimal.js").write_bytes(package.extractfile("package/dist/minimal/protobuf.js").read())


# Version, SHA-512, what to take, where it goes.
PACKAGES = {
    "@opentelemetry/otlp-transformer": (
        "0.57.2", "48IIRj49gbQVK52jYsw70+Jv+JbahT8BqT2Th7C4H7RCM9d0gZ5sgNPoMpWldmfjvIsSgiGJtjfk9MeZvjhoig==",
        extract_messages, FOLDER / "messages"),
    "protobufjs": (
        "7.4.0", "mRUWCc3KUU4w1jU8sGxICXH/gNS94DvI1gxqDvBzhj1JpcsimQkYiOJfwsPUykUI5ZaspFbSgmBLER8IrQ3tqw==",
        extract_protobuf, FOLDER / "node_modules"),
}


def install():
    """Raises get_tool.NoNpm if npm is missing."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for package, (version, sha512, extract, folder) in PACKAGES.items():
        if not folder.is_dir():
            get_tool.fetch(package, version, sha512, extract, folder)


def read(body):
    """Returns the spans of an ExportTraceServiceRequest, each with its resource's attributes."""
    environment = {**os.environ, "OTLP_READER": str(FOLDER / "messages")}
    script = pathlib.Path(__file__).resolve().parent / "read_otlp.js"
    run = subprocess.run(["node", str(script)], input=body, capture_output=True, env=environment, timeout=60, check=False)
    if run.returncode != 0:
        raise AssertionError(run.stderr.decode())
    return json.loads(run.stdout)
