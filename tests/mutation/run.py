#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mutation test: changes the product in small ways, one at a time, and checks that its unit tests notice.

Each mutant (mutants.py) of the files below is compiled by itself, linked with the tests that cover its file, and run. A
mutant is noticed when a test fails, the program ends badly, or does not end in time. The share that is noticed is to be
90 % at least. A survivor that behaves as the original does is listed in survivors.txt with the reason; such mutants do
not count. An entry that no mutant matches any more, or whose mutant is noticed, fails the run as well.

By default a sample of each file's mutants runs, the same for the same seed. A sample does not depend on the order or the
number of functions in a file, so that it stays much the same while the file changes.
"""

import argparse
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time

import mutants

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SURVIVORS = pathlib.Path(__file__).resolve().parent / "survivors.txt"
REQUIRED_SHARE = 0.9
MEMORY_BYTES = 6 << 30  # a mutant that allocates without end is stopped here


@dataclasses.dataclass(frozen=True)
class Suite:
    """A test program that covers some sources, small enough to link and run for every mutant."""

    name: str
    library: str  # whose archive the sources are part of
    target: str  # the test target whose options and libraries the program takes over
    sources: tuple  # to mutate
    helpers: tuple  # sources of the library that they need
    tests: tuple  # patterns of test sources
    filters: tuple = ("*",)  # of test cases, one run each: what is quick comes first


SUITES = (
    Suite(
        name="handoff",
        library="baton_handoff",
        target="handoff_test",
        sources=("kvtransfer/handoff/writer_machine.cc", "kvtransfer/handoff/receiver_machine.cc",
                 "kvtransfer/handoff/seen_attempts.cc"),
        helpers=("kvtransfer/handoff/messages.cc",),
        tests=("tests/unit/kvtransfer_handoff/explore*.cc", "tests/unit/kvtransfer_handoff/model_pool.cc",
               "tests/unit/kvtransfer_handoff/receiver*_test.cc", "tests/unit/kvtransfer_handoff/seen*_test.cc",
               "tests/unit/kvtransfer_handoff/transitions_test.cc", "tests/unit/kvtransfer_handoff/world*.cc",
               "tests/unit/kvtransfer_handoff/writer*_test.cc"),
        filters=("-*Exploration*:*HandoffMutant*", "SmallHandoffExploration*"),
    ),
    Suite(
        name="worker",
        library="baton_worker",
        target="worker_test",
        sources=("worker/schedule.cc", "worker/sequence.cc"),
        helpers=(),
        tests=("tests/unit/worker/schedule*_test.cc", "tests/unit/worker/sequence*_test.cc"),
    ),
    Suite(
        name="scheduler",
        library="baton_worker",
        target="scheduler_test",
        sources=("worker/scheduler/scheduler.cc", "worker/scheduler/steps.cc", "worker/scheduler/handover.cc",
                 "worker/scheduler/receive.cc", "worker/scheduler/migration.cc"),
        helpers=(),
        tests=("tests/unit/scheduler/*.cc",),
    ),
    Suite(
        name="admission",
        library="baton_worker",
        target="admission_test",
        sources=("worker/admission/capacity_ledger.cc",),
        helpers=(),
        tests=("tests/unit/worker/capacity_ledger_test.cc",),
    ),
    Suite(
        name="router",
        library="baton_router",
        target="router_test",
        sources=("router/request_machine.cc", "router/request_attempts.cc", "router/request_tokens.cc",
                 "router/request_migration.cc", "router/placement.cc"),
        helpers=("router/text_assembler.cc",),
        tests=("tests/unit/router/request_[!s]*_test.cc", "tests/unit/router/placement*_test.cc"),
    ),
)


def run(command, cwd, timeout=None, quiet=True):
    """The exit status, or None when the time is up. The command's own children end with it."""
    output = subprocess.DEVNULL if quiet else None
    process = subprocess.Popen(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                               start_new_session=True)
    try:
        return process.wait(timeout)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def limited(command):
    """The command with bounded memory and without core dumps."""
    return ["prlimit", f"--as={MEMORY_BYTES}", "--core=0", *command]


