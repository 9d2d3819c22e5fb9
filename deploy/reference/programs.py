# SPDX-License-Identifier: Apache-2.0
"""What the programs say about themselves: the JSON of their hidden option --describe."""

import dataclasses
import json
import pathlib
import re
import subprocess

SERVERS = ("baton-router", "baton-prefill", "baton-decode")
PROGRAMS = ("baton", *SERVERS)
# The servers' help texts end with their default.
DEFAULT = re.compile(r"^(?P<meaning>.*?)(?: \(default: (?P<default>.*)\))?$", re.DOTALL)
PATH_TYPES = ("TEXT", "FILE")


@dataclasses.dataclass
class Option:
    names: list
    type: str
    default: str
    help: str
    required: bool
    needs: list
    excludes: list

    @property
    def is_positional(self):
        return not self.names[0].startswith("-")

    @property
    def takes_value(self):
        return self.type != ""

    @property
    def choices(self):
        return self.type.split("|") if "|" in self.type else []

    @property
    def may_be_path(self):
        return self.type in PATH_TYPES

    @property
    def meaning(self):
        return DEFAULT.match(self.help)["meaning"]

    @property
    def default_text(self):
        """The default in the help text wins: it is the same on every machine."""
        return DEFAULT.match(self.help)["default"] or self.default


@dataclasses.dataclass
class Group:
    name: str
    options: list


@dataclasses.dataclass
class Command:
    path: str  # such as "baton bench serve"
    help: str
    footer: str
    groups: list
    commands: list

    @property
    def name(self):
        return self.path.split()[-1]

    @property
    def options(self):
        return [option for group in self.groups for option in group.options]

    def walk(self):
        """This command and all below it."""
        yield self
        for command in self.commands:
            yield from command.walk()


def command(description, parent=""):
    path = f"{parent} {description['name']}".strip()
    groups = [Group(group["name"], [Option(**option) for option in group["options"]]) for group in description["groups"]]
    return Command(path, description["help"], description["footer"], groups,
                   [command(child, path) for child in description["commands"]])


def answer(binary, option):
    return subprocess.run([binary, option], capture_output=True, text=True, check=True, timeout=30).stdout


def describe(binary):
    """The Command of a built program."""
    return command(json.loads(answer(binary, "--describe")))


def describe_all(folder):
    return [describe(pathlib.Path(folder) / program) for program in PROGRAMS]
