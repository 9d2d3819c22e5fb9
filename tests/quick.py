#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints which unit tests a change reaches: first a regular expression for `ctest --tests-regex`, empty without any, then
what a person should know: which tests run, and what is left out.

quick.py BUILD < CHANGED: BUILD is a build folder that is up to date; CHANGED has one path per line, from the root. A test
is reached when ninja builds its program, or the archive that it reads, from a changed file, or when a changed file lies
in the folder of its script or is one of its REQUIRED_FILES.
"""

import functools
import json
import pathlib
import subprocess
import sys

from clang_tidy import ROOT, our_dependencies

SHOWN_FILES = 8


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def property_of(test, name):
    return next((p["value"] for p in test["properties"] if p["name"] == name), [])


class Graph:
    """What ninja builds from what: the build files and the headers that the compiler reported."""

    def __init__(self, build):
        self.build = build
        self.headers = our_dependencies(str(build))
        self.targets = {line.split(":")[0] for line in output_of("ninja", "-C", build, "-t", "targets", "all").splitlines()}

    @functools.cache
    def sources_of(self, target):
        """What the target is built from, or nothing when ninja does not build the target."""
        if target not in self.targets:
            return frozenset()
        inputs = output_of("ninja", "-C", self.build, "-t", "inputs", target).splitlines()
        return frozenset(pathlib.Path(self.build, line) for line in inputs).union(*(self.headers.get(i, ()) for i in inputs))


def is_reached(graph, test, changed):
    for word in test["command"]:
        path = pathlib.Path(word)
        if path.is_relative_to(graph.build):
            if not changed.isdisjoint(graph.sources_of(str(path.relative_to(graph.build)))):
                return True
        elif path.is_relative_to(ROOT) and any(path.parent in file.parents for file in changed):
            return True
    return not changed.isdisjoint(pathlib.Path(file) for file in property_of(test, "REQUIRED_FILES"))


def shorten(names):
    names = sorted(names)
    return ", ".join(names[:SHOWN_FILES]) + (f" and {len(names) - SHOWN_FILES} more" if len(names) > SHOWN_FILES else "")


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    changed = {ROOT / line.strip() for line in sys.stdin if line.strip()}
    graph = Graph(build)
    tests = json.loads(output_of("ctest", "--test-dir", build, "--show-only=json-v1"))["tests"]
    reached = [test for test in tests if is_reached(graph, test, changed)]
    unit = [test for test in reached if "unit" in property_of(test, "LABELS")]
    others = {test["name"] for test in reached} - {test["name"] for test in unit}

    print("^(" + "|".join(sorted(test["name"] for test in unit)) + ")$" if unit else "")
    print(f"{len(changed)} files changed since main; unit tests that they reach: {shorten(t['name'] for t in unit) or 'none'}")
    if others:
        print(f"left out, though reached: {shorten(others)}")
    if unbuilt := changed - graph.sources_of("all"):
        print(f"no program is built from: {shorten(str(file.relative_to(ROOT)) for file in unbuilt)}")
    print("left out: tests of what processes do together, clang-tidy, the installation, the sanitizers (tests/run.sh)")


if __name__ == "__main__":
    main()
