#!/usr/bin/env bash
# Builds the library and installs it for C and C++.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

usage() {
    cat <<'TEXT'
usage: ./install.sh [--prefix DIR] [--libdir DIR] [--no-build] [--strip] [--uninstall] [--help]

  --prefix DIR  where to (default /usr/local)
  --libdir DIR  where the libraries go, if not to PREFIX/lib; a relative one is
                below the prefix
  --no-build    installs what was built before: cargo build --release --lib
                --no-default-features --features tls
  --strip       leaves debug information out: a tenth of the size, but panics
                and debuggers tell no line numbers
  --uninstall   removes what an installation with the same options has put there

Installs fairq.h, fairq.hpp, the shared and the static library, a file for
pkg-config and a package for CMake. DESTDIR is honoured. The installed tree can
be moved, if the libraries are below the prefix.
TEXT
}

die() {
    printf 'install.sh: %s\n' "$*" >&2
    exit 1
}

# --- What goes where ---------------------------------------------------------

# The version of the package: X.Y.Z.
package_version() {
    sed -n '/^\[package\]/,/^\[/s/^version *= *"\(.*\)"/\1/p' Cargo.toml
}

# The shared library: what cargo calls it, the file, the name that programs ask
# for, the name that linkers look for.
name_libraries() {
    case $(uname -s) in
        Darwin)
            built=libfairq.dylib file=libfairq.$version.dylib link=libfairq.dylib
            name=libfairq.${version%%.*}.dylib soname=@rpath/$name
            # What rustc --print native-static-libs says, less what compilers link by themselves.
            private="-liconv -lm -framework Security -framework CoreFoundation"
            ;;
        *)
            built=libfairq.so file=libfairq.so.$version link=libfairq.so
            name=libfairq.so.${version%%.*} soname=$name
            # As above. Without -lgcc_s: compilers bring the right one, which in a wholly static program is another.
            private="-lutil -lrt -lpthread -lm -ldl"
            ;;
    esac
}

