#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mutation test: changes the product in small ways, one at a time, and checks that its unit tests notice.

SUITES says which sources are changed, and which test programs are to notice. Each mutant (mutants.py) is compiled by
itself and linked with the objects of each test program, in the place of its source. A mutant is noticed when a test
fails, the program ends badly, or the program does not end in time. The run fails if fewer mutants than --at-least are
noticed.

A survivor that behaves as the original does is listed in survivors.txt with the reason; such mutants do not count. An
entry that no mutant matches any more, or whose mutant is noticed, fails the run as well.

--sample takes mutants of all sources at random, the same mutants for the same --seed. A change elsewhere in a source
does not change the sample: the key of a mutant decides.
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
MEMORY_BYTES = 6 << 30  # a mutant that allocates without end is stopped here


@dataclasses.dataclass(frozen=True)
class Program:
    """Test cases that are to notice a mutant."""

    target: str
    cases: str = "*"  # a filter of Google Test


@dataclasses.dataclass(frozen=True)
class Suite:
    """Sources of one library, and the programs that test them."""

    library: str
    sources: tuple
    programs: tuple  # the quickest first: a mutant that is noticed does not run the rest


SUITES = (
    Suite(
        library="baton_handoff",
        sources=("kvtransfer/handoff/writer_machine.cc", "kvtransfer/handoff/receiver_machine.cc",
                 "kvtransfer/handoff/seen_attempts.cc"),
        programs=(Program("handoff_test", "-*Exploration*:*HandoffMutant*"),
                  Program("handoff_test", "SmallHandoffExploration*")),
    ),
    Suite(
        library="baton_worker",
        sources=("worker/schedule.cc", "worker/sequence.cc"),
        programs=(Program("worker_test"), Program("scheduler_test"), Program("pipeline_test")),
    ),
    Suite(
        library="baton_worker",
        sources=("worker/scheduler/scheduler.cc", "worker/scheduler/steps.cc", "worker/scheduler/handover.cc",
                 "worker/scheduler/receive.cc", "worker/scheduler/migration.cc"),
        programs=(Program("scheduler_test"), Program("pipeline_test")),
    ),
    Suite(
        library="baton_worker",
        sources=("worker/admission/capacity_ledger.cc",),
        programs=(Program("admission_test"),),
    ),
    Suite(
        library="baton_router",
        sources=("router/request_machine.cc", "router/request_attempts.cc", "router/request_tokens.cc",
                 "router/request_migration.cc", "router/worker_table_candidates.cc", "router/worker_table_pins.cc"),
        programs=(Program("router_test", "-RouterTest*"), Program("router_test", "RouterTest*")),
    ),
    Suite(
        library="baton_placement",
        sources=("router/pair_set.cc", "router/placement.cc", "router/forecast.cc"),
        programs=(Program("router_test", "-RouterTest*"), Program("router_test", "RouterTest*")),
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
    """The release build with its test programs up to date: the objects of tests, and how to compile and link."""

    def __init__(self, folder, targets):
        self.folder = folder
        command = ["ninja", "-C", str(folder), *targets]
        if run(command, folder) != 0:
            run(command, folder, quiet=False)
            sys.exit("The test programs cannot be built")
        self.commands = json.loads((folder / "compile_commands.json").read_text())

    def sources(self, library):
        """The library's sources, those that CMake includes in another file among them, and the compile command."""
        found, command = [], None
        for entry in self.commands:
            if f"/{library}.dir/" not in entry["command"]:
                continue
            file = pathlib.Path(entry["file"])
            if file.name.startswith("cmake_pch"):
                continue
            command = shlex.split(entry["command"])
            if "Unity" in file.parts:
                found += re.findall(r'^#include "(.*)"', file.read_text(), re.MULTILINE)
            else:
                found.append(str(file))
        if not found:
            sys.exit(f"{self.folder} does not build {library}: configure it anew")
        return sorted(str(pathlib.Path(file).relative_to(ROOT)) for file in found), command

    def link_command(self, target, library):
        """What links the test target, without the name of the output: the words before and after the library."""
        listing = subprocess.run(["ninja", "-C", self.folder, "-t", "commands", target], check=True,
                                 capture_output=True, text=True).stdout
        words = shlex.split(listing.strip().splitlines()[-1])
        words = words[words.index("&&") + 1 : len(words) - 2]  # : && ... && :
        output = words.index("-o")
        del words[output : output + 2]
        archive = next(word for word in words if word.endswith(f"/lib{library}.a"))
        at = words.index(archive)
        return words[:at], [*(word for word in words[at:] if word != archive), "-Wl,--strip-debug"]


class Library:
    """Each source of a library as an object of its own, without optimization, which is quicker to compile.

    The build itself compiles several sources at once, so that the optimizer copies code from one to another: a mutant
    that is linked with such objects would change only a part of the calls.
    """

    def __init__(self, name, build, folder, jobs):
        self.name = name
        self.folder = folder
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self.lock = threading.Lock()
        self.optimized_originals = {}
        sources, command = build.sources(name)
        options = [o for o in self.without_files(command) if not re.match(r"-(O\d|g\d?|W.*)$", o)]
        # What is read out of range is noticed.
        self.fast = [*options, "-O0", "-g0", "-w", "-D_GLIBCXX_ASSERTIONS"]
        self.optimizing = [*options, "-O2", "-g0", "-w"]
        self.header = self.precompile(sources)
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            self.objects = dict(zip(sources, pool.map(self.compile_original, sources)))
        for source, compiled in self.objects.items():
            if compiled is None:
                sys.exit(f"{source} does not compile by itself")

    @staticmethod
    def without_files(command):
        """The compiler and the options, but for names of files and the precompiled header."""
        first = next(i for i, word in enumerate(command) if re.search(r"(clang\+\+|g\+\+)[-\d]*$", word))
        options = []
        rest = iter(command[first:])
        for word in rest:
            if word in ("-o", "-c"):
                next(rest)
            elif word == "-Xclang":
                value = next(rest)
                if value in ("-include-pch", "-include"):
                    next(rest), next(rest)
                else:
                    options += [word, value]
            else:
                options.append(word)
        return options

    def precompile(self, sources):
        """Parses what the sources include, once: most of what compiling a mutant would cost."""
        includes = {}
        for source in sources:
            found = re.findall(r'^#include (?:<.*>|".*\.h")', (ROOT / source).read_text(), re.MULTILINE)
            includes.update(dict.fromkeys(found))
        prelude = self.folder / "prelude.h"
        prelude.write_text("\n".join(includes) + "\n")
        header = str(prelude) + ".pch"
        command = [*self.fast, "-x", "c++-header", str(prelude), "-o", header]
        if run(command, self.folder) != 0:
            run(command, self.folder, quiet=False)
            sys.exit("This failed: " + shlex.join(command))
        return header

    def compile(self, source, text, folder, options=None):
        """The object file, or None. Its content does not depend on the folder."""
        folder = folder / pathlib.Path(source).parent
        folder.mkdir(parents=True, exist_ok=True)
        name = pathlib.Path(source).name
        (folder / name).write_text(text)
        output = folder / (name + ".o")
        command = options or [*self.fast, "-include-pch", self.header]
        return output if run([*command, "-c", name, "-o", output.name], folder) == 0 else None

    def compile_original(self, source):
        return self.compile(source, (ROOT / source).read_text(), self.folder / "original")

    def optimized(self, source, text, folder):
        """The object code that users run, or None."""
        compiled = self.compile(source, text, folder / "optimized", self.optimizing)
        return compiled and compiled.read_bytes()

    def same_when_optimized(self, mutant, text, folder):
        with self.lock:
            if mutant.file not in self.optimized_originals:
                original = (ROOT / mutant.file).read_text()
                self.optimized_originals[mutant.file] = self.optimized(mutant.file, original, self.folder / "original")
        return self.optimized(mutant.file, text, folder) == self.optimized_originals[mutant.file]


class Bench:
    """Tests mutants of one suite."""

    def __init__(self, suite, build, library):
        self.suite = suite
        if missing := [source for source in suite.sources if source not in library.objects]:
            sys.exit(f"{library.name} is not built from {', '.join(missing)}: SUITES names the wrong library")
        self.build = build
        self.library = library
        self.links = {program.target: build.link_command(program.target, library.name) for program in suite.programs}
        self.timeouts = self.check_original()

    def link(self, target, objects, folder):
        """The program, or None."""
        program = folder / target
        before, after = self.links[target]
        command = [*before, *map(str, objects), *after, "-o", str(program)]
        return program if run(command, self.build.folder) == 0 else None

    def run_cases(self, executable, cases, timeout):
        command = [str(executable), f"--gtest_filter={cases}", "--gtest_fail_fast", "--gtest_brief=1"]
        return run(limited(command), self.library.folder, timeout)

    def check_original(self):
        """How long each program may take."""
        timeouts = []
        for program in self.suite.programs:
            executable = self.link(program.target, self.library.objects.values(), self.library.folder / "original")
            if executable is None:
                sys.exit(f"{program.target} cannot be linked with the single sources of {self.library.name}")
            start = time.monotonic()
            if self.run_cases(executable, program.cases, 600) != 0:
                sys.exit(f"{executable} --gtest_filter={program.cases} fails without a mutant")
            timeouts.append(5 * (time.monotonic() - start) + 5)
        return timeouts

    def test(self, mutant, folder):
        """What comes of a mutant: invalid, same, noticed or survived."""
        try:
            text = mutant.apply((ROOT / mutant.file).read_text())
            compiled = self.library.compile(mutant.file, text, folder)
            if compiled is None:
                return "invalid"
            if compiled.read_bytes() == self.library.objects[mutant.file].read_bytes():
                return "same"
            objects = [*(self.library.objects | {mutant.file: compiled}).values()]
            executables = {}
            for program, timeout in zip(self.suite.programs, self.timeouts):
                if program.target not in executables:
                    executables[program.target] = self.link(program.target, objects, folder)
                if executables[program.target] is None:
                    return "invalid"
                if self.run_cases(executables[program.target], program.cases, timeout) != 0:
                    return "noticed"
            return "same" if self.library.same_when_optimized(mutant, text, folder) else "survived"
        finally:
            shutil.rmtree(folder, ignore_errors=True)


class Workshop:
    """The benches that a run needs, made when a run first needs them."""

    def __init__(self, build, jobs):
        self.build = build
        self.jobs = jobs
        self.folder = build.folder.parent / "mutation"
        self.libraries = {}
        self.benches = {}

    def bench(self, mutant):
        suite = next(suite for suite in SUITES if mutant.file in suite.sources)
        if suite.library not in self.libraries:
            self.libraries[suite.library] = Library(suite.library, self.build, self.folder / suite.library, self.jobs)
        if suite not in self.benches:
            self.benches[suite] = Bench(suite, self.build, self.libraries[suite.library])
        return self.benches[suite]

    def test_in_order(self, candidates, limit):
        """Tests candidates in their order until `limit` of them differ from the original: (mutant, outcome) each."""
        outcomes = []
        remaining = iter(enumerate(candidates))
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            missing = limit
            while missing > 0:
                batch = [(self.bench(mutant), mutant, i) for _, (i, mutant) in zip(range(missing), remaining)]
                if not batch:
                    break
                running = [(m, pool.submit(bench.test, m, self.folder / f"mutant-{i}")) for bench, m, i in batch]
                done = [(mutant, future.result()) for mutant, future in running]
                outcomes += done
                missing -= sum(outcome in ("noticed", "survived") for _, outcome in done)
        return outcomes


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


def all_mutants(sources):
    return [mutant for file in sources for mutant in mutants.make(file, (ROOT / file).read_text())]


def stale_entries(survivors, tested, sources):
    """Complaints about entries of survivors.txt: those without a mutant, and those whose mutant does not survive."""
    known = {mutant.key() for mutant in all_mutants(sources)}
    for key in survivors.reasons:
        if key not in known:
            yield f"no mutant is like this any more: {key}"
        elif tested.get(key, "survived") != "survived":
            yield f"{tested[key]}, not a survivor: {key}"


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release", help="the build folder (build/release)")
    parser.add_argument("--file", action="append", metavar="SOURCE", help="only this source; may be given again")
    parser.add_argument("--line", type=int, metavar="N", help="only mutants that change line N")
    parser.add_argument("--sample", type=int, metavar="N", help="N mutants in all (default: every mutant)")
    parser.add_argument("--seed", default="1", metavar="S", help="chooses the sample (1)")
    parser.add_argument("--at-least", type=float, default=0.9, metavar="SHARE", help="to be noticed (0.9)")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), metavar="N", help="at a time")
    parser.add_argument("--list", action="store_true", help="list the mutants that would be tested, and end")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    sources = [file for suite in SUITES for file in suite.sources]
    chosen = arguments.file or sources
    for file in set(chosen) - set(sources):
        sys.exit(f"--file {file}: not one of {', '.join(sources)}")
    survivors = Survivors(SURVIVORS)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    candidates = [m for m in all_mutants(chosen) if arguments.line in (None, m.line)]
    candidates.sort(key=lambda m: m.rank(arguments.seed))
    limit = arguments.sample or len(candidates)
    if arguments.list:
        print("\n".join(f"{m.line}: {m.key()}" for m in candidates[:limit]))
        return 0

    build = Build((ROOT / arguments.build).resolve(), {p.target for suite in SUITES for p in suite.programs})
    outcomes = Workshop(build, arguments.jobs).test_in_order(candidates, limit)
    noticed = counted = 0
    for file in chosen:
        of_file = report_file(file, [(m, outcome) for m, outcome in outcomes if m.file == file], survivors)
        noticed, counted = noticed + of_file[0], counted + of_file[1]
    complaints = list(stale_entries(survivors, {m.key(): outcome for m, outcome in outcomes}, sources))
    for complaint in complaints:
        print(f"survivors.txt: {complaint}")
    share = noticed / counted if counted else 1
    print(f"{noticed} of {counted} mutants noticed, {100 * share:.1f} %; required are {100 * arguments.at_least:.0f} %")
    return 1 if complaints or share < arguments.at_least else 0


if __name__ == "__main__":
    sys.exit(main())