class Build:
    """What the release build knows of compiling and linking."""

    def __init__(self, folder):
        self.folder = folder
        self.commands = {}  # compile command by source, those that CMake includes in another file among them
        for entry in json.loads((folder / "compile_commands.json").read_text()):
            words = shlex.split(entry["command"])
            file = pathlib.Path(entry["file"])
            self.commands[str(file)] = words
            if "Unity" in file.parts:
                for included in re.findall(r'^#include "(.*)"', file.read_text(), re.MULTILINE):
                    self.commands.setdefault(included, words)

    def compiler(self, source):
        """The compiler and all options but for files, and those that hold the precompiled header apart."""
        words = self.commands.get(str(ROOT / source))
        if words is None:
            sys.exit(f"{self.folder} does not build {source}: configure it anew")
        first = next(i for i, word in enumerate(words) if re.search(r"(clang\+\+|g\+\+)[-\d]*$", word))
        options, header = [], []
        rest = iter(words[first:])
        for word in rest:
            if word in ("-o", "-c"):
                next(rest)
            elif word == "-Xclang":
                value = next(rest)
                if value in ("-include-pch", "-include"):
                    header += [word, value, next(rest), next(rest)]
                else:
                    options += [word, value]
            else:
                options.append(word)
        return options, header

    def libraries(self, target, library):
        """What the test target is linked with, but for its own objects and the library."""
        listing = subprocess.run(["ninja", "-C", self.folder, "-t", "commands", target], check=True,
                                 capture_output=True, text=True).stdout
        words = shlex.split(listing.strip().splitlines()[-1])
        words = words[words.index("&&") + 1 : len(words) - 2]  # : && ... && :
        output = words.index("-o")
        del words[output : output + 2]
        return [word for word in words if not word.endswith(".o") and not word.endswith(f"/lib{library}.a")]


