#!/usr/bin/env python3
"""Prints how many tests a CTest run had, how many failed and how many were skipped.

Counts the cases in the reports that Google Test wrote into a folder; a program without a report, because it is no Google
Test or because it died, counts as one test with CTest's verdict (ctest.junit in the same folder).
"""

import pathlib
import sys
import xml.etree.ElementTree as ElementTree


def main():
    folder = pathlib.Path(sys.argv[1])
    cases = failures = skipped = 0
    for report in folder.glob("*.xml"):
        suites = ElementTree.parse(report).getroot()
        cases += int(suites.get("tests"))
        failures += int(suites.get("failures")) + int(suites.get("errors"))
        skipped += int(suites.get("disabled")) + sum(int(suite.get("skipped", 0)) for suite in suites)
    for program in ElementTree.parse(folder / "ctest.junit").getroot().iter("testcase"):
        failed = program.get("status") == "fail"
        if not (folder / f"{program.get('name')}.xml").exists():
            cases += 1
            failures += failed
        elif failed and failures == 0:
            failures += 1  # every case passed, and then the program ended badly, with a leak for instance
    print(cases, failures, skipped)


if __name__ == "__main__":
    main()
