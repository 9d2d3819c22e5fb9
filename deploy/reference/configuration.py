#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/configuration.md.

configuration.py BIN FILE: writes the tables between FILE's marks anew, from the options of the servers in BIN.
"""

import pathlib
import re
import sys

import programs

UNCONFIGURABLE = ("--help", "--version", "--config")


def code(text):
    return f"`{text}`"


def cell(text):
    return text.replace("|", "\\|").replace("<", "&lt;")


def row(option):
    kind = " ".join(code(choice) for choice in option.choices) or option.type
    default = option.default_text
    # A default is a value, or words that say where the value comes from.
    default = default if " " in default else default and code(default)
    cells = (code(option.names[0].lstrip("-")), kind, default.replace("|", "\\|"), cell(option.meaning))
    return f"| {' | '.join(cells)} |"


def table(program):
    options = [option for option in program.options if option.names[-1] not in UNCONFIGURABLE]
    return "\n".join(["| option | type | default | meaning |", "|---|---|---|---|", *map(row, options), ""])


def with_part(text, part, content):
    begin, end = f"<!-- begin {part} -->\n", f"<!-- end {part} -->"
    pattern = re.compile(f"(?<={re.escape(begin)}).*?(?={re.escape(end)})", re.DOTALL)
    if not pattern.search(text):
        raise ValueError(f"no marks for the generated part {part}")
    return pattern.sub(lambda _: content, text)


def filled(text, binaries):
    """`text` with the table of each server between the marks of the server's name."""
    for server in programs.SERVERS:
        text = with_part(text, server, table(programs.describe(pathlib.Path(binaries) / server)))
    return text


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    document = pathlib.Path(sys.argv[2])
    document.write_text(filled(document.read_text(), sys.argv[1]))