class Bench:
    """One suite's objects, and its program with a mutant in the place of a source."""

    def __init__(self, suite, build, folder, jobs):
        self.suite = suite
        self.folder = folder
        self.build = build
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self.lock = threading.Lock()
        self.optimized_originals = {}
        self.ccache = [shutil.which("ccache")] if shutil.which("ccache") else []
        # Any of the sources will do: they are of one target.
        self.options, _ = build.compiler(suite.sources[0])
        self.fast = [o for o in self.options if not re.match(r"-(O\d|g\d?|W.*)$", o)] + ["-O0", "-g0", "-w"]
        self.fast.append("-D_GLIBCXX_ASSERTIONS")  # what is read out of range is noticed
        self.precompile()
        self.objects = {}
        tests = sorted(path for pattern in suite.tests for path in ROOT.glob(pattern))
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            for source, compiled in [(s, pool.submit(self.compile_test, s)) for s in tests]:
                self.objects[source] = compiled.result()
            for source, compiled in [(s, pool.submit(self.compile_original, s)) for s in suite.sources + suite.helpers]:
                self.objects[source] = compiled.result()
        self.link_command = build.libraries(suite.target, suite.library)
        self.baseline = self.check_original()

    def precompile(self):
        """What the sources include, parsed once without optimization: most of what compiling a mutant would cost."""
        includes = {}
        for source in self.suite.sources:
            includes.update(dict.fromkeys(re.findall(r"^#include .*", (ROOT / source).read_text(), re.MULTILINE)))
        prelude = self.folder / "prelude.h"
        prelude.write_text("\n".join(includes) + "\n")
        self.header = str(prelude) + ".pch"
        self.must([*self.fast, "-x", "c++-header", str(prelude), "-o", self.header])

    def must(self, command):
        if run(command, self.build.folder) != 0:
            run(command, self.build.folder, quiet=False)
            sys.exit("This failed: " + shlex.join(command))

    def compile_test(self, source):
        options, header = self.build.compiler(source.relative_to(ROOT))
        output = self.folder / (source.name + ".o")
        self.must([*self.ccache, *options, *header, "-c", str(source), "-o", str(output)])
        return output

    def compile_original(self, source):
        output = self.compile(source, (ROOT / source).read_text(), self.folder / "original")
        return output or sys.exit(f"{source} does not compile by itself")

    def compile(self, source, text, folder, options=None):
        """The object file, or None. Its content does not depend on the folder."""
        folder.mkdir(parents=True, exist_ok=True)
        name = pathlib.Path(source).name
        (folder / name).write_text(text)
        output = folder / (name + ".o")
        command = options or [*self.fast, "-include-pch", self.header]
        return output if run([*command, "-c", name, "-o", output.name], folder) == 0 else None

    def link(self, program, replaced=None, by=None):
        objects = [by if source == replaced else path for source, path in self.objects.items()]
        return run([*self.link_command, "-Wl,--strip-debug", *map(str, objects), "-o", str(program)],
                   self.build.folder) == 0

    def passes(self, program, timeouts):
        for cases, timeout in zip(self.suite.filters, timeouts):
            command = [str(program), f"--gtest_filter={cases}", "--gtest_fail_fast", "--gtest_brief=1"]
            if run(limited(command), self.folder, timeout) != 0:
                return False
        return True

    def check_original(self):
        """How long each run may take."""
        program = self.folder / "original" / self.suite.target
        # The libraries of a link command come before the objects here: archives are searched more than once.
        self.link_command = [self.link_command[0], "-Wl,--start-group", *self.link_command[1:], "-Wl,--end-group"]
        if not self.link(program):
            command = [*self.link_command, *map(str, self.objects.values()), "-o", str(program)]
            run(command, self.build.folder, quiet=False)
            sys.exit(f"The tests of suite {self.suite.name} cannot be linked")
        timeouts = []
        for cases in self.suite.filters:
            start = time.monotonic()
            command = [str(program), f"--gtest_filter={cases}", "--gtest_brief=1"]
            if run(limited(command), self.folder, 600) != 0:
                run(limited(command), self.folder, 600, quiet=False)
                sys.exit(f"The tests of suite {self.suite.name} fail without a mutant")
            timeouts.append(5 * (time.monotonic() - start) + 5)
        return timeouts

    def test(self, mutant, folder):
        """What comes of a mutant: invalid, same, noticed or survived."""
        try:
            text = mutant.apply((ROOT / mutant.file).read_text())
            compiled = self.compile(mutant.file, text, folder)
            if compiled is None:
                return "invalid"
            if compiled.read_bytes() == self.objects[mutant.file].read_bytes():
                return "same"
            program = folder / self.suite.target
            if not self.link(program, mutant.file, compiled):
                return "invalid"
            if not self.passes(program, self.baseline):
                return "noticed"
            return "same" if self.same_when_optimized(mutant, text, folder) else "survived"
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def optimized(self, source, text, folder):
        """The object code that users run, or None."""
        options = [o for o in self.options if not re.match(r"-(O\d|g\d?|W.*)$", o)] + ["-O2", "-g0", "-w"]
        compiled = self.compile(source, text, folder / "optimized", options)
        return compiled and compiled.read_bytes()

    def same_when_optimized(self, mutant, text, folder):
        with self.lock:
            if mutant.file not in self.optimized_originals:
                original = (ROOT / mutant.file).read_text()
                self.optimized_originals[mutant.file] = self.optimized(mutant.file, original, self.folder / "original")
        return self.optimized(mutant.file, text, folder) == self.optimized_originals[mutant.file]


class Survivors:
    """Mutants that behave as the original does, by key, each with a reason."""

    def __init__(self, path):
        self.reasons = {}
        key = None
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                continue
            if line.startswith("    ") and key is not None:
                self.reasons[key] += line.strip() + " "
            elif line.startswith(" "):
                sys.exit(f"{path}:{number}: a reason without a mutant before it")
            else:
                key = line.strip()
                if key in self.reasons:
                    sys.exit(f"{path}:{number}: listed twice")
                self.reasons[key] = ""
        for key, reason in self.reasons.items():
            if not reason:
                sys.exit(f"{path}: no reason for {key}")

    def __contains__(self, mutant):
        return mutant.key() in self.reasons


