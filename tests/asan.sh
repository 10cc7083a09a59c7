#!/usr/bin/env bash
# Runs the Rust tests, and those in C, under AddressSanitizer with its leak detector.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
    cat <<'TEXT'
usage: tests/asan.sh [FILTER… | --c | --help]

  (nothing)  the unit tests and the promises, then the C tests with a library
             that is instrumented itself; five to fifteen minutes on two cores
  FILTER…    only the Rust tests whose names contain one of these
  --c        only the C tests

One build of its own, under target/asan. Takes the stable toolchain. Exit status
77: the toolchain has no sanitizers.
TEXT
}

readonly SKIP=77 PLACE=target/asan HUNGRY=ten_thousand_names_used_once
host=$(rustc -vV | sed -n 's/^host: //p')
readonly host

need_sanitizer() {
    compgen -G "$(rustc --print sysroot)/lib/rustlib/$host/lib/librustc-*rt.asan.a" >/dev/null ||
        { echo "skipped: this toolchain has no AddressSanitizer for $host"; exit "$SKIP"; }
}

run_rust() {
    # Sanitizers are not a stable option; the compiler is the stable one all the same. A host that is named explicitly keeps
    # the flag from build scripts and macros.
    export RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=address ${RUSTFLAGS:-}"
    export ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1:${ASAN_OPTIONS:-}
    export LSAN_OPTIONS=suppressions=$PWD/tests/asan/leaks.txt:print_suppressions=0:${LSAN_OPTIONS:-}
    export FAIRQ_TEST_SLOW=1
    local status=0
    # Ten thousand limiters at once keep a core busy for most of their requests' 30 s: that test has the machine to itself.
    rust_tests --test-threads="$(nproc)" --skip "$HUNGRY" "$@" || status=$?
    [[ $# != 0 ]] || rust_tests "$HUNGRY" || status=$?
    return "$status"
}

rust_tests() {
    CARGO_TARGET_DIR=$PLACE cargo test --target "$host" --all-features --lib --test promises --no-fail-fast -- "$@"
}

case ${1:-} in
    -h | --help) usage && exit ;;
    --c) need_sanitizer && exec tests/c/run.sh --asan-library ;;
    -*) usage >&2 && exit 2 ;;
esac
need_sanitizer
status=0
(run_rust "$@") || status=$?
if [[ $# == 0 ]]; then
    tests/c/run.sh --asan-library || status=$?
fi
exit "$status"
