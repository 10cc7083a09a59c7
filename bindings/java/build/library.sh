#!/usr/bin/env bash
# Puts the shared library under the folder that is named: META-INF/natives/<system>-<machine>/. It is built by cargo, unless
# FAIRQ_LIBRARY is the path of one that is built already.
set -euo pipefail
out=$1
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."

system=$(uname -s | tr '[:upper:]' '[:lower:]')
machine=$(uname -m)
name=libfairq.so
if [[ $system == darwin ]]; then system=macos name=libfairq.dylib; fi
if [[ $machine == arm64 ]]; then machine=aarch64; fi

library=${FAIRQ_LIBRARY:-}
if [[ -z $library ]]; then
    command -v cargo >/dev/null || {
        echo "there is no cargo to build the library with: install Rust, or let FAIRQ_LIBRARY name a library that is built" >&2
        exit 1
    }
    cargo build --release --lib --no-default-features --features tls
    library=${CARGO_TARGET_DIR:-target}/release/$name
fi

folder=$out/META-INF/natives/$system-$machine
mkdir -p "$folder"
# In one move: a process that has loaded the old one keeps it.
cp "$library" "$folder/$name.part"
# The lines for backtraces are four fifths of it.
if command -v strip >/dev/null; then strip -S "$folder/$name.part"; fi
mv "$folder/$name.part" "$folder/$name"
