//! The callers' memory: the only place that follows their pointers.

use std::ffi::c_char;

use crate::Error;

/// A caller's string.
///
/// # Errors
/// [`Error::Invalid`] for NULL with a length, or what is no UTF-8.
///
/// # Safety
/// `len` bytes can be read at `text`, and nobody writes them for as long as `'a`.
pub(super) unsafe fn text<'a>(text: *const c_char, len: usize, what: &'static str) -> Result<&'a str, Error> {
    if len == 0 {
        return Ok("");
    }
    if text.is_null() {
        return Err(Error::invalid(what, format!("it is NULL, with a length of {len}")));
    }
    if len > isize::MAX as usize {
        return Err(Error::invalid(what, format!("a length of {len} means nothing")));
    }
    // SAFETY: not NULL, and readable by the caller's word.
    let bytes = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), len) };
    std::str::from_utf8(bytes).map_err(|e| Error::invalid(what, format!("it is not UTF-8: {e}")))
}

/// A place for an answer, emptied at once, so that a caller finds nothing old there when the call fails.
pub(super) struct Out<T> {
    place: *mut T,
}

impl<T> Out<T> {
    /// # Errors
    /// [`Error::Invalid`] for NULL.
    ///
    /// # Safety
    /// `place` is NULL, or a `T` can be written there for as long as this lives.
    pub(super) unsafe fn new(place: *mut T, empty: T, what: &'static str) -> Result<Self, Error> {
        // SAFETY: the caller's word.
        unsafe { Out::optional(place, empty) }
            .ok_or_else(|| Error::invalid(what, "there has to be a place for it, this is NULL"))
    }

    /// A place that need not be there.
    ///
    /// # Safety
    /// As of [`Out::new`].
    pub(super) unsafe fn optional(place: *mut T, empty: T) -> Option<Self> {
        if place.is_null() {
            return None;
        }
        let out = Out { place };
        out.put(empty);
        Some(out)
    }

    pub(super) fn put(&self, value: T) {
        // SAFETY: not NULL, and writable by the word of the one who made this. C's structs own nothing to be dropped.
        unsafe { self.place.write(value) };
    }
}

/// A struct whose first field is its size, a `uint32_t`: the caller may have been built with a shorter one than ours, or
/// with a longer one. All of its fields are plain numbers and pointers, so that any bytes are one.
///
/// # Safety
/// The implementor is `repr(C)`, begins with the size, and is valid for any bytes in its fields.
pub(super) unsafe trait Sized32: Copy {
    /// The size of its first version, without which it means nothing.
    const FIRST: usize;
}

/// Reads a sized struct; what the caller's does not have is as in `defaults`.
///
/// # Errors
/// [`Error::Invalid`] for a size that no version had.
///
/// # Safety
/// At `from`, which is not NULL, as many bytes can be read as its first field says.
pub(super) unsafe fn read_sized<T: Sized32>(from: *const T, defaults: T, what: &'static str) -> Result<T, Error> {
    // SAFETY: at least the size is there, by the caller's word.
    let size = unsafe { sized_len::<T>(from.cast(), what) }?;
    let mut value = defaults;
    // SAFETY: so much is readable, `value` is as long, and any bytes make a `T`.
    unsafe { std::ptr::copy_nonoverlapping(from.cast::<u8>(), (&raw mut value).cast::<u8>(), size) };
    Ok(value)
}

/// A place for a sized struct. Like any other it is emptied at once, down to zeros; its size stays as it was.
pub(super) struct SizedOut<T> {
    place: *mut T,
    /// How much of it both sides know.
    size: usize,
}

impl<T: Sized32> SizedOut<T> {
    /// # Errors
    /// [`Error::Invalid`] for NULL, or a size that no version had.
    ///
    /// # Safety
    /// `place` is NULL, or as many bytes can be read and written there as its first field says, for as long as this lives.
    pub(super) unsafe fn new(place: *mut T, what: &'static str) -> Result<Self, Error> {
        if place.is_null() {
            return Err(Error::invalid(what, "there has to be a place for it, this is NULL"));
        }
        // SAFETY: at least the size is there, by the caller's word.
        let size = unsafe { sized_len::<T>(place.cast(), what) }?;
        // SAFETY: so much is writable.
        unsafe { place.cast::<u8>().add(size_of::<u32>()).write_bytes(0, size - size_of::<u32>()) };
        Ok(SizedOut { place, size })
    }

    /// Writes as much of `value` as there is room for.
    pub(super) fn put(&self, value: &T) {
        let after_size = size_of::<u32>();
        let (from, to) = ((&raw const *value).cast::<u8>(), self.place.cast::<u8>());
        // SAFETY: so much is writable by the word of the one who made this, and `value` is at least as long.
        unsafe { std::ptr::copy_nonoverlapping(from.add(after_size), to.add(after_size), self.size - after_size) };
    }
}

/// How much of the struct both sides know.
unsafe fn sized_len<T: Sized32>(at: *const u32, what: &'static str) -> Result<usize, Error> {
    // SAFETY: the caller's word.
    let said = unsafe { at.read_unaligned() } as usize;
    if said < T::FIRST {
        let detail = format!("its field `size` says {said}; set it to sizeof the struct, {}", std::mem::size_of::<T>());
        return Err(Error::invalid(what, detail));
    }
    Ok(said.min(std::mem::size_of::<T>()))
}
