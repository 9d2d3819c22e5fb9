#!/usr/bin/env python3
"""Prints how many tests a CTest run had, how many failed and how many were skipped; on stderr, which failed and why.

Counts the cases in the reports that Google Test wrote into a folder; a program without a report, because it is no Google
Test or because it died, counts as one test with CTest's verdict (ctest.junit in the same folder).
"""

import pathlib
import sys
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


def main():
    folder = pathlib.Path(sys.argv[1])
    cases = failures = skipped = 0
    failures_of = {}
    for report in folder.glob("*.xml"):
        suites = ElementTree.parse(report).getroot()
        failures_of[report.stem] = int(suites.get("failures")) + int(suites.get("errors"))
        cases += int(suites.get("tests"))
        failures += failures_of[report.stem]
        skipped += int(suites.get("disabled")) + sum(int(suite.get("skipped", 0)) for suite in suites)
        for case in suites.iter("testcase"):
            for failure in case.iter("failure"):
                print_failure(f"{case.get('classname')}.{case.get('name')}", failure.text or "")
    for program in ElementTree.parse(folder / "ctest.junit").getroot().iter("testcase"):
        name = program.get("name")
        failed = program.get("status") == "fail"
        output = output_from_failure(program.findtext("system-out") or "")
        if name not in failures_of:
            cases += 1
            failures += failed
            if failed:
                print_failure(name, "ended without a report\n" + output)
        elif failed and failures_of[name] == 0:
            failures += 1  # outside of the cases: what a suite shares did not start, or a leak, for instance
            print_failure(name, "no case failed, but the program did\n" + output)
    print(cases, failures, skipped)


if __name__ == "__main__":
    main()
