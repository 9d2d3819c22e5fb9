#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# stage.sh BUILD OUT: writes OUT/root, the files of the image that no Debian package has, and OUT/runtime-packages.txt, the
# Debian packages with the libraries that the programs load.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$1 usr=$2/root/usr
cmake --install "$build" --prefix "$usr" --strip >/dev/null
# An image has no manuals, completions, units and configuration.
rm -rf "${usr:?}/etc" "${usr:?}/lib" "$usr"/share/{man,bash-completion,zsh,fish}

export PYTHONDONTWRITEBYTECODE=1
version=$("$usr/bin/baton" --version)
/usr/bin/python3 "$here/../packages/sbom.py" baton "${version#baton }" "$usr"/bin/* >"$usr/share/doc/baton/sbom.spdx.json"
/usr/bin/python3 "$here/runtime_packages.py" "$usr"/bin/* >"$2/runtime-packages.txt"
