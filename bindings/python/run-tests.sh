#!/usr/bin/env bash
# Builds the package, installs it into an environment of its own, and tests it there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

usage() {
    cat <<'END'
usage: ./run-tests.sh [--sdist] [PYTEST ARGUMENT...]

  --sdist   also builds a wheel out of an sdist, from the Rust sources in it

PYTHON names the interpreter (python3). Exit status: 77 when there is no Python,
or none that can make environments; else 0 when nothing failed.
END
}

readonly SKIP=77
repository=$(cd ../.. && pwd)
target=$(cd "$repository" && realpath -m "${CARGO_TARGET_DIR:-target}")
python=${PYTHON:-python3}

skip() {
    printf '%s\n' "$*"
    exit "$SKIP"
}

# An environment is kept between runs, one for each interpreter.
make_environment() {
    command -v "$python" >/dev/null || skip "there is no $python"
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 9))' || skip "$python is older than 3.9"
    "$python" -c 'import ensurepip, venv' 2>/dev/null || skip "$python has no venv or no pip: install python3-venv"
    local tag
    tag=$("$python" -c 'import sys; print(sys.implementation.cache_tag)')
    environment=$target/python-venv/$tag
    # What was made by an interpreter that has gone does not run any more.
    "$environment/bin/python" -c 'import pip' 2>/dev/null || "$python" -m venv --clear "$environment"
}

install_package() {
    "$environment/bin/python" -m pip install --quiet --disable-pip-version-check "$1[test]"
}

check_types() {
    if [[ -x $environment/bin/mypy ]]; then
        "$environment/bin/mypy"
    else
        echo "no mypy for this interpreter: types are not checked"
    fi
}

# What is uploaded builds where the repository is not.
check_sdist() {
    local work
    work=$(mktemp -d)
    "$environment/bin/python" -m pip install --quiet --disable-pip-version-check build
    "$environment/bin/python" -m build --quiet --sdist --outdir "$work" .
    env -u FAIRQ_LIBRARY CARGO_TARGET_DIR="$target/python-sdist" \
        "$environment/bin/python" -m pip wheel --quiet --no-deps --wheel-dir "$work" "$work"/fairq-*.tar.gz
    "$environment/bin/python" -m zipfile -l "$work"/fairq-*-py3-none-*.whl | grep -E 'fairq/_lib/libfairq\.(so|dylib) '
    rm -rf "$work"
}

case ${1:-} in
    -h | --help) usage; exit 0 ;;
esac
make_environment
if [[ ${1:-} == --sdist ]]; then
    shift
    check_sdist
fi
install_package .
check_types
"$environment/bin/python" -m pytest -p no:cacheprovider "$@"
