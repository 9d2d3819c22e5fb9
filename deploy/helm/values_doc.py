#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the table of values into the chart's README.md, from the comment above each value in values.yaml.

values_doc.py          writes README.md anew
values_doc.py --check  exits with 1, and says what to do, if README.md has another table
"""

import json
import pathlib
import re
import sys

import yaml

CHART = pathlib.Path(__file__).resolve().parent / "baton"
BEGIN, END = "<!-- begin values -->\n", "<!-- end values -->\n"
LINE = re.compile(r"^(?P<indent> *)(?P<key>[A-Za-z]+):(?P<rest>.*)$")


def described(text):
    """(path of a value, its comment), in the order of the file."""
    path, comment = [], []
    for line in text.splitlines():
        if line.lstrip().startswith("#"):
            comment.append(line.lstrip("# "))
        elif match := LINE.match(line):
            path = [*path[:len(match["indent"]) // 2], match["key"]]
            if comment:
                yield path, " ".join(comment)
            comment = []
        else:
            comment = []  # the comment at the beginning of the file, or the inside of a value


def default_of(values, path):
    for key in path:
        values = values[key]
    return values


def rows(text):
    values = yaml.safe_load(text)
    for path, meaning in described(text):
        default = default_of(values, path)
        # These pools repeat the values of `prefill`.
        shown = "" if path in (["decode"], ["both"]) else f"`{json.dumps(default, ensure_ascii=False)}`"
        yield f"| `{'.'.join(path)}` | {shown} | {meaning.replace('|', chr(92) + '|')} |"


def table(text):
    return "\n".join(["| value | default | meaning |", "|---|---|---|", *rows(text)]) + "\n"


def main():
    readme = CHART / "README.md"
    old = readme.read_text(encoding="utf-8")
    before, rest = old.split(BEGIN)
    _, after = rest.split(END)
    new = before + BEGIN + table((CHART / "values.yaml").read_text(encoding="utf-8")) + END + after
    if "--check" in sys.argv[1:]:
        if new != old:
            sys.exit(f"{readme.name} of the chart has another table than values.yaml. Run deploy/helm/values_doc.py.")
    else:
        readme.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
