# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Functions that the scripts share, for bash with `set -euo pipefail`. The functions need only Debian's base packages.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
log_dir=$root/build/logs
export LC_ALL=C.UTF-8

say() { printf '%s\n' "$*"; }

# die WHAT-FAILED [WHAT-TO-DO]...
die() {
  printf 'error: %s\n' "$1" >&2
  shift
  if (($# > 0)); then printf '  %s\n' "$@" >&2; fi
  exit 1
}

# Prints how many compilers to run at a time: one per core, and per 1.5 GiB of memory.
job_count() {
  local cores memory_kib
  cores=$(nproc)
  memory_kib=$(sed -n 's/^MemTotal: *\([0-9]*\) kB/\1/p' /proc/meminfo 2>/dev/null) || memory_kib=0
  local fitting=$((memory_kib / 1572864))
  if ((fitting < 1)); then fitting=1; fi
  echo $((cores < fitting ? cores : fitting))
}

# step NAME WHAT COMMAND...: runs a command, prints one line with WHAT and the time, and returns the command's status.
# The output goes to a log. If the command fails, `step` shows the end of the log.
#
# A function runs in a separate shell. On the left of `||`, bash ignores errexit, also in subshells: a function called
# there would continue after a failed command, and return the status of its last command.
step() {
  local name=$1 what=$2 start=$SECONDS status=0
  shift 2
  if [[ $(type -t "$1") == function ]]; then
    set -- bash -euo pipefail -O inherit_errexit -c "$(declare -f); $(declare -p root log_dir); \"\$@\"" "$1" "$@"
  fi
  mkdir -p "$log_dir"
  local log=$log_dir/$name.log
  printf '%-16s %s ... ' "$name" "$what"
  "$@" >"$log" 2>&1 </dev/null || status=$?
  if ((status == 0)); then
    printf 'ok, %d s\n' $((SECONDS - start))
  else
    printf 'FAILED after %d s\n' $((SECONDS - start))
    tail -n 40 "$log" | sed 's/^/    /'
    say "  The whole log: $log"
  fi
  return "$status"
}

# Prints the packages of deploy/packages.txt that are not installed, one per line. Fails if dpkg-query or the list fails.
missing_packages() {
  local wanted installed
  wanted=$(sed 's/#.*//' "$root/deploy/packages.txt" | tr -s ' \t' '\n' | sed '/^$/d' | sort -u) || return
  # Node.js of another origin has its own npm, and conflicts with Debian's.
  if command -v npm >/dev/null; then wanted=$(sed '/^npm$/d' <<<"$wanted"); fi
  [[ -n $wanted ]] || return 1
  # For an unknown package, dpkg-query fails with 1: the package is missing.
  # shellcheck disable=SC2086  # one word per package
  installed=$({ dpkg-query -W -f='${db:Status-Status} ${Package}\n' $wanted 2>/dev/null || (($? == 1)); } |
    sed -n 's/^installed //p' | sort -u) || return
  comm -23 <(echo "$wanted") <(echo "$installed")
}

# as_root COMMAND...
as_root() {
  if [[ $(id -u) == 0 ]]; then
    "$@"
  else
    sudo "$@"
  fi
}

# install_as_root PACKAGE...: installs packages and starts none of their services. Debian asks policy-rc.d before the
# start of a service; 101 means no. Tests need the programs of the package prometheus: its service stays off at boot, too.
install_as_root() (
  policy=/usr/sbin/policy-rc.d
  if [[ ! -e $policy ]]; then
    trap 'as_root rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
    as_root chmod 755 "$policy"
  fi
  as_root apt-get update &&
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@" || exit
  if [[ " $* " == *" prometheus "* ]] && command -v systemctl >/dev/null; then
    as_root systemctl disable prometheus.service
  fi
)

# Installs the missing packages of deploy/packages.txt. If no package is missing, changes nothing and needs no rights.
install_packages() {
  local names missing
  names=$(missing_packages) ||
    die "cannot tell which packages are missing." "This script needs Debian's dpkg-query, and $root/deploy/packages.txt."
  if [[ -z $names ]]; then return; fi
  mapfile -t missing <<<"$names"
  if [[ $(id -u) != 0 ]] && ! command -v sudo >/dev/null; then
    die "${#missing[@]} Debian packages are missing, and installing them needs root or sudo." \
      "As root, run: apt-get install --no-install-recommends ${missing[*]}"
  fi
  if [[ $(id -u) != 0 ]]; then sudo -v || die "sudo did not grant root rights to install: ${missing[*]}"; fi
  step install "installing ${#missing[@]} Debian packages" install_as_root "${missing[@]}" ||
    die "the packages could not be installed." \
      "Check the network and the package sources (Debian 12), then run this script again."
}

# build_preset PRESET [TARGET]...: configures and builds into build/PRESET.
build_preset() {
  local preset=$1
  shift
  step "configure-$preset" "configuring build/$preset" cmake -S "$root" --preset "$preset" ||
    die "the build could not be configured." "Is a package missing? $root/deploy/packages.txt lists all packages."
  step "build-$preset" "building build/$preset" \
    cmake --build "$root/build/$preset" --parallel "$(job_count)" ${*:+--target "$@"} ||
    die "the build failed." "If the compiler was killed, memory ran out: free memory and run this script again."
}
