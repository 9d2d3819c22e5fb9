#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Manual pages, completions and docs/configuration.md have every option of the built programs."""

import gzip
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import shells

ROOT = pathlib.Path(__file__).resolve().parents[3]
BIN = pathlib.Path(os.environ["BATON_BIN"])
MAKE = ROOT / "deploy" / "reference" / "make.py"
sys.path.insert(0, str(MAKE.parent))
import configuration  # noqa: E402
import programs  # noqa: E402

# A flag at the beginning of a line of --help, such as "  -h,--help".
HELP_FLAG = re.compile(r"^  (?:-\w,)?(--[a-z.-]+)", re.MULTILINE)


def flags_of_help(path):
    program, *commands = path.split()
    run = subprocess.run([BIN / program, *commands, "--help"], capture_output=True, text=True, check=True, timeout=30)
    return set(HELP_FLAG.findall(run.stdout))


class ReferenceTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.share = pathlib.Path(cls.folder.name)
        subprocess.run([sys.executable, MAKE, BIN, cls.share], check=True, timeout=60)
        cls.programs = {program.path: program for program in programs.describe_all(BIN)}

    def page(self, program):
        (path,) = self.share.glob(f"man/man*/{program}.*.gz")
        return path, gzip.decompress(path.read_bytes()).decode()

    def bash_file(self, program):
        return self.share / "bash-completion" / "completions" / program

    def fish_file(self, program):
        return self.share / "fish" / "vendor_completions.d" / f"{program}.fish"

    def test_the_description_has_every_option_of_help_and_is_itself_hidden(self):
        for program in self.programs.values():
            for command in program.walk():
                described = {name for option in command.options for name in option.names if name.startswith("--")}
                shown = flags_of_help(command.path)
                self.assertIn("--help", shown)
                self.assertLessEqual(shown, described, command.path)
                self.assertNotIn("--describe", described | shown, command.path)

    def test_the_manual_has_every_option_of_help_under_its_command(self):
        for program in self.programs.values():
            _, text = self.page(program.path)
            plain = re.sub(r"\\f[BIR]|\\(?=-)", "", text)
            parts = re.split(r"^\.SS ", plain, flags=re.MULTILINE)
            for command in program.walk():
                if command.commands and command is not program:
                    continue
                (part,) = (part for part in parts if part.split("\n")[0] == command.path or
                           (command is program and part is parts[0]))
                tags = set(re.findall(r"(?<=^\.TP\n).*", part, re.MULTILINE))
                names = {name for tag in tags for name in re.findall(r"--[a-z.-]+", tag)}
                missing = flags_of_help(command.path) - names - {"--help"}
                self.assertFalse(missing, f"{command.path}: not in its part of the manual")

    def test_the_manual_has_no_errors_of_form(self):
        if not shells.installed("mandoc"):
            self.skipTest("mandoc is not installed")
        for program in self.programs:
            path, _ = self.page(program)
            lint = subprocess.run(["mandoc", "-Tlint", "-W", "warning", path], capture_output=True, text=True, check=False)
            self.assertEqual((lint.returncode, lint.stdout), (0, ""), program)

    def test_bash_completes_commands_options_and_values(self):
        for program in self.programs:
            shells.run("bash", "-n", str(self.bash_file(program)))
        file = self.bash_file("baton")
        self.assertEqual(shells.bash(file, "baton", "bench", "s"), {"serve"})
        self.assertLessEqual({"generate", "bench", "--version"}, shells.bash(file, "baton", ""))
        self.assertEqual(shells.bash(file, "baton", "bench", "serve", "--trace-s"), {"--trace-scale", "--trace-speed"})
        self.assertEqual(shells.bash(file, "baton", "models", "make", "--dtype", "q"), {"q8_0", "q4_0"})
        # After a value that is the name of a command, the command stays.
        self.assertEqual(shells.bash(file, "baton", "generate", "--chat", "status", "--summ"), {"--summary"})
        decode = self.bash_file("baton-decode")
        for words in (["--transport", ""], ["--transport", "="], ["--transport", "=", ""]):
            self.assertEqual(shells.bash(decode, "baton-decode", *words), {"auto", "tcp", "shm"}, words)
        self.assertEqual(shells.bash(decode, "baton-decode", "--transport", "=", "s"), {"shm"})
        self.assertEqual(shells.bash(decode, "baton-decode", "--model", "/"), set())  # bash itself offers files

    def test_bash_completes_every_option(self):
        for program in self.programs.values():
            for command in program.walk():
                words = shells.bash(self.bash_file(program.path), *command.path.split(), "--")
                self.assertLessEqual(flags_of_help(command.path), words, command.path)

    def test_fish_completes_commands_options_and_values(self):
        if not shells.installed("fish"):
            self.skipTest("fish is not installed")
        for program in self.programs:
            shells.run("fish", "--no-config", "-n", str(self.fish_file(program)))
        file = self.fish_file("baton")
        self.assertEqual(shells.fish(file, "baton bench s"), {"serve"})
        self.assertEqual(shells.fish(file, "baton bench serve --trace-s"), {"--trace-scale", "--trace-speed"})
        self.assertEqual(shells.fish(file, "baton models make --dtype q"), {"q8_0", "q4_0"})
        self.assertEqual(shells.fish(self.fish_file("baton-decode"), "baton-decode --transport "), {"auto", "tcp", "shm"})

    def test_zsh_reads_the_completions(self):
        if not shells.installed("zsh"):
            self.skipTest("zsh is not installed")
        for program in self.programs:
            shells.run("zsh", "-n", str(self.share / "zsh" / "vendor-completions" / f"_{program}"))

    def test_the_tables_of_the_documentation_are_those_of_the_programs(self):
        path = ROOT / "docs" / "configuration.md"
        present = path.read_text()
        wanted = configuration.filled(present, BIN)
        if os.environ.get("BATON_WRITE_DOCS"):
            path.write_text(wanted)
        else:
            self.assertTrue(present == wanted, "docs/configuration.md is out of date. Write its tables anew with: "
                            "deploy/reference/configuration.py build/release/bin docs/configuration.md")


if __name__ == "__main__":
    unittest.main()
