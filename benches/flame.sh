#!/usr/bin/env bash
# Draws where the time goes under the saturated load: docs/flame/server.svg and docs/flame/client.svg.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
    cat <<'END'
usage: benches/flame.sh [FOLDER]

FOLDER is docs/flame if not given. Needs Linux's perf and inferno (cargo install
inferno), and a server with symbols: FAIRQ_REDIS62 names one, or the one that
./test.sh servers installs is taken. Symbols of the C library make it better.
END
}

case ${1:-} in
    -h | --help) usage; exit 0 ;;
esac
folder=${1:-docs/flame}
server=${FAIRQ_REDIS62:-$(find target/servers/redis62 -name redis-server -type f | head -1)}
for needed in perf inferno-collapse-perf inferno-flamegraph "${server:-redis-server}"; do
    command -v "$needed" >/dev/null || { echo "there is no $needed; see --help" >&2; exit 2; }
done

cargo build --release --all-features
work=$(mktemp -d)
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
"$server" --port "$port" --save '' --dir "$work" --logfile "$work/log" &
redis=$!
trap 'kill "$redis" 2>/dev/null; wait; rm -rf "$work"' EXIT

# Rust's own frames between those that mean something.
without_wrappers() {
    sed -E 's/;(<?&?(mut )?(dyn )?(std|core|alloc|__rust_begin)[:_]|<(alloc|std|core|&dyn)|catch_unwind|do_call|call_once|\{closure|_start|start_thread|clone3|__libc_start)[^;]*/;/g; s/;;+/;/g'
}

# picture NAME TITLE [PERF ARGUMENT...]: samples while processes compete; itself and its children, if nothing else is said.
picture() {
    local name=$1 title=$2
    shift 2
    perf record --quiet -F 199 -e cpu-clock --call-graph dwarf,8192 -o "$work/$name" "$@" -- \
        target/release/fairq bench --url "redis://127.0.0.1:$port" --only processes
    perf script -i "$work/$name" 2>/dev/null | inferno-collapse-perf | without_wrappers |
        inferno-flamegraph --title "$title" --minwidth 0.4 --hash >"$folder/$name.svg"
}

mkdir -p "$folder"
picture server 'The server, while 1 to 16 processes compete for a limit of 4 and 1,000 wait' -p "$redis"
picture client 'The processes that compete'
ls -l "$folder"
