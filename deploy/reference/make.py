#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes manual pages and shell completions of the built programs, in the folders of an installation's share.

make.py BIN SHARE: BIN has the programs, SHARE receives man/, bash-completion/, zsh/ and fish/.
"""

import datetime
import gzip
import os
import pathlib
import sys

import completions
import man
import programs

COMPLETIONS = {"bash-completion/completions/{}": completions.bash, "zsh/vendor-completions/_{}": completions.zsh,
               "fish/vendor_completions.d/{}.fish": completions.fish}


def build_date(binary):
    """SOURCE_DATE_EPOCH, or else the program's time, as a date."""
    seconds = float(os.environ.get("SOURCE_DATE_EPOCH") or binary.stat().st_mtime)
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).date()


def write(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def main(binaries, share):
    for program in programs.describe_all(binaries):
        binary = binaries / program.path
        version = programs.answer(binary, "--version").split()[-1]
        section = man.SECTIONS[program.path]
        page = man.page(program, version, build_date(binary))
        write(share / f"man/man{section}/{program.path}.{section}.gz", gzip.compress(page.encode(), mtime=0))
        for name, make in COMPLETIONS.items():
            write(share / name.format(program.path), make(program).encode())


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*map(pathlib.Path, sys.argv[1:]))
