#!/usr/bin/env bash
# Starts the gateway on a free port, and asks it. Exit status 77: something that it needs is missing.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

skip() {
    printf 'run-tests.sh: %s\n' "$*"
    exit 77
}

command -v mvn >/dev/null || skip "no Maven (on Debian: apt-get install maven)"
command -v javac >/dev/null || skip "no JDK (on Debian: apt-get install openjdk-17-jdk-headless)"
if ! command -v cargo >/dev/null && [[ -z ${FAIRQ_LIBRARY:-} ]]; then
    skip "no cargo to build the library with, and FAIRQ_LIBRARY names none"
fi

# As with run.sh, jars; and of all the tests only those of the example.
mvn --quiet --batch-mode --file "$here/with-fairq.xml" package \
    -Dtest=GatewayTest -Dsurefire.failIfNoSpecifiedTests=false -Dmaven.javadoc.skip=true -Dmaven.source.skip=true "$@"
