#!/usr/bin/env bash
# Tests the C and the C++ side as their users meet it: installed, compiled, linked, run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

usage() {
    cat <<'TEXT'
usage: tests/c/run.sh [--quick | --asan-library | --help]

  (nothing)        everything, in about three minutes
  --quick          compiles, and runs the tests once on memory
  --asan-library   runs them with a library that is built under
                   AddressSanitizer itself; builds one, which takes minutes

Needs gcc, g++, make, cmake, pkg-config, nm and valgrind; uses a redis-server
if there is one. Exit status 77: one of them is missing.
TEXT
}

readonly SKIP=77
readonly C_STANDARDS=(c99 c11 c17) CXX_STANDARDS=(c++17 c++20)
readonly C_STRICT=(-Wall -Wextra -pedantic -Werror)
readonly CXX_STRICT=("${C_STRICT[@]}" -Wconversion -Wsign-conversion -Wshadow -Wold-style-cast -Wcast-qual -Wnon-virtual-dtor)
readonly SANITIZED=(-fsanitize=address -fsanitize=undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
# These have little to do with a server.
readonly NOT_ON_A_SERVER=(-secret -sizes -null -stale)

work=$(mktemp -d)
server_pid=
cleanup() {
    [[ -z $server_pid ]] || kill "$server_pid" 2>/dev/null || true
    rm -rf "$work"
}
trap cleanup EXIT

step() { printf '\n--- %s (after %d s)\n' "$*" "$SECONDS"; }

die() {
    printf 'failed: %s\n' "$*" >&2
    exit 1
}

need_tools() {
    local tool
    for tool in "$@"; do
        command -v "$tool" >/dev/null || { echo "skipped: there is no $tool" >&2; exit "$SKIP"; }
    done
}

same() { diff -u "$1" "$2" || die "$3"; }

# --- The installed tree ------------------------------------------------------

install_library() {
    step "install"
    ./install.sh --prefix "$work/first"
    # What is installed can be moved: from here on it is somewhere else.
    mv "$work/first" "$work/prefix"
    export PKG_CONFIG_PATH=$work/prefix/lib/pkgconfig
    export LD_LIBRARY_PATH=$work/prefix/lib
}

check_installation() {
    step "what is installed, and removed again"
    local version soname
    version=$(sed -n 's/^Version: //p' "$work/prefix/lib/pkgconfig/fairq.pc")
    [[ $(pkg-config --modversion fairq) == "$version" ]] || die "pkg-config knows another version"
    [[ -f $work/prefix/lib/libfairq.so.$version ]] || die "there is no libfairq.so.$version"
    soname=$(objdump -p "$work/prefix/lib/libfairq.so" | awk '$1 == "SONAME" { print $2 }')
    [[ -e $work/prefix/lib/$soname ]] || die "programs ask for $soname, which is not there"

    DESTDIR=$work/stage ./install.sh --no-build --strip --prefix /usr --libdir lib/somewhere >"$work/log"
    [[ -f $work/stage/usr/lib/somewhere/cmake/fairq/fairq-config.cmake ]] || die "DESTDIR or --libdir is not honoured"
    ! grep -rl "$work" "$work/stage/usr/include" "$work/stage/usr/lib/somewhere/"{pkgconfig,cmake} || die "DESTDIR was written down"
    DESTDIR=$work/stage ./install.sh --uninstall --prefix /usr --libdir lib/somewhere >"$work/log"
    [[ -z $(find "$work/stage" -not -type d) ]] || die "these stay behind: $(find "$work/stage" -not -type d)"
    echo "fairq $version, $soname"
}

# --- The ABI -----------------------------------------------------------------

# The names in the table of tests/abi/layout.txt.
named_in_table() { awk -v of="$1" '$1 == of { print $2 }' tests/abi/layout.txt | sort; }

# Each line of the table as an assertion.
assertions() {
    cat <<'C'
#include <fairq.h>
#ifdef __cplusplus
#define _Static_assert static_assert
#define _Alignof alignof
#endif
C
    awk '
        $1 == "struct" { say("sizeof(" $2 ") == " $3); say("_Alignof(" $2 ") == " $4) }
        $1 == "field"  { split($2, part, ".")
                         say("offsetof(" part[1] ", " part[2] ") == " $3)
                         say("sizeof(((" part[1] " *)0)->" part[2] ") == " $4) }
        $1 == "const"  { say($2 " == " $3) }
        function say(what) { print "_Static_assert(" what ", \"" $0 "\");" }
    ' tests/abi/layout.txt
}

check_abi() {
    step "the ABI: symbols, functions, structs, constants"
    nm -D --defined-only "$work/prefix/lib/libfairq.so" | awk '{ print $3 }' | LC_ALL=C sort >"$work/symbols"
    same tests/abi/symbols.txt "$work/symbols" "the library exports other symbols than tests/abi/symbols.txt"

    # Declared twice, each function is declared alike, or it does not compile.
    { echo '#include <fairq.h>'; cat tests/abi/functions.txt; } >"$work/functions.c"
    gcc -std=c11 "${C_STRICT[@]}" -fsyntax-only -I"$work/prefix/include" "$work/functions.c"
    sed -n 's/^.*[ *]\(fq_[a-z_]*\)(.*/\1/p' tests/abi/functions.txt | LC_ALL=C sort >"$work/functions"
    same tests/abi/symbols.txt "$work/functions" "tests/abi/functions.txt is not complete"

    assertions >"$work/layout.c"
    gcc -std=c11 "${C_STRICT[@]}" -fsyntax-only -I"$work/prefix/include" "$work/layout.c"
    g++ -std=c++17 -Wall -Wextra -Werror -fsyntax-only -I"$work/prefix/include" -x c++ "$work/layout.c"
    check_table_is_complete
}

check_table_is_complete() {
    sed -n 's/^#define \(FQ_[A-Z_]*\) [0-9]*$/\1/p' include/fairq.h | grep -v '^FQ_VERSION_' | sort >"$work/constants"
    same <(named_in_table const) "$work/constants" "tests/abi/layout.txt does not have the header's constants"
    awk '
        /^typedef struct \{/ { inside = 1; count = 0; next }
        inside && /^} /      { sub(/;/, "", $2); for (at = 0; at < count; at++) print $2 "." fields[at]; inside = 0 }
        inside && /;$/       { name = $NF; gsub(/[*;]/, "", name); fields[count++] = name }
    ' include/fairq.h | sort >"$work/fields"
    same <(named_in_table field) "$work/fields" "tests/abi/layout.txt does not have the header's fields"
    local symbol
    while read -r symbol; do
        grep -q "\\b$symbol(" tests/c/null.c || die "tests/c/null.c does not call $symbol"
    done <tests/abi/symbols.txt
}

# --- Compiling ---------------------------------------------------------------

# The headers alone, twice, in every standard.
check_headers() {
    step "the headers alone: ${C_STANDARDS[*]} ${CXX_STANDARDS[*]}"
    local standard include=(-I"$work/prefix/include")
    printf '#include <fairq.h>\n#include <fairq.h>\nint unit;\n' >"$work/unit.c"
    printf '#include <fairq.hpp>\n#include <fairq.hpp>\n' >"$work/unit.cpp"
    for standard in "${C_STANDARDS[@]}"; do
        gcc -std="$standard" "${C_STRICT[@]}" -fsyntax-only "${include[@]}" "$work/unit.c"
    done
    for standard in "${CXX_STANDARDS[@]}"; do
        g++ -std="$standard" "${CXX_STRICT[@]}" -fsyntax-only "${include[@]}" -x c++ "$work/unit.c" "$work/unit.cpp"
        g++ -std="$standard" "${CXX_STRICT[@]}" -fno-rtti -fsyntax-only "${include[@]}" "$work/unit.cpp"
    done
}

# How a program is linked: with the shared library, with the static one inside, or without anything shared.
link_flags() {
    case $1 in
        shared) pkg-config --libs fairq ;;
        static) pkg-config --variable=static_libs fairq ;;
        alone) echo -static && pkg-config --static --libs fairq ;;
    esac
}

