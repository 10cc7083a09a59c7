#!/usr/bin/env bash
# Starts the gateway: installs what it needs into target/rag_gateway, then runs uvicorn.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
venv=$root/target/rag_gateway/venv

usage() {
    cat <<'END'
usage: examples/rag_gateway/run.sh [options]

  --port N                where to listen                       (8000)
  --host ADDRESS          on which interface                    (127.0.0.1)
  --processes N           how many; more than one with FAIRQ_URL  (1)
  --limit N               answers at once                       (GATEWAY_LIMIT, 3)
  --max-queue N           how many may wait                     (GATEWAY_MAX_QUEUE, 12)
  --max-wait SECONDS      how long they may                     (GATEWAY_MAX_WAIT, 30)
  --tokens-per-second N   how fast the model is                 (GATEWAY_TOKENS_PER_SECOND, 20)
  --install-only          install, and start nothing

FAIRQ_URL=redis://… makes all processes, on all machines, share the limit;
without it the limit is kept in the memory of the one process.
FAIRQ_LIBRARY is the path of a libfairq that is built already; otherwise cargo
builds it. PYTHON is the Python to use (python3), 3.9 or newer.
END
}

fail() {
    printf 'run.sh: %s\n' "$*" >&2
    exit 64
}

port=8000 host=127.0.0.1 processes=1 start=yes
while [[ $# -gt 0 ]]; do
    case $1 in
        -h | --help) usage; exit ;;
        --install-only) start=no; shift; continue ;;
        --*) [[ $# -ge 2 ]] || fail "$1 needs a value" ;;
    esac
    case $1 in
        --port) port=$2 ;;
        --host) host=$2 ;;
        --processes) processes=$2 ;;
        --limit) export GATEWAY_LIMIT=$2 ;;
        --max-queue) export GATEWAY_MAX_QUEUE=$2 ;;
        --max-wait) export GATEWAY_MAX_WAIT=$2 ;;
        --tokens-per-second) export GATEWAY_TOKENS_PER_SECOND=$2 ;;
        *) fail "unknown option $1; see --help" ;;
    esac
    shift 2
done
[[ $processes == 1 || -n ${FAIRQ_URL:-} ]] ||
    fail "$processes processes share a limit only through Redis: set FAIRQ_URL=redis://…"

# is_installed: whether nothing has changed since the last time.
is_installed() {
    [[ -e $venv/installed ]] || return 1
    [[ -z $(find "$here"/requirements.txt "$root"/{src,lua,Cargo.toml,bindings/python/{src,pyproject.toml}} \
        -not -name '*.pyc' -type f -newer "$venv/installed" -print -quit) ]]
}

if ! is_installed; then
    printf 'Installing into %s …\n' "${venv#"$PWD"/}"
    [[ -x $venv/bin/pip ]] || "${PYTHON:-python3}" -m venv "$venv"
    touch "$venv/installing"
    "$venv/bin/pip" install --quiet --disable-pip-version-check "$root/bindings/python" -r "$here/requirements.txt"
    mv "$venv/installing" "$venv/installed"
fi
[[ $start == yes ]] || exit 0

where=${FAIRQ_URL:+through Redis}
printf 'http://%s:%s  (%s process(es), limit kept %s; Ctrl-C ends)\n' "$host" "$port" "$processes" "${where:-in memory}"
# Whoever streams at the end is given two seconds.
exec "$venv/bin/uvicorn" app:app --app-dir "$here" --host "$host" --port "$port" --workers "$processes" \
    --log-level warning --timeout-graceful-shutdown 2
