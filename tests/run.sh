#!/usr/bin/env bash
# Installs what is missing, builds, and runs every check. The last line counts what passed.
set -euo pipefail
# shellcheck source=deploy/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../deploy/lib.sh"

usage() {
  cat <<'END'
Usage: tests/run.sh [--full] [--no-install]

Installs missing Debian packages (as root or with sudo), builds the release preset, and runs the format check, unit and
integration tests, clang-tidy, an installation, and all of it again under AddressSanitizer and
UndefinedBehaviorSanitizer. Logs are in build/logs.

  --full        also ThreadSanitizer, the long random runs, clang-tidy over the tests, and a build of each file by itself
  --no-install  do not look for missing packages
END
}

full=false
install=true
while (($# > 0)); do
  case $1 in
    --full) full=true ;;
    --no-install) install=false ;;
    -h | --help) usage; exit ;;
    *) usage >&2; die "unknown argument $1" ;;
  esac
  shift
done
cd "$root"

passed=0
failed=0
skipped=0

# Whatever happens, the last line is the count.
finish() {
  local status=$?
  if ((status != 0 && failed == 0)); then failed=1; fi
  say "$passed passed, $failed failed, $skipped skipped"
  exit "$status"
}
trap finish EXIT

# check NAME WHAT TO-DO COMMAND...: one check that counts as one test.
check() {
  local name=$1 what=$2 todo=$3
  shift 3
  step "$name" "$what" "$@" || { failed=$((failed + 1)); die "$name failed." "$todo"; }
  passed=$((passed + 1))
}

# run_tests NAME PRESET WHAT CTEST-ARGUMENT...: counts the cases that Google Test reports, and programs that ended badly.
run_tests() {
  local name=$1 preset=$2 what=$3 status=0
  shift 3
  local reports=$log_dir/$name counts
  rm -rf "$reports"
  # One more at a time than there are cores: many tests wait for something most of the time.
  GTEST_OUTPUT=xml:$reports/ step "$name" "$what" ctest --test-dir "build/$preset" --output-on-failure --no-tests=error \
    --parallel "$(($(job_count) + 1))" --output-junit "$reports/ctest.junit" "$@" || status=$?
  counts=$(python3 tests/count.py "$reports") || die "$name: CTest gave no results." "See $log_dir/$name.log."
  read -r cases failures left_out <<<"$counts"
  passed=$((passed + cases - failures - left_out))
  failed=$((failed + failures))
  skipped=$((skipped + left_out))
  if ((status != 0)); then
    die "$name: $failures of $cases tests failed." \
      "Run a program again: ctest --test-dir build/$preset --output-on-failure -R NAME"
  fi
}

# Our C++ files, whether or not this is a git checkout.
sources() {
  git ls-files --cached --others --exclude-standard -- '*.cc' '*.h' 2>/dev/null ||
    find . -path ./build -prune -o \( -name '*.cc' -o -name '*.h' \) -print
}

check_format() {
  sources | while read -r file; do if [[ -e $file ]]; then printf '%s\0' "$file"; fi; done |
    xargs -0 -n 32 -P "$(job_count)" clang-format-19 --dry-run -Werror
}

# An installation works by itself: programs start; protocol files, the demo model and the licence are there.
check_installation() {
  local prefix=$root/build/installed program
  rm -rf "$prefix"
  cmake --install build/release --prefix "$prefix"
  for program in baton baton-router baton-prefill baton-decode; do
    "$prefix/bin/$program" --help
  done
  test -e "$prefix/share/baton/proto/baton/v1/inference.proto"
  test -e "$prefix/share/baton/models/demo-chat/config.json"
  test -e "$prefix/share/doc/baton/LICENSE"
}

if $install; then install_packages; fi
for tool in cmake ninja clang++-19 clang-format-19 clang-tidy-19 python3; do
  command -v "$tool" >/dev/null || die "$tool is missing." "Run tests/run.sh without --no-install, or install deploy/packages.txt."
done

check format "clang-format over our sources" "Run clang-format-19 -i on the files named above." check_format
build_preset release
run_tests test release "unit and integration tests" --label-exclude '^long$'
check install-check "installing into build/installed and starting each program" "See the log." check_installation
check tidy "clang-tidy over our sources" "Fix what is named above; .clang-tidy says which checks run." \
  python3 tests/clang_tidy.py build/release
build_preset asan
run_tests test-asan asan "tests under AddressSanitizer and UndefinedBehaviorSanitizer" \
  --label-exclude '^long$'
if $full; then
  build_preset separate
  check tidy-tests "clang-tidy over the tests" "Fix what is named above; .clang-tidy says which checks run." \
    python3 tests/clang_tidy.py --tests build/release
  build_preset tsan
  run_tests test-tsan tsan "tests under ThreadSanitizer" --label-regex '^tsan$'
  run_tests test-long release "long random runs" --label-regex '^long$'
fi
