#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints how many tests a CTest run had, how many failed and how many were skipped; on stderr, which failed and why.

Counts the cases in the reports that Google Test wrote into a folder; a program without a report, because it is no Google
Test or because it died, counts as one test with CTest's verdict (ctest.junit in the same folder). Writes skipped.txt
into the folder: each reason to skip, and under it the cases and programs.
"""

import pathlib
import sys
import textwrap
import xml.etree.ElementTree as ElementTree

# Of the text of one failure.
SHOWN_LINES = 24
SHOWN_CHARACTERS = 300


def print_failure(name, text):
    lines = text.strip().splitlines()
    for line in [f"{name}: {' '.join(lines[:1])}"] + lines[1:SHOWN_LINES]:
        print(line[:SHOWN_CHARACTERS], file=sys.stderr)


def output_from_failure(output):
    """What a program printed, from its first failure on: what Google Test says outside of cases, or a sanitizer."""
    lines = output.splitlines()
    signs = (": Failure", "ERROR: ", "WARNING: ThreadSanitizer", "runtime error: ")
    return "\n".join(lines[next((i for i, line in enumerate(lines) if any(sign in line for sign in signs)), -SHOWN_LINES) :])


def reason_of_case(case):
    """Why Google Test did not run a case to its end, or None."""
    skipped = case.find("skipped")
    if skipped is not None:
        place, _, message = skipped.get("message", "").partition("\n")
        return " ".join(message.split()) or f"no reason is given at {place}"
    return "disabled by its name" if case.get("result") == "suppressed" else None


def reason_of_program(program):
    """Why CTest skipped a program, or None. A program that CTest could not start has failed."""
    if program.get("status") == "disabled":
        return "disabled in CMake"
    skipped = program.find("skipped")
    if skipped is not None and skipped.get("message", "").startswith("SKIP_"):
        return " ".join((program.findtext("system-out") or "").split()) or "no reason is given"
    return None


def write_skips(path, skips):
    """`skips`: reason -> names."""
    with path.open("w", encoding="utf-8") as out:
        for reason, names in sorted(skips.items()):
            out.write(f"  {reason}\n")
            out.write(textwrap.fill(", ".join(names), 120, initial_indent="    ", subsequent_indent="    ",
                                    break_long_words=False, break_on_hyphens=False) + "\n")


def main():
    folder = pathlib.Path(sys.argv[1])
    cases = failures = 0
    failures_of = {}
    skips = {}
    for report in sorted(folder.glob("*.xml")):
        suites = ElementTree.parse(report).getroot()
        failures_of[report.stem] = int(suites.get("failures")) + int(suites.get("errors"))
        failures += failures_of[report.stem]
        for case in suites.iter("testcase"):
            cases += 1
            name = f"{case.get('classname')}.{case.get('name')}"
            for failure in case.iter("failure"):
                print_failure(name, failure.text or "")
            if case.find("failure") is None and (reason := reason_of_case(case)):
                skips.setdefault(reason, []).append(name)
    for program in ElementTree.parse(folder / "ctest.junit").getroot().iter("testcase"):
        name = program.get("name")
        reason = reason_of_program(program)
        failed = program.get("status") != "run" and reason is None
        output = output_from_failure(program.findtext("system-out") or "")
        if name not in failures_of:
            cases += 1
            failures += failed
            if failed:
                print_failure(name, "ended without a report\n" + output)
            elif reason:
                skips.setdefault(reason, []).append(name)
        elif failed and failures_of[name] == 0:
            failures += 1  # outside of the cases: what a suite shares did not start, or a leak, for instance
            print_failure(name, "no case failed, but the program did\n" + output)
    write_skips(folder / "skipped.txt", skips)
    print(cases, failures, sum(len(names) for names in skips.values()))


if __name__ == "__main__":
    main()
