#!/usr/bin/env bash
# Builds the fuzz targets with the stable toolchain, and runs each for a while.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

usage() {
    cat <<'TEXT'
usage: fuzz/run.sh [--seconds N] [TARGET…]     runs each for N seconds (default 3)
       fuzz/run.sh --replay TARGET FILE…       runs these inputs once
       fuzz/run.sh --minimise [TARGET…]        makes the corpora smaller
       fuzz/run.sh --list

What it finds on the way is kept for the next run, under fuzz/target/found; the
corpus under fuzz/corpus is only read. An input that crashes a target goes to
fuzz/artifacts, and the exit status is 1. `cargo fuzz run TARGET` works as well.

Needs g++ (or another C++ compiler), for libFuzzer. Exit status 77: there is none.
TEXT
}

readonly SKIP=77
host=$(rustc -vV | sed -n 's/^host: //p')
readonly host bin=target/$host/release
readonly LIMITS=(-max_len=4096 -rss_limit_mb=1024 -timeout=10 -len_control=0)

# Sanitizers and coverage are not stable options; the compiler is the stable one all the same. The flags are cargo-fuzz's.
export RUSTC_BOOTSTRAP=1
coverage=(-Cpasses=sancov-module)
for option in level=4 inline-8bit-counters pc-table trace-compares; do
    coverage+=("-Cllvm-args=-sanitizer-coverage-$option")
done
export RUSTFLAGS="--cfg fuzzing -Zsanitizer=address ${coverage[*]} ${RUSTFLAGS:-}"
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_odr_violation=0}
export LSAN_OPTIONS=${LSAN_OPTIONS:-suppressions=$PWD/../tests/asan/leaks.txt:print_suppressions=0}

all_targets() { sed -n 's/^name = "\([a-z_]*\)"$/\1/p' Cargo.toml; }

build() {
    command -v "${CXX:-c++}" >/dev/null || { echo "skipped: there is no C++ compiler for libFuzzer" >&2; exit "$SKIP"; }
    local bins=() name
    for name in "$@"; do bins+=(--bin "$name"); done
    # A host that is named explicitly keeps the flags from build scripts.
    CARGO_TARGET_DIR=target cargo build --release --target "$host" "${bins[@]}"
}

# run_target NAME SECONDS: over what is known and what earlier runs have found.
run_target() {
    local name=$1 seconds=$2 found=target/found/$1 log=target/$1.log
    mkdir -p "$found" "corpus/$name" artifacts
    local dictionary=() status=0
    [[ ! -f dictionaries/$name ]] || dictionary=("-dict=dictionaries/$name")
    "$bin/$name" "${LIMITS[@]}" "${dictionary[@]}" -max_total_time="$seconds" -artifact_prefix="artifacts/$name-" \
        "$found" "corpus/$name" >"$log" 2>&1 || status=$?
    if [[ $status != 0 ]]; then
        tail -n 60 "$log"
        printf '%s: failed; to run it again: fuzz/run.sh --replay %s %s\n' "$name" "$name" \
            "$(sed -n 's/.*Test unit written to /fuzz\//p' "$log" | tail -n 1)"
        return 1
    fi
    printf '%-8s %s\n' "$name" "$(grep -aE '^(Done|#[0-9]+.DONE)' "$log" | tail -n 2 | tr -s '\t\n ' ' ')"
}

replay() {
    local name=$1 file
    shift
    build "$name"
    for file in "$@"; do
        [[ -f $file ]] || file=../$file
        "$bin/$name" "${LIMITS[@]}" "$file"
    done
}

# Keeps few and small inputs that reach all that is reached, however often: thousands would be too many for the repository.
minimise() {
    local name less
    for name in "$@"; do
        mkdir -p "target/found/$name" "corpus/$name"
        less=$(mktemp -d -p target)
        "$bin/$name" "${LIMITS[@]}" -max_len=600 -use_counters=0 -set_cover_merge=1 "$less" "corpus/$name" \
            "target/found/$name" 2>"target/$name.log"
        rm -rf "corpus/$name"
        mv "$less" "corpus/$name"
        chmod 755 "corpus/$name"
    done
    for name in "$@"; do
        printf '%-8s %s inputs, %s bytes\n' "$name" "$(find "corpus/$name" -type f | wc -l)" "$(cat "corpus/$name"/* | wc -c)"
    done
}

seconds=3 act=run
while [[ ${1:-} == -* ]]; do
    case $1 in
        --seconds) seconds=$2 && shift ;;
        --replay) shift && replay "$@" && exit ;;
        --minimise) act=minimise ;;
        --list) all_targets && exit ;;
        -h | --help) usage && exit ;;
        *) usage >&2 && exit 2 ;;
    esac
    shift
done
targets=("$@")
[[ ${#targets[@]} -gt 0 ]] || mapfile -t targets < <(all_targets)
build "${targets[@]}"
if [[ $act == minimise ]]; then
    minimise "${targets[@]}"
    exit
fi
failed=0
for name in "${targets[@]}"; do
    run_target "$name" "$seconds" || failed=1
done
exit "$failed"
