//! The C ABI is what tests/abi/layout.txt says, which C and the bindings are checked against as well.
#![cfg(target_pointer_width = "64")]

use std::collections::BTreeSet;
use std::mem::offset_of;

use fairq::ffi;

const TABLE: &str = include_str!("abi/layout.txt");

/// The size of a field, which only its type knows.
fn size_at<S, F>(_field: impl FnOnce(&S) -> &F) -> usize {
    size_of::<F>()
}

/// The lines of a struct: its own, and one for each field.
macro_rules! layout {
    ($name:ident { $($field:ident),* $(,)? }) => {{
        // Fails to compile when a field is left out.
        let _complete = |it: ffi::$name| { let ffi::$name { $($field: _),* } = it; };
        let mut lines = vec![format!(
            "struct {} {} {}", stringify!($name), size_of::<ffi::$name>(), align_of::<ffi::$name>()
        )];
        $(lines.push(format!(
            "field {}.{} {} {}", stringify!($name), stringify!($field), offset_of!(ffi::$name, $field),
            size_at(|it: &ffi::$name| &it.$field)
        ));)*
        lines
    }};
}

macro_rules! constants {
    ($($name:ident),* $(,)?) => { vec![$(format!("const {} {}", stringify!($name), ffi::$name)),*] };
}

fn structs() -> Vec<String> {
    [
        layout!(fq_option { scope, key, default_value, doc }),
        layout!(fq_request { size, flags, max_wait_ms, cost, label, label_len }),
        layout!(fq_limiter_info {
            size,
            paused,
            limit,
            used,
            holders,
            waiting,
            max_queue,
            max_wait_ms,
            lease_ms,
            max_hold_ms,
            granted_total,
            instances,
            epoch,
            grace_ms,
            typical_hold_ms,
            estimate_ms,
            overshoot_total
        }),
        layout!(fq_position { position, estimate_ms }),
        layout!(fq_event { token, kind, status, permit, error, position, estimate_ms }),
    ]
    .concat()
}

#[rustfmt::skip]
fn values() -> Vec<String> {
    constants![
        FQ_FOREVER, FQ_DEFAULT,
        FQ_SCOPE_CLIENT, FQ_SCOPE_LIMITER, FQ_SCOPE_CHANGE,
        FQ_REPORT_POSITION, FQ_REPORT_PERMIT,
        FQ_PERMIT_STATE_VALID, FQ_PERMIT_STATE_UNCONFIRMED, FQ_PERMIT_STATE_LOST, FQ_PERMIT_STATE_RELEASED,
        FQ_PERMIT_STATE_NONE,
        FQ_EVENT_DONE, FQ_EVENT_POSITION, FQ_EVENT_PERMIT_UNCONFIRMED, FQ_EVENT_PERMIT_CONFIRMED, FQ_EVENT_PERMIT_LOST,
        FQ_OK, FQ_TIMED_OUT, FQ_CANCELLED, FQ_CLOSED, FQ_QUEUE_FULL, FQ_IMPOSSIBLE, FQ_REVOKED, FQ_PERMIT_LOST, FQ_STALE,
        FQ_UNAVAILABLE, FQ_UNKNOWN_OUTCOME, FQ_OVERLOADED, FQ_INVALID, FQ_CONFIGURATION, FQ_SERVER, FQ_NO_SUCH_LIMITER,
        FQ_FORKED, FQ_PANIC, FQ_INTERNAL,
    ]
}

#[test]
fn the_structs_and_constants_are_those_of_the_table() {
    let here: BTreeSet<String> = structs().into_iter().chain(values()).collect();
    let table: BTreeSet<String> =
        TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(str::to_owned).collect();
    let differ: Vec<_> = here.symmetric_difference(&table).collect();
    assert!(differ.is_empty(), "not in both of src/ffi and tests/abi/layout.txt: {differ:#?}");
}
