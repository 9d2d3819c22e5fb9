# SPDX-License-Identifier: Apache-2.0
"""Reads deploy/docker/Dockerfile: its instructions in order."""

import json
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[3]
FILE = ROOT / "deploy" / "docker" / "Dockerfile"


def instructions():
    """(instruction, arguments) of each, with continued lines joined."""
    lines = [line for line in FILE.read_text().splitlines() if not line.startswith("#")]
    text = "\n".join(lines).replace("\\\n", " ")
    return [tuple(line.split(None, 1)) for line in text.splitlines() if line.strip()]


def arguments(instruction):
    return [rest for name, rest in instructions() if name == instruction]


def health_command():
    """The words of HEALTHCHECK's command."""
    [check] = arguments("HEALTHCHECK")
    return json.loads(re.search(r"CMD (\[.*\])$", check)[1])
