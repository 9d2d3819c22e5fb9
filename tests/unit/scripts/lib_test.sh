#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# deploy/lib.sh: a step fails when any command of its function does, and packages are never taken for installed.
# shellcheck disable=SC2016,SC2154,SC2317  # functions are called by name, with variables from their callers
set -euo pipefail
# shellcheck source=deploy/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../../deploy/lib.sh"
folder=$(mktemp -d "${TMPDIR:-/tmp}/baton-lib-test-XXXXXX")
trap 'rm -rf "$folder"' EXIT
log_dir=$folder/logs
failed=0

# expect fails|passes WHAT COMMAND...
expect() {
  local wanted=$1 what=$2 status=0 got=passes
  shift 2
  ("$@") >"$folder/output" 2>&1 || status=$?
  if ((status != 0)); then got=fails; fi
  if [[ $got != "$wanted" ]]; then
    printf '%s: it %s, expected that it %s\n' "$what" "$got" "$wanted"
    sed 's/^/    /' "$folder/output"
    failed=1
  fi
}

fine() { true; }
fails_in_the_middle() { echo before; false; echo after; }
fails_in_a_pipe() { false | cat; echo after; }
fails_in_a_substitution() { local text; text=$(false; echo after); echo "$text"; }
fails_in_what_it_calls() { fails_in_the_middle; echo after; }
dies() { die "the reason"; }
wants_its_arguments() { [[ $# == 2 && $1 == "two words" && $2 == '$HOME' ]]; }
wants_its_variables() { [[ -n $root && -n $log_dir && $GIVEN == yes ]]; }

expect passes "a function without a failure" step log what fine
expect fails "a function whose middle command fails" step log what fails_in_the_middle
expect fails "a function with a pipe whose first command fails" step log what fails_in_a_pipe
expect fails "a function with a substitution that fails" step log what fails_in_a_substitution
expect fails "a function that calls one that fails" step log what fails_in_what_it_calls
expect fails "a function that dies" step log what dies
expect passes "a function with arguments" step log what wants_its_arguments "two words" '$HOME'
GIVEN=yes expect passes "a function with variables" step log what wants_its_variables
expect passes "a command" step log what true
expect fails "a command that fails" step log what false

grep -q 'error: the reason' <(step log what dies 2>&1) || { echo "a step that fails does not show its log"; failed=1; }

# Installation.
# Takes what it is sent, as tee does: else the sender may die of SIGPIPE.
as_root() {
  if [[ $1 == tee ]]; then cat >/dev/null; fi
  [[ $* != *"$refused"* ]]
}
refused="apt-get update" expect fails "an installation whose package lists cannot be had" step log what install_as_root x
refused="apt-get install" expect fails "an installation that fails" step log what install_as_root x
refused=nothing expect passes "an installation" step log what install_as_root x

mkdir -p "$folder/root/deploy"
root=$folder/root
echo 'bash no-such-package # a comment' >"$root/deploy/packages.txt"
[[ $(missing_packages) == no-such-package ]] || { echo "missing packages: $(missing_packages)"; failed=1; }
dpkg-query() { return 1; } # no package is installed
npm() { :; }
echo 'no-such-package npm' >"$root/deploy/packages.txt"
[[ $(missing_packages) == no-such-package ]] || { echo "an npm that no package installed is not taken"; failed=1; }
unset -f npm
dpkg-query() { return 127; }
expect fails "looking for packages without dpkg-query" install_packages
unset -f dpkg-query
rm "$root/deploy/packages.txt"
expect fails "looking for packages without their list" install_packages

exit "$failed"