# compile_c STANDARD LINKED OUTPUT FLAGS...: the tests in C as one program.
compile_c() {
    local standard=$1 linked=$2 output=$3 source objects=()
    shift 3
    echo "$output: $standard, $linked ${*}"
    mkdir -p "$work/objects-$output"
    for source in tests/c/*.c; do
        [[ $source != */bench.c ]] || continue
        objects+=("$work/objects-$output/$(basename "$source").o")
        # shellcheck disable=SC2046
        gcc -std="$standard" "${C_STRICT[@]}" -g -O1 "$@" $(pkg-config --cflags fairq) -c "$source" -o "${objects[-1]}"
    done
    # shellcheck disable=SC2046
    gcc "$@" "${objects[@]}" $(link_flags "$linked") -lpthread -o "$work/$output"
}

# compile_cxx STANDARD LINKED OUTPUT FLAGS...: the same of the tests in C++.
compile_cxx() {
    local standard=$1 linked=$2 output=$3
    shift 3
    echo "$output: $standard, $linked ${*}"
    # shellcheck disable=SC2046
    g++ -std="$standard" "${CXX_STRICT[@]}" -g -O1 "$@" $(pkg-config --cflags fairq) tests/c/cpp/*.cpp \
        $(link_flags "$linked") -lpthread -o "$work/$output"
}

# A project of somebody else's, that finds the package.
check_cmake() {
    step "CMake: find_package"
    local options=(-DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_C_FLAGS="${C_STRICT[*]}" -DCMAKE_CXX_FLAGS="${C_STRICT[*]}")
    cmake -S examples/c -B "$work/cmake" "${options[@]}" >"$work/log" || { cat "$work/log"; die "CMake"; }
    cmake --build "$work/cmake" -j 2 >"$work/log" || { cat "$work/log"; die "CMake's build"; }
    "$work/cmake/limit"
    env -u LD_LIBRARY_PATH "$work/cmake/limit_cpp"
    local wanted
    for wanted in 0.0.1:yes 0.1:yes 0.99:no 1.0:no; do
        finds_version "${wanted%:*}" "${wanted#*:}"
    done
}

finds_version() {
    mkdir -p "$work/version"
    # shellcheck disable=SC2016
    printf 'cmake_minimum_required(VERSION 3.15)\nproject(version LANGUAGES C)\nfind_package(fairq %s QUIET)\n%s\n' "$1" \
        'message(STATUS "found=${fairq_FOUND}")' >"$work/version/CMakeLists.txt"
    rm -rf "$work/version/build"
    cmake -S "$work/version" -B "$work/version/build" -DCMAKE_PREFIX_PATH="$work/prefix" >"$work/log" 2>&1
    local found=no
    ! grep -q 'found=1' "$work/log" || found=yes
    [[ $found == "$2" ]] || { cat "$work/log"; die "find_package(fairq $1): found=$found"; }
}

# The examples as their first lines say.
check_examples() {
    step "the examples, by pkg-config"
    # shellcheck disable=SC2046
    gcc -std=c99 "${C_STRICT[@]}" examples/c/limit.c $(pkg-config --cflags --libs fairq) -o "$work/limit"
    # shellcheck disable=SC2046
    g++ -std=c++17 "${CXX_STRICT[@]}" examples/c/limit.cpp $(pkg-config --cflags --libs fairq) -o "$work/limit_cpp"
    "$work/limit"
    "$work/limit_cpp"
    ! "$work/limit" nonsense: 2>"$work/log" || die "nonsense is no URL"
    cat "$work/log"
}

# --- Running -----------------------------------------------------------------

# run SCALE PROGRAM ARGUMENT...: shows the last lines, or all if it failed.
run() {
    local scale=$1 status=0
    shift
    FAIRQ_TEST_SCALE=$scale "$@" >"$work/log" 2>&1 || status=$?
    if [[ $status != 0 ]]; then
        cat "$work/log"
        die "${*##*/}: exit status $status"
    fi
    tail -n 1 "$work/log"
}

