//! What the linker has to know of the shared library that other languages load; and whether the small concurrent parts are
//! to be searched by loom.

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // By RUSTFLAGS, as is usual, every dependency would have to be built once more.
    println!("cargo:rerun-if-env-changed=FAIRQ_LOOM");
    if env::var_os("FAIRQ_LOOM").is_some() {
        println!("cargo:rustc-cfg=loom");
    }
    let os = env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    // Before 1.0 the minor version may break the ABI as well, but what breaks it is not planned: see README.md.
    let major = env::var("CARGO_PKG_VERSION_MAJOR").unwrap_or_default();
    match os.as_str() {
        "linux" | "freebsd" | "android" => {
            println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libfairq.so.{major}");
            // Its threads, and its handler for forks, must not lose the ground under them at a dlclose.
            println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
        }
        "macos" => println!("cargo:rustc-cdylib-link-arg=-Wl,-install_name,@rpath/libfairq.{major}.dylib"),
        _ => {}
    }
}
