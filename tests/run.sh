#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds, and runs every check. The last line counts what passed; the lines before it name each
# test that was skipped, with the reason.
set -euo pipefail
# shellcheck source=deploy/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../deploy/lib.sh"

usage() {
  cat <<'END'
Usage: tests/run.sh [--quick | --full] [--no-install]

Installs missing Debian packages (as root or with sudo), builds the release preset, and runs the format check, unit and
integration tests, clang-tidy, an installation, and all of it again under AddressSanitizer and
UndefinedBehaviorSanitizer. Logs are in build/logs.

  --quick       the inner loop: checks the format of the files that changed since main, builds the release preset, and
                runs the unit tests that are built from a changed file; says what it left out
  --full        also ThreadSanitizer, the long random runs, a sample of mutants, clang-tidy over the tests, and a build of
                each file by itself
  --no-install  do not look for missing packages

Files changed since main: all that differ from `git merge-base HEAD main`, uncommitted and untracked ones included.
docs/testing.md describes the suites.
END
}

mode=default
install=true
while (($# > 0)); do
  case $1 in
    --quick | --full) [[ $mode == default ]] || die "--quick and --full exclude each other."; mode=${1#--} ;;
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
skips=() # a text per run of tests with skips: the run's name, then the reasons and the tests

# The last line is the count, also after a failure.
finish() {
  local status=$?
  if ((status != 0 && failed == 0)); then failed=1; fi
  if ((${#skips[@]} > 0)); then printf '%s\n' "${skips[@]}"; fi
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
  local reports=$log_dir/$name counts cases failures left_out
  rm -rf "$reports"
  # One more at a time than there are cores: many tests wait for something most of the time.
  GTEST_OUTPUT=xml:$reports/ step "$name" "$what" ctest --test-dir "build/$preset" --output-on-failure --no-tests=error \
    --parallel "$(($(job_count) + 1))" --output-junit "$reports/ctest.junit" "$@" || status=$?
  counts=$(python3 tests/count.py "$reports") || die "$name: CTest gave no results." "See $log_dir/$name.log."
  read -r cases failures left_out <<<"$counts"
  passed=$((passed + cases - failures - left_out))
  failed=$((failed + failures))
  skipped=$((skipped + left_out))
  if ((left_out > 0)); then skips+=("skipped in $name:"$'\n'"$(<"$reports/skipped.txt")"); fi
  if ((status != 0 || failures != 0)); then
    die "$name: $failures of $cases tests failed." \
      "Run a program again: ctest --test-dir build/$preset --output-on-failure -R NAME"
  fi
}

# Our C++ files, whether or not this is a git checkout.
sources() {
  git ls-files --cached --others --exclude-standard -- '*.cc' '*.h' 2>/dev/null ||
    find . -path ./build -prune -o \( -name '*.cc' -o -name '*.h' \) -print
}

# check_format FILE...: those that exist. Fails without any, which would make clang-format read its standard input.
check_format() {
  local file
  for file in "$@"; do
    if [[ -e $file ]]; then printf '%s\0' "$file"; fi
  done | xargs -0 --no-run-if-empty -n 32 -P "$(job_count)" clang-format-19 --dry-run -Werror
}

check_all_formats() {
  local listing files
  listing=$(sources)
  mapfile -t files <<<"$listing"
  [[ -e ${files[0]} ]] || die "no C++ files were found in $PWD."
  check_format "${files[@]}"
  local unlicensed
  unlicensed=$(grep --files-without-match SPDX-License-Identifier "${files[@]}") || true
  [[ -z $unlicensed ]] || die "no line SPDX-License-Identifier in:" "$unlicensed"
}

# An installation works by itself: programs start; protocol files, the demo model and the licences are there.
check_installation() {
  local prefix=$root/build/installed program file
  rm -rf "$prefix"
  cmake --install build/release --prefix "$prefix"
  for program in baton baton-router baton-prefill baton-decode; do
    "$prefix/bin/$program" --help
  done
  for file in baton/proto/baton/v1/inference.proto baton/models/demo-chat/config.json doc/baton/LICENSE \
    doc/baton/NOTICE; do
    [[ -s $prefix/share/$file ]] || die "$prefix/share/$file is missing or empty."
  done
  [[ ! -e $prefix/share/baton/models/training && ! -e $prefix/share/baton/models/demo-draft ]] ||
    die "$prefix/share/baton/models has more than what programs use."
}

# The inner loop. tests/quick.py says which tests are built from a changed file.
run_quick() {
  local base changed formatted plan
  base=$(git merge-base HEAD main 2>/dev/null || git merge-base HEAD origin/main 2>/dev/null) ||
    die "--quick compares with the branch main, and there is none here." "Run tests/run.sh without --quick."
  changed=$({ git diff --name-only --no-renames "$base" && git ls-files --others --exclude-standard; } | sort -u)
  formatted=$(sed -n '/\.\(cc\|h\)$/p' <<<"$changed")
  if [[ -n $formatted ]]; then
    mapfile -t formatted <<<"$formatted"
    check format "clang-format over ${#formatted[@]} changed files" "Run clang-format-19 -i on the files named above." \
      check_format "${formatted[@]}"
  fi
  build_preset release
  plan=$(python3 tests/quick.py build/release <<<"$changed") || die "cannot tell which tests the change reaches."
  sed -n '2,$p' <<<"$plan"
  plan=$(head -n 1 <<<"$plan")
  if [[ -n $plan ]]; then
    run_tests test-quick release "unit tests of what changed" --tests-regex "$plan"
  fi
}

if $install; then install_packages; fi
for tool in cmake ninja clang++-19 clang-format-19 clang-tidy-19 python3; do
  command -v "$tool" >/dev/null || die "$tool is missing." "Run tests/run.sh without --no-install, or install deploy/packages.txt."
done

if [[ $mode == quick ]]; then
  run_quick
  exit
fi
check format "clang-format over our sources" "Run clang-format-19 -i on the files named above." check_all_formats
check words "sentences that hide their subject" "Reword the lines named above; CONTRIBUTING.md says how." python3 tests/words.py
build_preset release
run_tests test release "unit and integration tests" --label-exclude '^long$'
check install-check "installing into build/installed and starting each program" "See the log." check_installation
check tidy "clang-tidy over our sources" "Fix what is named above; .clang-tidy says which checks run." \
  python3 tests/clang_tidy.py build/release
build_preset asan
run_tests test-asan asan "tests under AddressSanitizer and UndefinedBehaviorSanitizer" \
  --label-exclude '^long$'
if [[ $mode == full ]]; then
  build_preset separate
  check tidy-tests "clang-tidy over the tests" "Fix what is named above; .clang-tidy says which checks run." \
    python3 tests/clang_tidy.py --tests build/release
  build_preset tsan
  run_tests test-tsan tsan "tests under ThreadSanitizer" --label-regex '^tsan$'
  run_tests test-long release "long random runs" --label-regex '^long$'
  check mutation "unit tests against changed code" "Add a test that notices each survivor named above." \
    python3 tests/mutation/run.py --sample 300 --seed 1 --at-least 0.9
fi
