#!/usr/bin/env python3
"""Prints how many tests a CTest run had, how many failed and how many were skipped; on stderr, which failed and why.

Counts the cases in the reports that Google Test wrote into a folder; a program without a report, because it is no Google
Test or because it died, counts as one test with CTest's verdict (ctest.junit in the same folder).
"""

import pathlib
import sys
import xml.etree.ElementTree as ElementTree

# Of the text of one failure.
SHOWN_LINES = 12
SHOWN_CHARACTERS = 300


def print_failure(name, text):
    lines = text.strip().splitlines()
    for line in [f"{name}: {' '.join(lines[:1])}"] + lines[1:SHOWN_LINES]:
        print(line[:SHOWN_CHARACTERS], file=sys.stderr)


def main():
    folder = pathlib.Path(sys.argv[1])
    cases = failures = skipped = 0
    for report in folder.glob("*.xml"):
        suites = ElementTree.parse(report).getroot()
        cases += int(suites.get("tests"))
        failures += int(suites.get("failures")) + int(suites.get("errors"))
        skipped += int(suites.get("disabled")) + sum(int(suite.get("skipped", 0)) for suite in suites)
        for case in suites.iter("testcase"):
            for failure in case.iter("failure"):
                print_failure(f"{case.get('classname')}.{case.get('name')}", failure.text or "")
    for program in ElementTree.parse(folder / "ctest.junit").getroot().iter("testcase"):
        failed = program.get("status") == "fail"
        if not (folder / f"{program.get('name')}.xml").exists():
            cases += 1
            failures += failed
            if failed:
                print_failure(program.get("name"), "ended without a report")
        elif failed and failures == 0:
            failures += 1  # every case passed, and then the program ended badly, with a leak for instance
            print_failure(program.get("name"), "every case passed, but the program ended badly")
    print(cases, failures, skipped)


if __name__ == "__main__":
    main()
