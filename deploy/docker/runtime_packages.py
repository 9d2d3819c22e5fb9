#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""runtime_packages.py PROGRAM...: prints the Debian packages of the libraries that the programs load, one per line."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "packages"))
import sbom  # noqa: E402

if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    print(*sorted(name.split(":")[0] for name in sbom.packages_of(sbom.loaded_by(sys.argv[1:]))), sep="\n")
