#!/usr/bin/env bash
# Builds the jars and the library in them, and tests them: with JNA on the Java of Maven, with FFM on the newest JDK.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

usage() {
    cat <<'END'
usage: ./run-tests.sh [MAVEN ARGUMENT...]

FAIRQ_LIBRARY names a library that is built already; JAVA22_HOME a JDK 22 or
later. Exit status: 77 when there is no Maven, or no Java 17 or later; else 0
when nothing failed.
END
}

readonly SKIP=77

skip() {
    printf 'skipped: %s\n' "$*"
    exit "$SKIP"
}

case ${1:-} in
    -h | --help) usage; exit 0 ;;
esac
command -v java >/dev/null || skip "there is no java"
command -v mvn >/dev/null || skip "there is no mvn"
# The Java that Maven runs on, which JAVA_HOME may name.
version=$(mvn --batch-mode --version | sed -n 's/^Java version: \([0-9]*\).*/\1/p')
[[ ${version:-0} -ge 17 ]] || skip "Maven runs on Java ${version:-unknown}, and 17 or later is needed"
newer=$(build/jdk22.sh)
[[ -n $newer ]] || echo "there is no JDK 22 or later: fairq-ffm is neither built nor tested"

mvn --batch-mode --no-transfer-progress -Dstyle.color=never verify "$@"
