#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/count.py: what it counts in reports, and that it names each test that was skipped, with the reason."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

COUNT = pathlib.Path(__file__).resolve().parents[3] / "tests" / "count.py"

CTEST = '<testsuite>{}</testsuite>'
PROGRAM = '<testcase name="{}" status="{}">{}<system-out>{}</system-out></testcase>'
GTEST = '<testsuites tests="{}" failures="{}" errors="0"><testsuite>{}</testsuite></testsuites>'
CASE = '<testcase classname="Suite" name="{}" result="{}">{}</testcase>'
FAILURE = '<failure message="x.cc:1&#x0A;wrong">x.cc:1\nwrong</failure>'


def skipped(reason):
    return f'<skipped message="x.cc:1&#x0A;{reason}"/>'


class CountTest(unittest.TestCase):
    def count(self, programs, **reports):
        """Returns the three numbers, skipped.txt and stderr. `reports`: program -> its cases."""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "ctest.junit").write_text(CTEST.format("".join(programs)))
            for program, cases in reports.items():
                report = GTEST.format(len(cases), sum(FAILURE in case for case in cases), "".join(cases))
                (folder / f"{program}.xml").write_text(report)
            run = subprocess.run([sys.executable, COUNT, folder], check=True, capture_output=True, text=True)
            return run.stdout.strip(), (folder / "skipped.txt").read_text(), run.stderr

    def test_counts_cases_and_programs_without_a_report(self):
        cases = [CASE.format("Good", "completed", ""), CASE.format("Bad", "completed", FAILURE)]
        programs = [PROGRAM.format("a", "fail", "", ""), PROGRAM.format("script", "run", "", "")]
        counts, skips, errors = self.count(programs, a=cases)
        self.assertEqual((counts, skips), ("3 1 0", ""))
        self.assertIn("Suite.Bad: x.cc:1\nwrong", errors)

    def test_names_skipped_cases_under_their_reason(self):
        cases = [CASE.format("One", "skipped", skipped("no data;&#x0A;set X")), CASE.format("Good", "completed", ""),
                 CASE.format("Two", "skipped", skipped("no data; set X")), CASE.format("DISABLED_Old", "suppressed", ""),
                 CASE.format("Three", "skipped", skipped(""))]
        counts, skips, _ = self.count([PROGRAM.format("a", "run", "", "")], a=cases)
        self.assertEqual(counts, "5 0 4")
        self.assertEqual(skips, "  disabled by its name\n    Suite.DISABLED_Old\n"
                                "  no data; set X\n    Suite.One, Suite.Two\n"
                                "  no reason is given at x.cc:1\n    Suite.Three\n")

    def test_a_case_that_fails_and_then_skips_has_failed(self):
        counts, skips, _ = self.count([PROGRAM.format("a", "fail", "", "")],
                                      a=[CASE.format("Both", "skipped", FAILURE + skipped("late"))])
        self.assertEqual((counts, skips), ("1 1 0", ""))

    def test_names_skipped_programs(self):
        programs = [PROGRAM.format("script", "notrun", '<skipped message="SKIP_RETURN_CODE=77"/>', "no python\n"),
                    PROGRAM.format("off", "disabled", "", "Disabled")]
        counts, skips, _ = self.count(programs)
        self.assertEqual((counts, skips), ("2 0 2", "  disabled in CMake\n    off\n  no python\n    script\n"))

    def test_a_program_that_cannot_start_has_failed(self):
        counts, skips, errors = self.count(
            [PROGRAM.format("gone", "notrun", '<skipped message="Unable to find executable"/>', "Unable to find: gone")])
        self.assertEqual((counts, skips), ("1 1 0", ""))
        self.assertIn("gone", errors)

    def test_a_program_that_fails_outside_of_its_cases_has_failed(self):
        counts, _, errors = self.count([PROGRAM.format("a", "fail", "", "ERROR: LeakSanitizer: leaks")],
                                       a=[CASE.format("Good", "completed", "")])
        self.assertEqual(counts, "1 1 0")
        self.assertIn("LeakSanitizer", errors)


if __name__ == "__main__":
    unittest.main()
