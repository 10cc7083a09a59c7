//! `include/fairq.h` is what cbindgen makes of `src/ffi` now.

use std::path::Path;

/// The order in which the header tells of things.
const FILES: [&str; 10] =
    ["version", "time", "status", "error", "config", "client", "limiter", "ticket", "permit", "completions"];

#[test]
fn the_committed_header_is_the_one_that_the_code_yields() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).expect("read cbindgen.toml");
    let builder = FILES.iter().fold(cbindgen::Builder::new().with_config(config), |builder, file| {
        builder.with_src(root.join("src/ffi").join(file).with_extension("rs"))
    });
    let bindings = builder.generate().expect("read src/ffi");
    let mut made = Vec::new();
    bindings.write(&mut made);
    let made = String::from_utf8(made).expect("a header is text");
    let committed = root.join("include/fairq.h");
    if std::env::var_os("FAIRQ_UPDATE_HEADER").is_some() {
        std::fs::write(&committed, &made).expect("write include/fairq.h");
    }
    let there = std::fs::read_to_string(&committed).unwrap_or_default();
    assert!(
        there == made,
        "include/fairq.h is not what src/ffi yields: FAIRQ_UPDATE_HEADER=1 cargo test --test header"
    );
}