# The way from libdir back to the prefix, such as `..`; nothing if it is not below.
way_up() {
    local below=${libdir#"$prefix"/} up=
    [[ $below != "$libdir" ]] || return 0
    while [[ -n $below ]]; do
        up+=${up:+/}..
        [[ $below == */* ]] && below=${below#*/} || below=
    done
    echo "$up"
}

# replace PLACE BY: in $text. Bash's own has several minds about what BY may contain.
replace() {
    local rest=$text
    text=
    while [[ $rest == *"$1"* ]]; do
        text+=${rest%%"$1"*}$2
        rest=${rest#*"$1"}
    done
    text+=$rest
}

# fill TEMPLATE TO: writes the template with its places filled in.
fill() {
    local up pc_prefix=$prefix pc_libdir=$libdir cmake_prefix=$prefix cmake_soname="IMPORTED_SONAME \"$soname\""
    up=$(way_up)
    if [[ -n $up ]]; then
        pc_prefix="\${pcfiledir}/../$up"
        pc_libdir="\${prefix}/${libdir#"$prefix"/}"
        cmake_prefix="\${_fairq_libdir}/$up"
    fi
    local text
    text=$(<"packaging/$1")
    replace @VERSION@ "$version"
    replace @MAJOR@ "${version%%.*}"
    replace @SHARED@ "$file"
    replace @PC_PREFIX@ "$pc_prefix"
    replace @PC_LIBDIR@ "$pc_libdir"
    replace @CMAKE_PREFIX@ "$cmake_prefix"
    replace @CMAKE_SONAME@ "$cmake_soname"
    replace @PRIVATE_LIBS@ "$private"
    replace @CMAKE_PRIVATE_LIBS@ "$(sed 's/-framework /-framework@/g; s/ /;/g; s/@/ /g' <<<"$private")"
    write "$2" "$text"
}

# --- Steps -------------------------------------------------------------------

# target: DESTDIR and a path, and its folder is there.
target() {
    mkdir -p "$destdir$(dirname "$1")"
    echo "$destdir$1"
}

write() {
    local to
    to=$(target "$1")
    printf '%s\n' "$2" >"$to"
    chmod 644 "$to"
    echo "  $to"
}

# copy MODE FROM TO: in one move, so that programs that run keep the old file.
copy() {
    local to
    to=$(target "$3")
    cp "$2" "$to.new"
    chmod "$1" "$to.new"
    mv -f "$to.new" "$to"
    echo "  $to"
}

copy_library() {
    [[ -f $2 ]] || die "there is no $2: build it first, or leave --no-build out"
    copy "$1" "$2" "$3"
    [[ $strip == no ]] || strip -S "$destdir$3"
}

link() {
    local to
    to=$(target "$2")
    ln -sf "$1" "$to"
    echo "  $to -> $1"
}

build() {
    command -v cargo >/dev/null || die "no cargo: install a Rust toolchain first"
    cargo build --release --lib --no-default-features --features tls
}

install_all() {
    local from=${CARGO_TARGET_DIR:-target}/release
    echo "installing fairq $version:"
    copy 644 include/fairq.h "$prefix/include/fairq.h"
    copy 644 include/fairq.hpp "$prefix/include/fairq.hpp"
    copy_library 755 "$from/$built" "$libdir/$file"
    copy_library 644 "$from/libfairq.a" "$libdir/libfairq.a"
    link "$file" "$libdir/$name"
    link "$name" "$libdir/$link"
    fill fairq.pc.in "$libdir/pkgconfig/fairq.pc"
    fill fairq-config.cmake.in "$libdir/cmake/fairq/fairq-config.cmake"
    fill fairq-config-version.cmake.in "$libdir/cmake/fairq/fairq-config-version.cmake"
    fill fairq-targets.cmake.in "$libdir/cmake/fairq/fairq-targets.cmake"
}

uninstall_all() {
    echo "removing fairq $version from $destdir$prefix"
    rm -f "$destdir$prefix"/include/fairq.{h,hpp}
    rm -f "$destdir$libdir"/{"$file","$name","$link",libfairq.a,pkgconfig/fairq.pc}
    rm -f "$destdir$libdir"/cmake/fairq/fairq-{config,config-version,targets}.cmake
    rmdir "$destdir$libdir/cmake/fairq" 2>/dev/null || true
}

# So that programs find the new library at once, where they look for it by themselves.
refresh_loader() {
    [[ -z $destdir && $(uname -s) == Linux && $(id -u) == 0 && $libdir/ =~ ^(/usr/local|/usr|)/lib ]] || return 0
    ! command -v ldconfig >/dev/null || ldconfig
}

# --- Options -----------------------------------------------------------------

prefix=/usr/local libdir=lib action=install wants_build=yes strip=no destdir=${DESTDIR:-}

while [[ $# -gt 0 ]]; do
    case $1 in
        --prefix=* | --libdir=*) set -- "${1%%=*}" "${1#*=}" "${@:2}" ;;
        --prefix | --libdir)
            [[ -n ${2:-} ]] || die "$1 needs a folder"
            [[ $1 == --prefix ]] && prefix=$2 || libdir=$2
            shift 2
            ;;
        --no-build) wants_build=no && shift ;;
        --strip) strip=yes && shift ;;
        --uninstall) action=uninstall && shift ;;
        -h | --help) usage && exit ;;
        *) usage >&2 && exit 2 ;;
    esac
done

[[ $prefix == /* ]] || die "the prefix has to begin with a slash, not like $prefix"
prefix=${prefix%/}
[[ $libdir == /* ]] || libdir=$prefix/$libdir
libdir=${libdir%/}
version=$(package_version)
[[ -n $version ]] || die "Cargo.toml tells no version"
name_libraries

if [[ $action == uninstall ]]; then
    uninstall_all
else
    [[ $wants_build == no ]] || build
    install_all
fi
refresh_loader
