#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/words.py: which sentences it refuses, and which it must not."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

WORDS = pathlib.Path(__file__).resolve().parents[3] / "tests" / "words.py"
LONG = "Word " + "word " * 30 + "word."


class WordsTest(unittest.TestCase):
    def refused(self, name, text):
        """The lines and reasons for a file of this name and text."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / name
            path.write_text(text)
            run = subprocess.run([sys.executable, WORDS, path], capture_output=True, text=True, check=False)
            hits = run.stdout.replace(f"{path}:", "").split("\n")[:-1] if run.returncode else []
            self.assertEqual(run.stderr, "")
            return hits

    def test_a_comment_needs_a_subject(self):
        self.assertEqual(self.refused("a.h", "// It stays.\n"), ['1: a sentence that begins with "It"'])
        self.assertEqual(self.refused("a.h", "\n// The page stays. What comes\n// next goes.\n"),
                         ['2: a sentence that begins with "What"'])
        self.assertEqual(self.refused("a.cc", "int a = 0;  // Both are free.\n"), ['1: a sentence that begins with "Both are"'])
        self.assertEqual(self.refused("a.h", "// Both sides are free. One mutex guards all.\nint it;\n"), [])

    def test_a_sentence_is_short(self):
        self.assertEqual(len(self.refused("a.h", f"// {LONG}\n")), 1)
        self.assertEqual(len(self.refused("a.md", f"The start.\n{LONG}\n")), 1)
        halves = LONG[:70] + ".\n// Then " + LONG[70:]
        self.assertEqual(self.refused("a.h", f"// {halves}\n"), [])

    def test_code_and_table_rows_stand_alone(self):
        self.assertEqual(self.refused("a.md", f"```\nIt runs.\n{LONG}\n```\n"), [])
        row = "| " + " | ".join(["some words here"] * 12) + " |\n"
        self.assertEqual(self.refused("a.md", row * 3), [])
        self.assertEqual(self.refused("a.h", "//   first   a row of words here\n" * 9), [])

    def test_a_phrase_is_refused_anywhere(self):
        phrase = "who" + "ever"
        self.assertEqual(self.refused("a.py", f"print('{phrase} comes')\n"), [f'1: "{phrase}"'])


if __name__ == "__main__":
    unittest.main()
