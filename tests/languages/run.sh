#!/usr/bin/env bash
# One line for processes of several languages: builds their workers, and runs line.py. Python is one that
# bindings/python/run-tests.sh has made, or $FAIRQ_PYTHON, with the package installed. Exit status 77: something is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

readonly SKIP=77
target=${CARGO_TARGET_DIR:-target}
python=${FAIRQ_PYTHON:-$(ls -t "$target"/python-venv/*/bin/python 2>/dev/null | head -n 1)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

skip() {
    printf '%s\n' "$*"
    exit "$SKIP"
}

find_server() {
    local server
    for server in "${FAIRQ_REDIS70:-}" "$(command -v redis-server || true)" target/servers/*/bin/redis-server; do
        [[ ! -x $server ]] || { echo "$server"; return; }
    done
}

server=$(find_server)
[[ -n $server ]] || skip "no redis-server"
[[ -n $python ]] && "$python" -c 'import fairq' 2>/dev/null || skip "no Python with fairq: run bindings/python/run-tests.sh first"
command -v cc >/dev/null || skip "no C compiler"

cargo build --release --all-features --bin fairq --lib
cargo build --all-features --example line_worker # as the tests were built: an example needs what tests need
cc -std=c99 -D_POSIX_C_SOURCE=200809L -Wall -Wextra -pedantic -Werror -Iinclude tests/languages/worker.c \
    "$target/release/libfairq.so" -o "$work/worker"
ln -s "$(realpath "$target/release/libfairq.so")" "$work/libfairq.so.0"

workers=(rust="$target/debug/examples/line_worker" c="$work/worker" python="$python tests/languages/worker.py")
if command -v go >/dev/null; then
    bindings/go/run-tests.sh --worker "$work/go"
    workers+=(go="$work/go")
fi
# What bindings/java/run-tests.sh has built.
java_classes=bindings/java/fairq-tests/target/worker.classpath
if [[ -r $java_classes ]] && command -v java >/dev/null; then
    workers+=(java="java -cp $(cat "$java_classes") io.fairq.tests.LineWorker")
fi

LD_LIBRARY_PATH=$work "$python" tests/languages/line.py "$server" "$target/release/fairq" "${workers[@]}"
