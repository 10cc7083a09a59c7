#!/usr/bin/env bash
# Runs the gateway's tests in a real browser. Exit status 77: something that they need is missing.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
venv=$here/../../target/rag_gateway/venv

skip() {
    printf 'run-tests.sh: %s\n' "$*"
    exit 77
}

# any COMMAND...: whether one of them is there.
any() { [[ -n $(command -v "$@") ]]; }

any chromium chromium-browser google-chrome || skip "no Chromium (on Debian: apt-get install chromium chromium-driver)"
any chromedriver || skip "no chromedriver (on Debian: apt-get install chromium-driver)"
any redis-server || compgen -G "$here/../../target/servers/*/bin/*-server" >/dev/null ||
    skip "no redis-server (on Debian: apt-get install redis-server)"
if ! any cargo && [[ -z ${FAIRQ_LIBRARY:-} ]]; then
    skip "no cargo to build the library with, and FAIRQ_LIBRARY names none"
fi

"$here/run.sh" --install-only
"$venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements-test.txt"
cd "$here"
"$venv/bin/python" -m pytest -q -p no:cacheprovider test_e2e.py "$@"
