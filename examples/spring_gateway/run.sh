#!/usr/bin/env bash
# Builds the gateway with Maven, and starts it.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

usage() {
    cat <<'END'
usage: examples/spring_gateway/run.sh [--port N] [--host ADDRESS]

Listens on 127.0.0.1:8000 unless told otherwise. The environment:
  FAIRQ_URL=redis://…          all processes, on all machines, share the limit;
                               without it, it is kept in the memory of this one
  GATEWAY_LIMIT                answers at once                   (3)
  GATEWAY_MAX_QUEUE            how many may wait                 (12)
  GATEWAY_MAX_WAIT             how many seconds they may         (30)
  GATEWAY_TOKENS_PER_SECOND    how fast the model is             (20)
  FAIRQ_LIBRARY                a libfairq that is built already; else cargo builds it

Needs a JDK (17 or newer) and Maven.
END
}

arguments=()
while [[ $# -gt 0 ]]; do
    case $1 in
        -h | --help) usage; exit ;;
        --port) arguments+=("--server.port=${2:?--port needs a value}") ;;
        --host) arguments+=("--server.address=${2:?--host needs a value}") ;;
        *) printf 'run.sh: unknown option %s; see --help\n' "$1" >&2; exit 64 ;;
    esac
    shift 2
done

mvn --quiet --batch-mode --file "$here/with-fairq.xml" package \
    -Dmaven.test.skip=true -Dmaven.javadoc.skip=true -Dmaven.source.skip=true
exec java -jar "$here/target/spring-gateway.jar" "${arguments[@]}"
