#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# build.sh OUT: installs the packages that building needs, builds the release preset without tests, and stages into OUT
# what deploy/docker/runtime.sh needs. The build stage of the Dockerfile runs this script as root.
set -euo pipefail

# shellcheck source=deploy/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
[[ $# == 1 ]] || die "build.sh expects one folder, which it writes."

packages=$(sed '/^# tests/,$d; s/#.*//' "$root/deploy/packages.txt")
# shellcheck disable=SC2086  # one word per package
install_as_root $packages
cmake -S "$root" --preset release -DBATON_BUILD_TESTS=OFF
cmake --build "$root/build/release" --parallel "$(job_count)"
"$root/deploy/docker/stage.sh" "$root/build/release" "$1"
