# SPDX-License-Identifier: Apache-2.0
"""Reads deploy/docker/compose.yaml: services, and the options of their commands."""

import pathlib

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[3]
FILE = ROOT / "deploy" / "docker" / "compose.yaml"


def document():
    return yaml.safe_load(FILE.read_text())


def baton_services():
    """Services that run a program of Baton: name -> service."""
    return {name: service for name, service in document()["services"].items()
            if service.get("command", [""])[0].startswith("baton")}


def options(service):
    """Option with dashes -> value."""
    return dict(word.split("=", 1) for word in service["command"][1:])


def port(service, option):
    return int(options(service)[option].rpartition(":")[2])


def aliases(service):
    return service.get("networks", {}).get("default", {}).get("aliases", [])


def seconds(duration):
    assert duration.endswith("s"), duration
    return float(duration[:-1])
