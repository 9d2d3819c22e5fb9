# SPDX-License-Identifier: Apache-2.0
"""Checks options in a release against the --help of the built programs."""

import re
import subprocess

OPTION = re.compile(r"^  (?:-\w,)?--([a-z.-]+)(?: (\S+))?", re.MULTILINE)


def parse_help(text):
    """Option -> its choices, or an empty list."""
    return {name: kind.split("|") if "|" in kind else [] for name, kind in OPTION.findall(text)}


class ProgramOptions:
    def __init__(self, folder):
        self.folder = folder
        self.known = {}

    def of(self, program):
        if program not in self.known:
            run = subprocess.run([self.folder / program, "--help"], capture_output=True, text=True, check=True, timeout=30)
            self.known[program] = parse_help(run.stdout)
        return self.known[program]

    def problems(self, release):
        for pod in release.servers():
            program = pod.main["command"][0]
            known = self.of(program)
            for option, value in release.options(pod).items():
                if option not in known:
                    yield f"{pod.where}: {program} has no option {option}"
                elif known[option] and value not in known[option]:
                    yield f"{pod.where}: {program} has no choice {value} for {option}"
