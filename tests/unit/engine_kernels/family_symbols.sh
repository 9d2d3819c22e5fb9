#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every symbol that the linker may share between object files must, in those compiled for one instruction family, name that
# family: a common inline function compiled with AVX-512 could otherwise end up in everybody's path.
# Usage: family_symbols.sh libbaton_kernels.a FAMILY...
set -u
archive=$1
shift
[ $# -gt 0 ] || { echo "no families given: usage: family_symbols.sh ARCHIVE FAMILY..."; exit 1; }
# "archive:member:address type name", a line per symbol.
symbols=$(nm -A -C "$archive") || { echo "nm could not read $archive"; exit 1; }
status=0
for family in "$@"; do
  # A family's own functions show that its member was found and has symbols.
  of_family=$(printf '%s\n' "$symbols" | grep "kernels_$family\.cc\.o:")
  if ! printf '%s\n' "$of_family" | grep -q "baton::cpu::$family::"; then
    echo "$archive has no functions of kernels_$family.cc"
    status=1
    continue
  fi
  shared=$(printf '%s\n' "$of_family" | grep -E ': ?[0-9a-f]* [VWu] ' | grep -v "baton::cpu::$family::")
  if [ -n "$shared" ]; then
    printf 'kernels_%s.cc shares code with the rest of the program:\n%s\n' "$family" "$shared"
    status=1
  fi
done
exit $status
