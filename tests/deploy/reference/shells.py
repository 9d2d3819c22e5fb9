# SPDX-License-Identifier: Apache-2.0
"""What shells answer to <TAB>, with the completions of one folder."""

import shutil
import subprocess

BASH = """
source "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
"_${1//-/_}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    if done.returncode or done.stderr:
        raise AssertionError(f"{command[0]} ended with {done.returncode}: {done.stderr}")
    return done.stdout


def bash(file, *words):
    """Bash splits words at spaces and, unlike the other shells, at '='."""
    return set(run("bash", "--norc", "-euc", BASH, "bash", str(file), *words).split())


def fish(file, line):
    """Fish answers with lines of a word, a tab and a description."""
    answer = run("fish", "--no-config", "-c", f"source {file}; complete -C '{line}'")
    return {line.split("\t")[0] for line in answer.splitlines()}


def installed(shell):
    return shutil.which(shell) is not None