run_plain() {
    step "the promises in C"
    compile_c c99 shared c99-shared
    run 100 "$work/c99-shared"
    grep ' KB ' "$work/log" # memory, before and after a million rounds
}

run_other_linkages() {
    step "the same, compiled and linked otherwise"
    compile_c c11 static c11-static
    compile_c c17 alone c17-alone 2>"$work/warnings" || { cat "$work/warnings"; die "it cannot be linked statically"; }
    run 5 env -u LD_LIBRARY_PATH "$work/c11-static"
    run 5 env -u LD_LIBRARY_PATH "$work/c17-alone"
}

run_cxx() {
    step "the promises in C++"
    compile_cxx c++17 shared cxx17-shared
    run 100 "$work/cxx17-shared"
    compile_cxx c++20 static cxx20-static
    run 100 "$work/cxx20-static"
}

# The library is not instrumented itself, but its memory is the sanitizer's: leaks, double frees and wild pointers show.
run_sanitized() {
    step "under AddressSanitizer, UndefinedBehaviorSanitizer and LeakSanitizer"
    export ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1 UBSAN_OPTIONS=print_stacktrace=1
    compile_c c17 shared c17-asan "${SANITIZED[@]}"
    run 10 "$work/c17-asan"
    compile_cxx c++20 shared cxx20-asan "${SANITIZED[@]}"
    run 10 "$work/cxx20-asan"
}

