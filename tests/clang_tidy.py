#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy over the sources of a build folder, as many at a time as there are cores.

It checks what the build folder compiles: single sources, or the files in which CMake includes several of them. One that
passed is not checked again until a file of ours in it, its compile command, .clang-tidy or clang-tidy itself changes: what
passed is remembered in ~/.cache/baton-tidy by a hash of all of these.
"""

import argparse
import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import shlex
import subprocess
import sys

CLANG_TIDY = "clang-tidy-19"
ROOT = pathlib.Path(__file__).resolve().parent.parent
# Tests are written to be read: what only costs time there is let be.
NOT_FOR_TESTS = "-performance-inefficient-string-concatenation,-performance-inefficient-vector-operation"
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "baton-tidy"


@functools.cache
def our_file(build, name):
    """The file, without the symbolic links of the include roots; None when it is not ours."""
    path = pathlib.Path(build, name).resolve()
    return path if path.is_relative_to(ROOT) or path.is_relative_to(build) else None


def our_dependencies(build):
    """The files of ours that each object file depends on, as the last build recorded them."""
    listing = subprocess.run(["ninja", "-C", build, "-t", "deps"], check=True, capture_output=True, text=True).stdout
    dependencies = {}
    current = None
    for line in listing.splitlines():
        if line.startswith("    "):
            if path := our_file(build, line.strip()):
                current.append(path)
        elif line:
            current = dependencies.setdefault(line.split(":")[0], [])
    return dependencies


def output(command):
    words = shlex.split(command["command"])
    return words[words.index("-o") + 1]


def digest(constant, command, dependencies):
    key = hashlib.sha256(constant)
    key.update(command["command"].encode())
    for path in sorted({pathlib.Path(command["file"]), *dependencies}):
        key.update(b"\0" + path.read_bytes())
    return key.hexdigest()


def check(build, extra, constant, command, dependencies):
    """The complaints about one file, or nothing."""
    marker = CACHE / digest(constant, command, dependencies)
    if marker.exists():
        return ""
    # g++'s own std::stable_sort uses what it declares deprecated.
    result = subprocess.run([CLANG_TIDY, "--quiet", "--extra-arg=-Wno-deprecated-declarations", *extra, "-p", build,
                             command["file"]], capture_output=True, text=True)
    if result.returncode != 0:
        return result.stdout or result.stderr
    marker.touch()
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tests", action="store_true", help="the tests instead of what they test")
    parser.add_argument("build", help="a build folder that is up to date")
    arguments = parser.parse_args()
    build = str(pathlib.Path(arguments.build).resolve())

    CACHE.mkdir(parents=True, exist_ok=True)
    version = subprocess.run([CLANG_TIDY, "--version"], check=True, capture_output=True).stdout
    constant = version + (ROOT / ".clang-tidy").read_bytes()
    dependencies = our_dependencies(build)
    commands = []
    for command in json.loads(pathlib.Path(build, "compile_commands.json").read_text()):
        objects = pathlib.Path(output(command))
        generated = objects.parts[0] == "proto"
        if not generated and (objects.parts[0] == "tests") == arguments.tests:
            commands.append(command)

    unbuilt = [c["file"] for c in commands if output(c) not in dependencies]
    if not commands or unbuilt:
        print(f"{build} is not up to date: {', '.join(unbuilt) or 'it has no sources'}; build it first")
        return 1

    failed = 0
    extra = [f"--checks={NOT_FOR_TESTS}"] if arguments.tests else []
    constant += " ".join(extra).encode()
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        running = [pool.submit(check, build, extra, constant, c, dependencies[output(c)]) for c in commands]
        for future in concurrent.futures.as_completed(running):
            if complaint := future.result():
                failed += 1
                print(complaint, flush=True)
    print(f"{len(commands)} translation units, {failed} with complaints")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
