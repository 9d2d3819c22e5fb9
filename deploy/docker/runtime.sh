#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# runtime.sh OUT: makes the image of its base: Debian packages of libraries, programs, demo model, user. OUT is the folder
# that deploy/docker/stage.sh wrote. The Dockerfile runs this script as root.
set -eu
out=$1

export DEBIAN_FRONTEND=noninteractive
apt-get update
xargs apt-get install -y --no-install-recommends <"$out/runtime-packages.txt" || {
  echo "error: RUNTIME_BASE has no package of a library that the programs load: expected Debian 12, or an image made of it" >&2
  exit 1
}
apt-get clean
rm -rf /var/lib/apt/lists/* /var/cache/debconf/*-old /var/log/apt /var/log/dpkg.log

cp -a --no-preserve=ownership "$out/root/." /
echo 'baton:x:65532:' >>/etc/group
echo 'baton:x:65532:65532::/nonexistent:/usr/sbin/nologin' >>/etc/passwd

for program in baton baton-router baton-prefill baton-decode; do
  if ldd "/usr/bin/$program" | grep 'not found' >&2; then exit 1; fi
  "/usr/bin/$program" --version
done
