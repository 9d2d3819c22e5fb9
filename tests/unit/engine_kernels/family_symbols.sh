#!/bin/sh
# Every symbol that the linker may share between object files must, in those compiled for one instruction family, name that
# family: a common inline function compiled with AVX-512 could otherwise end up in everybody's path.
# Usage: family_symbols.sh libbaton_kernels.a
set -u
status=0
for family in scalar avx2 avx512 avx512_vnni avx512_bf16; do
  # The archive's symbols of that member: "archive:member:address type name".
  symbols=$(nm -A -C "$1" | grep "kernels_$family\.cc\.o:") || continue # not built for this architecture
  shared=$(printf '%s\n' "$symbols" | grep -E ': ?[0-9a-f]* [VWu] ' | grep -v "baton::cpu::$family::")
  if [ -n "$shared" ]; then
    printf 'kernels_%s.cc shares code with the rest of the program:\n%s\n' "$family" "$shared"
    status=1
  fi
done
exit $status