run_valgrind() {
    step "under valgrind"
    # By its own choice it lets a thread that waits busily starve those it waits for, now and then for minutes.
    local options=(--quiet --error-exitcode=9 --fair-sched=try)
    local leaks=(--leak-check=full --errors-for-leak-kinds=definite --show-leak-kinds=definite)
    run 1 valgrind "${options[@]}" "${leaks[@]}" "$work/c99-shared" -fork
    # A child leaves what was its parent's alone, which looks like leaks.
    run 1 valgrind "${options[@]}" "$work/c99-shared" fork
    run 1 valgrind "${options[@]}" "${leaks[@]}" "$work/cxx17-shared"
}

run_bench() {
    step "what a call costs"
    # shellcheck disable=SC2046
    gcc -std=c11 "${C_STRICT[@]}" -O2 $(pkg-config --cflags fairq) tests/c/bench.c tests/c/check.c \
        $(pkg-config --libs fairq) -lpthread -o "$work/bench"
    "$work/bench" 101
}

# --- On a server -------------------------------------------------------------

find_server() {
    PATH=$PATH:/usr/sbin command -v redis-server && return
    local server
    for server in target/servers/*/bin/*-server; do
        [[ ! -x $server ]] || { echo "$server"; return; }
    done
}

# Starts one on a port that is free, and waits until it answers.
start_server() {
    local try port
    for try in 1 2 3 4 5; do
        port=$((22500 + RANDOM % 9000))
        "$1" --port "$port" --bind 127.0.0.1 --save '' --dir "$work" >"$work/server" 2>&1 &
        server_pid=$!
        for _ in $(seq 100); do
            ! grep -qi 'ready to accept connections' "$work/server" || { server_url=redis://127.0.0.1:$port/; return; }
            kill -0 "$server_pid" 2>/dev/null || break
            sleep 0.1
        done
        kill "$server_pid" 2>/dev/null || true
        echo "no server on port $port (attempt $try)"
    done
    cat "$work/server"
    die "the server does not start"
}

run_on_a_server() {
    local server server_url
    server=$(find_server)
    step "on a server"
    [[ -n $server ]] || { echo "there is no redis-server: not done"; return; }
    echo "$server"
    start_server "$server"
    FAIRQ_URL=$server_url run 100 "$work/c99-shared" "${NOT_ON_A_SERVER[@]}"
    FAIRQ_URL=$server_url run 100 "$work/cxx17-shared"
    FAIRQ_URL=$server_url run 10 "$work/c17-asan" "${NOT_ON_A_SERVER[@]}"
    kill "$server_pid"
    wait "$server_pid" || true
    server_pid=
}

# --- A library that is instrumented itself -----------------------------------

run_asan_library() {
    step "a library under AddressSanitizer"
    local target=x86_64-unknown-linux-gnu
    RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address CARGO_TARGET_DIR=target/asan \
        cargo build --lib --no-default-features --features tls --target "$target"
    ln -s "$PWD/target/asan/$target/debug/libfairq.so" "$work/libfairq.so.0"
    compile_c c17 shared c17-asan -fsanitize=address
    LD_LIBRARY_PATH=$work run 5 "$work/c17-asan"
}

# --- The program -------------------------------------------------------------

prepare() {
    need_tools gcc g++ make cmake pkg-config nm objdump cargo
    install_library
    check_headers
}

everything() {
    need_tools valgrind
    prepare
    check_installation
    check_abi
    check_examples
    check_cmake
    run_plain
    run_other_linkages
    run_cxx
    run_sanitized
    run_valgrind
    run_on_a_server
    run_bench
}

quick() {
    prepare
    check_abi
    run_plain
    run_cxx
}

asan_library() {
    prepare
    run_asan_library
}

case ${1:-all} in
    all) everything ;;
    --quick) quick ;;
    --asan-library) asan_library ;;
    -h | --help) usage && exit ;;
    *) usage >&2 && exit 2 ;;
esac
printf '\nall of it passed, in %d s\n' "$SECONDS"