def test_in_order(bench, candidates, limit, jobs):
    """Tests candidates, best rank first, until `limit` of them differ from the original: (mutant, outcome) each."""
    outcomes = []
    remaining = iter(enumerate(candidates))
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        missing = limit
        while missing > 0:
            batch = [item for _, item in zip(range(missing), remaining)]
            if not batch:
                break
            running = [(m, pool.submit(bench.test, m, bench.folder / f"mutant-{i}")) for i, m in batch]
            done = [(mutant, future.result()) for mutant, future in running]
            outcomes += done
            missing -= sum(outcome in ("noticed", "survived") for _, outcome in done)
    return outcomes


def report_file(file, outcomes, survivors):
    """Prints a file's line and its survivors; (noticed, counted)."""
    count = lambda kind: sum(outcome == kind for _, outcome in outcomes)
    excused = [m for m, outcome in outcomes if outcome == "survived" and m in survivors]
    survived = [m for m, outcome in outcomes if outcome == "survived" and m not in survivors]
    counted = count("noticed") + len(survived)
    share = f"{100 * count('noticed') / counted:.0f} %" if counted else "-"
    print(f"{file}: {count('noticed')} of {counted} noticed ({share}); {len(excused)} listed as equivalent, "
          f"{count('same')} compiled to the same code, {count('invalid')} did not compile", flush=True)
    for mutant in sorted(survived, key=lambda m: m.line):
        print(f"  {file}:{mutant.line} survived ({mutant.operator})\n    {mutant.key()}", flush=True)
    return count("noticed"), counted


def stale_entries(survivors, tested):
    """Complaints about entries of survivors.txt: those without a mutant, and those whose mutant does not survive."""
    known = {}
    for suite in SUITES:
        for file in suite.sources:
            known.update((m.key(), m) for m in mutants.make(file, (ROOT / file).read_text()))
    for key in survivors.reasons:
        if key not in known:
            yield f"no mutant is like this any more: {key}"
        elif tested.get(key, "survived") != "survived":
            yield f"{tested[key]}, not a survivor: {key}"


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release", help="an up-to-date build folder (build/release)")
    parser.add_argument("--file", action="append", metavar="SOURCE", help="only this source; may be given again")
    parser.add_argument("--line", type=int, metavar="N", help="only mutants that change line N")
    parser.add_argument("--limit", type=int, default=60, metavar="N", help="mutants of each file (60)")
    parser.add_argument("--all", action="store_true", help="every mutant, not a sample")
    parser.add_argument("--seed", default="1", help="chooses the sample (1)")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), metavar="N", help="at a time")
    parser.add_argument("--list", action="store_true", help="list the mutants that would be tested, and end")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    build_folder = (ROOT / arguments.build).resolve()
    sources = [file for suite in SUITES for file in suite.sources]
    chosen = arguments.file or sources
    for file in set(chosen) - set(sources):
        sys.exit(f"--file {file}: not one of {', '.join(sources)}")
    survivors = Survivors(SURVIVORS)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    noticed = counted = 0
    tested = {}
    for suite in SUITES:
        files = [file for file in suite.sources if file in chosen]
        if not files:
            continue
        bench = None
        for file in files:
            candidates = mutants.make(file, (ROOT / file).read_text())
            candidates = [m for m in candidates if arguments.line in (None, m.line)]
            candidates.sort(key=lambda m: m.rank(arguments.seed))
            limit = len(candidates) if arguments.all or arguments.line else arguments.limit
            if arguments.list:
                print("\n".join(f"{m.line}: {m.key()}" for m in candidates[:limit]))
                continue
            folder = build_folder.parent / "mutation" / suite.name
            bench = bench or Bench(suite, Build(build_folder), folder, arguments.jobs)
            outcomes = test_in_order(bench, candidates, limit, arguments.jobs)
            tested.update((mutant.key(), outcome) for mutant, outcome in outcomes)
            of_file = report_file(file, outcomes, survivors)
            noticed, counted = noticed + of_file[0], counted + of_file[1]
    if arguments.list:
        return 0

    complaints = list(stale_entries(survivors, tested))
    for complaint in complaints:
        print(f"survivors.txt: {complaint}")
    share = noticed / counted if counted else 1
    print(f"{noticed} of {counted} mutants noticed, {100 * share:.1f} %; required are {100 * REQUIRED_SHARE:.0f} %")
    return 1 if complaints or share < REQUIRED_SHARE else 0


if __name__ == "__main__":
    sys.exit(main())
