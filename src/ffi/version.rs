//! Which fairq this is.

use std::ffi::{CStr, c_char};

/// The version that this header is of.
pub const FQ_VERSION_MAJOR: i32 = 0;
/// The version that this header is of.
pub const FQ_VERSION_MINOR: i32 = 1;
/// The version that this header is of.
pub const FQ_VERSION_PATCH: i32 = 0;

const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
    Ok(version) => version,
    Err(_) => c"",
};

/// The version of the library, such as `0.1.0`. Never NULL; lives for ever. Does not block.
#[unsafe(no_mangle)]
pub extern "C" fn fq_version() -> *const c_char {
    VERSION.as_ptr()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_header_tells_the_version_of_the_package() {
        let told = format!("{FQ_VERSION_MAJOR}.{FQ_VERSION_MINOR}.{FQ_VERSION_PATCH}");
        assert_eq!(told, env!("CARGO_PKG_VERSION"));
        assert_eq!(VERSION.to_str(), Ok(told.as_str()));
    }
}
