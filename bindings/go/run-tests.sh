#!/usr/bin/env bash
# Tests the Go side as its users meet it: with an installed library, found by pkg-config.
set -euo pipefail
called_from=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")"

usage() {
    cat <<'TEXT'
usage: bindings/go/run-tests.sh [--quick | --worker FILE | --help]

  (nothing)      everything: format, vet, staticcheck, tests, race detector, cgo
                 checks, static linking, and the oldest Go that is there
  --quick        format, vet, and the tests in their short form
  --worker FILE  only builds the worker of tests/languages, with the library in it

Needs go, a C compiler, pkg-config and cargo; a redis-server for half of the
tests. The oldest Go is the one in /usr/lib/go-1.*/bin (on Debian and Ubuntu
from a package such as golang-1.19-go). staticcheck is built into target/.
Exit status 77: something is missing.
TEXT
}

readonly SKIP=77
readonly STATICCHECK=v0.8.2
target=$(realpath -m "${CARGO_TARGET_DIR:-../../target}")
prefix=$target/go/prefix

step() { printf '\n--- %s (after %d s)\n' "$*" "$SECONDS"; }

die() {
    printf 'failed: %s\n' "$*" >&2
    exit 1
}

skip() {
    echo "skipped: $*" >&2
    exit "$SKIP"
}

# skip_part WHAT WHY: a part that cannot run here; where CI is true, it has to.
skip_part() {
    [[ ${CI:-} != true ]] || die "$1: $2"
    echo "left out: $1: $2"
}

need_tools() {
    local tool
    for tool in go pkg-config cargo "${CC:-cc}"; do
        command -v "$tool" >/dev/null || skip "there is no $tool"
    done
    [[ $(go env CGO_ENABLED) == 1 ]] || skip "this go is without cgo"
}

install_library() {
    step "install"
    ../../install.sh --prefix "$prefix" | tail -n 1
    export PKG_CONFIG_PATH=$prefix/lib/pkgconfig LD_LIBRARY_PATH=$prefix/lib
    # Go does not notice that pkg-config answers otherwise, or that a header has changed, and links what it built before:
    # but it does notice these.
    CGO_CFLAGS="-O2 -g -DFAIRQ_HEADER=$(cksum <"$prefix/include/fairq.h" | cut -d ' ' -f 1)"
    CGO_LDFLAGS="-O2 -g -L$prefix/lib"
    export CGO_CFLAGS CGO_LDFLAGS
    # No other toolchain is fetched, and no version control is asked.
    export GOTOOLCHAIN=local GOFLAGS=-buildvcs=false
}

check_format() {
    step "gofmt"
    local wrong
    wrong=$(gofmt -l .)
    [[ -z $wrong ]] || die "gofmt would change $wrong"
}

run_vet() {
    step "go vet"
    go vet ./...
}

run_staticcheck() {
    step "staticcheck $STATICCHECK"
    local program=$target/go/$STATICCHECK/staticcheck
    if [[ ! -x $program ]]; then
        GOBIN=$(dirname "$program") go install "honnef.co/go/tools/cmd/staticcheck@$STATICCHECK" ||
            { skip_part staticcheck "it cannot be installed"; return; }
    fi
    "$program" ./...
}

run_tests() {
    step "go test $*"
    go test -count=1 -timeout 170s "$@" ./...
}

run_race_detector() {
    step "go test -race -short"
    go test -race -short -count=1 -timeout 170s ./...
}

# Looks at each pointer that goes to C, and at what C's side of memory holds.
run_cgo_checks() {
    step "go test with cgo checks"
    GODEBUG=cgocheck=1 GOEXPERIMENT=cgocheck2 go test -short -count=1 -timeout 170s . ./fairqhttp
}

# The library in the program: it runs where none is installed.
run_static() {
    step "go test -tags fairq_static"
    local program=$target/go/static.test
    go test -c -tags fairq_static -o "$program" .
    env -u LD_LIBRARY_PATH "$program" -test.short -test.run 'Permit|Example'
    rm "$program"
}

oldest_go() {
    local candidates
    candidates=$(compgen -G '/usr/lib/go-1.*/bin/go' | sort -V) || true
    head -n 1 <<<"$candidates"
}

run_oldest_go() {
    step "the oldest Go"
    local oldest
    oldest=$(oldest_go)
    [[ -n $oldest ]] || { skip_part "the oldest Go" "there is only $(go version)"; return; }
    "$oldest" version
    "$oldest" vet ./...
    "$oldest" test -short -count=1 -timeout 170s ./...
}

build_worker() {
    step "worker"
    go build -tags fairq_static -o "$1" ./internal/lineworker
}

worker=
case ${1:-all} in
    all | --quick) ;;
    --worker)
        [[ -n ${2:-} ]] || { usage >&2 && exit 2; }
        worker=$(cd "$called_from" && realpath -m "$2")
        ;;
    -h | --help) usage && exit ;;
    *) usage >&2 && exit 2 ;;
esac

need_tools
go version
install_library
if [[ -n $worker ]]; then
    build_worker "$worker"
    exit
fi
check_format
run_vet
if [[ ${1:-} == --quick ]]; then
    run_tests -short
else
    run_staticcheck
    run_tests
    run_race_detector
    run_cgo_checks
    run_static
    run_oldest_go
fi
step "passed"
